-- Tasks that the service places itself: what was decided, in the order in which it was.

ALTER TABLE nodes ADD COLUMN memory_mib integer;
-- No new pods come while it is set.
ALTER TABLE nodes ADD COLUMN drains integer NOT NULL DEFAULT 0;

-- A pool whose tasks the service places. Whoever appends to its journal states the last entry that it knows, so that two
-- writers notice each other.
CREATE TABLE placed_pools (
    id integer PRIMARY KEY,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    seq integer NOT NULL,
    -- The last entry whose events the webhook has taken.
    announced_seq integer NOT NULL,
    UNIQUE (cluster, gpu_model)
) STRICT;

-- Facts, which alone change the state of a pool, and the events that follow from them.
CREATE TABLE journal (
    pool_id integer NOT NULL,
    seq integer NOT NULL,
    at integer NOT NULL,
    facts_json text NOT NULL,
    events_json text NOT NULL,
    PRIMARY KEY (pool_id, seq)
) STRICT;

-- The state after an entry: what came before it need not be read again.
CREATE TABLE pool_snapshots (
    pool_id integer PRIMARY KEY,
    seq integer NOT NULL,
    snapshot_json text NOT NULL
) STRICT;

-- Each task as it is, and after its end as it was: a repeated request is told by it.
CREATE TABLE tasks (
    pool_id integer NOT NULL,
    id text NOT NULL,
    organization text NOT NULL,
    class text NOT NULL,
    gpus_per_pod_milli integer NOT NULL,
    pods integer NOT NULL,
    cpu_milli integer NOT NULL,
    memory_mib integer NOT NULL,
    guarantee_hours integer,
    submitted integer NOT NULL,
    status text NOT NULL,
    updated integer NOT NULL,
    -- Where it runs, or why it waits.
    detail_json text NOT NULL,
    PRIMARY KEY (pool_id, id)
) STRICT;
