-- Since when and of how many GPUs a promise was: the kept rate is a survival, weighted by GPUs. NULL where the reporter did not say.
ALTER TABLE outcomes ADD COLUMN began_at integer;
ALTER TABLE outcomes ADD COLUMN gpus_milli integer;
