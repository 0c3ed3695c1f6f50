-- A seat that is on its way out: the notice that it was given, so that a cancelled one can be taken back.
CREATE TABLE retirements (
    seat_id KEYTEXT NOT NULL PRIMARY KEY,
    notice_message_id KEYTEXT NOT NULL,
    started_at BIGINT NOT NULL
) CLUSTERED;
