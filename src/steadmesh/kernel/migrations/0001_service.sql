-- What the service itself remembers: its secret, which installation this is.
CREATE TABLE service (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);

-- The outbox: what happened, written in the transaction that made it happen. `position` is given
-- after the commit, without gaps; readers follow it and skip nothing. On SQLite the id is the position.
CREATE TABLE events (
    id SERIALKEY,
    position BIGINT,
    scope KEYTEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE UNIQUE INDEX events_position ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_unnumbered ON events (id) WHERE position IS NULL;
