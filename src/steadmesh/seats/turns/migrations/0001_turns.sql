-- One turn attempt. State: running, completed, failed or interrupted.
CREATE TABLE executions (
    id KEYTEXT NOT NULL PRIMARY KEY,
    organisation_id KEYTEXT NOT NULL,
    seat_id KEYTEXT NOT NULL,
    delivery_number BIGINT NOT NULL,
    message_id KEYTEXT NOT NULL,
    generation BIGINT NOT NULL,
    config_revision TEXT NOT NULL,
    adapter TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL,
    error TEXT,
    started_at BIGINT NOT NULL,
    ended_at BIGINT
) CLUSTERED;
CREATE INDEX executions_seat ON executions (seat_id, started_at);

CREATE TABLE execution_events (
    number SERIALKEY,
    execution_id KEYTEXT NOT NULL,
    kind TEXT NOT NULL,
    correlation_id TEXT,
    data TEXT,
    at BIGINT NOT NULL
);
CREATE INDEX execution_events_execution ON execution_events (execution_id, number);

-- The newest checkpoint of each harness adapter that a seat has run with.
CREATE TABLE checkpoints (
    seat_id KEYTEXT NOT NULL,
    adapter KEYTEXT NOT NULL,
    format_version TEXT NOT NULL,
    checkpoint_ref TEXT NOT NULL,
    guarantee TEXT NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (seat_id, adapter)
) CLUSTERED;
