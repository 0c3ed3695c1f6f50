-- 1: the organisation was deleted with its data, which a background job takes away.
ALTER TABLE organisations ADD COLUMN purge INTEGER NOT NULL DEFAULT 0;
CREATE INDEX organisations_purge ON organisations (id) WHERE purge = 1;
