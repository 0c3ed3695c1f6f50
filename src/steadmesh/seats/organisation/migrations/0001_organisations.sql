-- `document` is the resolved organisation file as JSON; `digest` tells whether an apply changes it.
CREATE TABLE organisations (
    id KEYTEXT NOT NULL PRIMARY KEY,
    key KEYTEXT NOT NULL,
    namespace TEXT NOT NULL,
    source_uid TEXT NOT NULL,
    display_name TEXT NOT NULL,
    timezone TEXT NOT NULL,
    digest TEXT NOT NULL,
    document TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    applied_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX organisations_live_key ON organisations (key) WHERE deleted_at IS NULL;

-- The texts of instruction bundles, by the reference that carries their digest.
CREATE TABLE bundles (
    organisation_id KEYTEXT NOT NULL,
    ref KEYTEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (organisation_id, ref)
) CLUSTERED;

-- Which person stands behind which seat.
CREATE TABLE bindings (
    organisation_id KEYTEXT NOT NULL,
    key KEYTEXT NOT NULL,
    connection KEYTEXT NOT NULL,
    external_user_id TEXT NOT NULL,
    seat KEYTEXT NOT NULL,
    PRIMARY KEY (organisation_id, key)
) CLUSTERED;
CREATE UNIQUE INDEX bindings_user ON bindings (organisation_id, connection, external_user_id);
