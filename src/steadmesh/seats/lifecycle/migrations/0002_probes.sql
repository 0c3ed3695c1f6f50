-- Whether a seat works: its newest probes. Status: pending, passed or failed. What has become of a
-- pending one is read from its message's delivery; an ended one keeps what it needs, for deliveries,
-- executions and events are forgotten in time. `revision` is the configuration it ran at.
CREATE TABLE probes (
    number SERIALKEY,
    id KEYTEXT NOT NULL,
    organisation_id KEYTEXT NOT NULL,
    seat_id KEYTEXT NOT NULL,
    message_id KEYTEXT NOT NULL,
    conversation_id KEYTEXT NOT NULL,
    status TEXT NOT NULL,
    checks TEXT,
    reason TEXT,
    revision TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT
);
CREATE UNIQUE INDEX probes_id ON probes (id);
CREATE INDEX probes_seat ON probes (seat_id, number);
CREATE INDEX probes_pending ON probes (organisation_id, number) WHERE status = 'pending';
