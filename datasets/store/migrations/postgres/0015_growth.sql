-- The last quota of each pool and horizon stands here whole, and is overwritten by the next one; the history keeps amounts, and the
-- answer and its explanation only where they say something new ('' elsewhere).
ALTER TABLE newest_quotas ADD COLUMN computed_at timestamptz;
ALTER TABLE newest_quotas ADD COLUMN quota_milli bigint;
ALTER TABLE newest_quotas ADD COLUMN run_id bigint;
ALTER TABLE newest_quotas ADD COLUMN answer_json text;
ALTER TABLE newest_quotas ADD COLUMN explanation_json text;
UPDATE newest_quotas
    SET computed_at = quotas.computed_at, quota_milli = quotas.quota_milli, run_id = quotas.run_id,
        answer_json = quotas.answer_json, explanation_json = quotas.explanation_json
    FROM quotas WHERE quotas.id = newest_quotas.quota_id;
ALTER TABLE newest_quotas ALTER COLUMN computed_at SET NOT NULL;
ALTER TABLE newest_quotas ALTER COLUMN quota_milli SET NOT NULL;
ALTER TABLE newest_quotas ALTER COLUMN answer_json SET NOT NULL;
ALTER TABLE newest_quotas ALTER COLUMN explanation_json SET NOT NULL;
-- Few rows, each overwritten at every renewal: the space of old versions is taken again soon.
ALTER TABLE newest_quotas SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- How much the database held, hour by hour: what the days until its disk is full are reckoned from.
CREATE TABLE sizes (
    at timestamptz PRIMARY KEY,
    bytes bigint NOT NULL
);

-- Checksum of the text of a snapshot; NULL of those that were stored before there was one.
ALTER TABLE pool_snapshots ADD COLUMN sha256 bytea;
