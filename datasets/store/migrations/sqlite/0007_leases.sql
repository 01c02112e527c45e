-- Which service writes for the pools of a cluster. Whoever holds the lease counts `beat` up; who sees it stand still takes the
-- lease with the next epoch, and no write of an older epoch is taken from then on. No clock plays a part.
CREATE TABLE leases (
    cluster text PRIMARY KEY REFERENCES clusters (name),
    holder text NOT NULL,
    -- Where other services reach the holder; empty where they cannot.
    address text NOT NULL,
    epoch integer NOT NULL,
    beat integer NOT NULL,
    released integer NOT NULL
) STRICT;

-- The epoch of its writer; NULL of entries from before there were leases.
ALTER TABLE journal ADD COLUMN epoch integer;
