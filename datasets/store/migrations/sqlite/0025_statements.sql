-- Where the GPU time of a placed pool went, day by day of UTC, as the caller writes it. A day is stored once it is over.
CREATE TABLE statement_days (
    pool_id integer NOT NULL,
    day integer NOT NULL,
    accounts_json text NOT NULL,
    PRIMARY KEY (pool_id, day)
) STRICT;

-- The accounts of the present day beside the snapshot of an entry. A program that knows them not moves `seq` alone.
ALTER TABLE pool_snapshots ADD COLUMN accounts_json text;
ALTER TABLE pool_snapshots ADD COLUMN accounts_seq integer;
