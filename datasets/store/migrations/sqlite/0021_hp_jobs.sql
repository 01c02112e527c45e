-- The HP jobs that a scheduler reports with the state of its pool: the time of the report, then a line each with task,
-- organization, thousandths of a GPU, and the seconds since 1970 of its submission and of its start, separated by tabs. Null where it
-- reports none.
ALTER TABLE pool_states ADD COLUMN hp_jobs text;
