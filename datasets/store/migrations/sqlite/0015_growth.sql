-- The last quota of each pool and horizon stands here whole, and is overwritten by the next one; the history keeps amounts, and the
-- answer and its explanation only where they say something new ('' elsewhere).
ALTER TABLE newest_quotas ADD COLUMN computed_at integer NOT NULL DEFAULT 0;
ALTER TABLE newest_quotas ADD COLUMN quota_milli integer NOT NULL DEFAULT 0;
ALTER TABLE newest_quotas ADD COLUMN run_id integer;
ALTER TABLE newest_quotas ADD COLUMN answer_json text NOT NULL DEFAULT '';
ALTER TABLE newest_quotas ADD COLUMN explanation_json text NOT NULL DEFAULT '';
UPDATE newest_quotas
    SET computed_at = quotas.computed_at, quota_milli = quotas.quota_milli, run_id = quotas.run_id,
        answer_json = quotas.answer_json, explanation_json = quotas.explanation_json
    FROM quotas WHERE quotas.id = newest_quotas.quota_id;

-- How much the database held, hour by hour: what the days until its disk is full are reckoned from.
CREATE TABLE sizes (
    at integer PRIMARY KEY,
    bytes integer NOT NULL
) STRICT;

-- Checksum of the text of a snapshot; NULL of those that were stored before there was one.
ALTER TABLE pool_snapshots ADD COLUMN sha256 blob;
