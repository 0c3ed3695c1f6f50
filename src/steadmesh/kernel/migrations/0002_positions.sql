-- How far events were given positions ('given', PostgreSQL only: SQLite counts by itself), and up to
-- which position some may have been trimmed ('trimmed'). The table of events cannot tell: it may be empty.
CREATE TABLE event_positions (
    name KEYTEXT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
) CLUSTERED;
INSERT INTO event_positions (name, position) SELECT 'given', coalesce(max(position), 0) FROM events;
INSERT INTO event_positions (name, position) VALUES ('trimmed', 0)
