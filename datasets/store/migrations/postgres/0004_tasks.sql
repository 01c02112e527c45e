-- Tasks that the service places itself: what was decided, in the order in which it was.

ALTER TABLE nodes ADD COLUMN memory_mib bigint;
-- No new pods come while it is set.
ALTER TABLE nodes ADD COLUMN drains boolean NOT NULL DEFAULT false;

-- A pool whose tasks the service places. Whoever appends to its journal states the last entry that it knows, so that two
-- writers notice each other.
CREATE TABLE placed_pools (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    -- The last entry whose events the webhook has taken.
    announced_seq bigint NOT NULL,
    UNIQUE (cluster, gpu_model)
-- Updated with each commit: room for its versions in one page.
) WITH (fillfactor = 20);

-- Facts, which alone change the state of a pool, and the events that follow from them.
-- No foreign key here and below: its check costs as much as the insert, and a placed pool is never deleted.
CREATE TABLE journal (
    pool_id integer NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL,
    facts_json text NOT NULL,
    events_json text NOT NULL,
    PRIMARY KEY (pool_id, seq)
);

-- The state after an entry: what came before it need not be read again.
CREATE TABLE pool_snapshots (
    pool_id integer PRIMARY KEY,
    seq bigint NOT NULL,
    snapshot_json text NOT NULL
);

-- Each task as it is, and after its end as it was: a repeated request is told by it.
CREATE TABLE tasks (
    pool_id integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    organization text COLLATE "C" NOT NULL,
    class text NOT NULL,
    gpus_per_pod_milli bigint NOT NULL,
    pods bigint NOT NULL,
    cpu_milli bigint NOT NULL,
    memory_mib bigint NOT NULL,
    guarantee_hours bigint,
    submitted timestamptz NOT NULL,
    status text NOT NULL,
    updated timestamptz NOT NULL,
    -- Where it runs, or why it waits.
    detail_json text NOT NULL,
    PRIMARY KEY (pool_id, id)
) WITH (fillfactor = 60);
