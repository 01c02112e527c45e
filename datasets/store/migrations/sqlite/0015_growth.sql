-- Answer and explanation of the last quota of each pool and horizon stand here, and are overwritten by the next one; the history keeps
-- amounts, and those two only where they say something new ('' elsewhere).
-- whole_id says which quota that is: a program of the version before moves quota_id alone, and stores quotas whole.
ALTER TABLE newest_quotas ADD COLUMN whole_id integer;
ALTER TABLE newest_quotas ADD COLUMN answer_json text;
ALTER TABLE newest_quotas ADD COLUMN explanation_json text;

-- How much the database held, hour by hour: what the days until its disk is full are reckoned from.
CREATE TABLE sizes (
    at integer PRIMARY KEY,
    bytes integer NOT NULL
) STRICT;

-- Checksum of the text of a snapshot, and the entry of that snapshot: a program of the version before replaces the text alone.
ALTER TABLE pool_snapshots ADD COLUMN sha256 blob;
ALTER TABLE pool_snapshots ADD COLUMN sha256_seq integer;
