-- Which outside events were taken, so that one that comes twice does nothing the second time. The
-- sender belongs to the key: in a terminal people choose the ids, and one must not use up another's.
CREATE TABLE ingress_events (
    organisation_id KEYTEXT NOT NULL,
    connection KEYTEXT NOT NULL,
    external_user_id KEYTEXT NOT NULL,
    event_id KEYTEXT NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, connection, external_user_id, event_id)
) CLUSTERED;
CREATE INDEX ingress_events_age ON ingress_events (received_at);

-- What people are to read in their terminals. Streams follow `number`, which is drawn under a lock of
-- its reader, so its order is commit order. Only the newest of each reader are kept.
CREATE TABLE terminal_lines (
    number SERIALKEY,
    organisation_id KEYTEXT NOT NULL,
    connection KEYTEXT NOT NULL,
    external_user_id KEYTEXT NOT NULL,
    id KEYTEXT NOT NULL,
    text TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX terminal_lines_reader
    ON terminal_lines (organisation_id, connection, external_user_id, number);

-- How far a person has read in any of her streams: a fresh one goes on from there.
CREATE TABLE terminal_readers (
    organisation_id KEYTEXT NOT NULL,
    connection KEYTEXT NOT NULL,
    external_user_id KEYTEXT NOT NULL,
    shown BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, connection, external_user_id)
) CLUSTERED;
