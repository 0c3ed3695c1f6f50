-- Who called what, and how it ended. Never arguments, bodies or secrets.
CREATE TABLE audit (
    id SERIALKEY,
    at BIGINT NOT NULL,
    scope KEYTEXT NOT NULL,
    caller TEXT NOT NULL,
    tool TEXT NOT NULL,
    outcome TEXT NOT NULL,
    execution TEXT
);

-- The answers of writing calls that carried an Idempotency-Key, for ten minutes. `id` is a digest of
-- credential, tool and key; the answer is encrypted with a key derived from the header's value.
CREATE TABLE kept_answers (
    id KEYTEXT NOT NULL PRIMARY KEY,
    arguments TEXT NOT NULL,
    answer RAWBYTES NOT NULL,
    expires_at BIGINT NOT NULL
) CLUSTERED;
CREATE INDEX kept_answers_expiry ON kept_answers (expires_at);
