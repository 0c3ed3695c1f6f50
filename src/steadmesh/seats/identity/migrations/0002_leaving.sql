-- Why an operator suspended a seat; which retired seat one goes on from, and whose workspace it uses then.
ALTER TABLE seats ADD COLUMN suspended_reason TEXT;
ALTER TABLE seats ADD COLUMN adopted_from KEYTEXT;
ALTER TABLE seats ADD COLUMN workspace_of KEYTEXT;
CREATE UNIQUE INDEX seats_adopted ON seats (adopted_from) WHERE adopted_from IS NOT NULL;
CREATE INDEX seats_retiring ON seats (retire_by) WHERE retire_by IS NOT NULL AND retired_at IS NULL;
