-- Which supervisor runs the seats of an organisation: at most one, for as long as it renews its claim.
-- `machine` and `started` tell another supervisor on the same machine whether that process still exists.
CREATE TABLE supervisors (
    organisation_id KEYTEXT NOT NULL PRIMARY KEY,
    instance KEYTEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    machine TEXT,
    started TEXT,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) CLUSTERED;
