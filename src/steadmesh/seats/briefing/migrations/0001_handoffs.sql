-- A seat's portable note to whoever goes on in its place.
CREATE TABLE handoffs (
    seat_id KEYTEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL,
    saved_at BIGINT NOT NULL
);
