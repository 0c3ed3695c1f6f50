-- A seat is a durable position. Its key is unique among the live ones; a retired seat keeps its row.
-- `profile` is what a runner is started with, `policy` what the seat may do; both are made by apply.
CREATE TABLE seats (
    id KEYTEXT NOT NULL PRIMARY KEY,
    organisation_id KEYTEXT NOT NULL,
    key KEYTEXT NOT NULL,
    display_name TEXT NOT NULL,
    timezone TEXT NOT NULL,
    adapter TEXT NOT NULL,
    config_revision TEXT NOT NULL,
    policy_revision BIGINT NOT NULL,
    policy_digest TEXT NOT NULL,
    suspended INTEGER NOT NULL DEFAULT 0,
    retire_by BIGINT,
    retired_at BIGINT,
    created_at BIGINT NOT NULL,
    -- The long ones last: what lies behind them is slow to reach.
    profile TEXT NOT NULL,
    policy TEXT NOT NULL
);
CREATE UNIQUE INDEX seats_live_key ON seats (organisation_id, key) WHERE retired_at IS NULL;
CREATE INDEX seats_organisation ON seats (organisation_id, key);

-- The right to act as a seat. `generation` rises at every acquisition, fence and retirement; a
-- released lease keeps its generation and no longer writes. `quiesced` says that this start announced
-- its end: what it leaves undone is no failed attempt.
CREATE TABLE leases (
    seat_id KEYTEXT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL,
    instance TEXT,
    expires_at BIGINT NOT NULL,
    released INTEGER NOT NULL,
    state TEXT NOT NULL,
    state_detail TEXT,
    quiesced INTEGER NOT NULL DEFAULT 0,
    adopted_revision TEXT,
    started_at BIGINT,
    last_activity BIGINT
) CLUSTERED;

-- Identity tokens, by the SHA-256 of their 256 random bits.
CREATE TABLE tokens (
    digest KEYTEXT NOT NULL PRIMARY KEY,
    seat_id KEYTEXT NOT NULL,
    instance KEYTEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
) CLUSTERED;
CREATE INDEX tokens_instance ON tokens (seat_id, instance);
CREATE INDEX tokens_expiry ON tokens (expires_at);
