-- What a quota rests on: the lease under which it was stored, and the settings of its pool that it knew; null in rows of earlier
-- programs, and the latter where the pool had none.
ALTER TABLE quotas ADD COLUMN lease_epoch bigint;
ALTER TABLE quotas ADD COLUMN settings_version bigint;
