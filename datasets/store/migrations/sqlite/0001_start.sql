-- The same tables as in migrations/postgres. Instants and hours are seconds since 1970; text compares by bytes, which
-- is the default here. Amounts are thousandths of a GPU, columns named *_milli; eta is in millionths, columns named
-- *_micro. STRICT, so that a value of another type is refused when it is written rather than when it is read.

CREATE TABLE clusters (
    name text PRIMARY KEY,
    time_zone text NOT NULL,
    calendar text NOT NULL,
    -- Counts the changes of usage and capacity. A database has one writer, so that versions become visible
    -- in their order: a reader who sees the same version twice has missed nothing.
    usage_version integer NOT NULL DEFAULT 0,
    -- First and last hour of any usage row: a row outside cannot be there yet, so it needs no merge.
    first_hour integer,
    last_hour integer,
    -- The same over organizations other than '*'.
    first_demand_hour integer,
    last_demand_hour integer
) STRICT;

CREATE TABLE series (
    id integer PRIMARY KEY,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    organization text NOT NULL,
    -- When a row of it was last inserted or changed, by the clock of the database.
    changed_at integer NOT NULL,
    UNIQUE (cluster, gpu_model, organization)
) STRICT;

-- The key begins with the series: a series lies together, and a load reads it in the order in which it is handed out.
-- No foreign key to series: ids are resolved in the transaction that inserts, and a series is never deleted.
CREATE TABLE usage (
    series_id integer NOT NULL,
    hour integer NOT NULL,
    demand_milli integer NOT NULL,
    PRIMARY KEY (series_id, hour)
) STRICT, WITHOUT ROWID;

-- A capacity holds from its hour until the next row of the pool.
CREATE TABLE capacity (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    from_hour integer NOT NULL,
    capacity_milli integer NOT NULL,
    PRIMARY KEY (cluster, gpu_model, from_hour)
) STRICT;

CREATE TABLE runs (
    id integer PRIMARY KEY,
    cluster text NOT NULL REFERENCES clusters (name),
    model text NOT NULL,
    horizon_hours integer NOT NULL,
    lookback_hours integer NOT NULL,
    -- Text, since a seed has 64 bits without a sign.
    seed text NOT NULL,
    data_from integer NOT NULL,
    data_until integer NOT NULL,
    data_sha256 blob NOT NULL,
    series integer NOT NULL,
    aggregation text NOT NULL,
    -- Text, so that what was stored comes back byte by byte; json_extract looks inside.
    parameters_json text NOT NULL,
    scores_json text NOT NULL,
    code_version text NOT NULL,
    created_at integer NOT NULL,
    train_ms integer NOT NULL
) STRICT;
CREATE INDEX runs_by_cluster ON runs (cluster, id);

-- Apart from runs, so that listing runs does not read megabytes.
CREATE TABLE checkpoints (
    run_id integer PRIMARY KEY REFERENCES runs (id),
    sha256 blob NOT NULL,
    bytes blob NOT NULL
) STRICT;

-- Append-only: the newest row of a cluster names its promoted run.
CREATE TABLE promotions (
    id integer PRIMARY KEY,
    cluster text NOT NULL REFERENCES clusters (name),
    run_id integer NOT NULL REFERENCES runs (id),
    promoted_at integer NOT NULL,
    promoted_by text NOT NULL,
    rolled_back integer NOT NULL,
    -- Where a rollback from this row leads. A rollback copies it from the row that it returns to, so that a second
    -- rollback goes further back instead of returning to the run that was just given up.
    previous integer REFERENCES promotions (id)
) STRICT;
CREATE INDEX promotions_by_cluster ON promotions (cluster, id);

CREATE TABLE quotas (
    id integer PRIMARY KEY,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    hours integer NOT NULL,
    computed_at integer NOT NULL,
    quota_milli integer NOT NULL,
    run_id integer REFERENCES runs (id),
    answer_json text NOT NULL,
    explanation_json text NOT NULL
) STRICT;
CREATE INDEX quotas_by_pool ON quotas (cluster, gpu_model, hours, computed_at, id);

-- The last quota stored of each pool and horizon. Found here rather than by the largest computed_at, since a clock may
-- jump back; and kept by retention, since a service falls back on it for as long as its inputs are missing.
CREATE TABLE newest_quotas (
    cluster text NOT NULL,
    gpu_model text NOT NULL,
    hours integer NOT NULL,
    quota_id integer NOT NULL UNIQUE REFERENCES quotas (id),
    PRIMARY KEY (cluster, gpu_model, hours)
) STRICT;

CREATE TABLE etas (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    eta_micro integer NOT NULL,
    moved_at integer NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
) STRICT;

CREATE TABLE eta_moves (
    id integer PRIMARY KEY,
    cluster text NOT NULL,
    gpu_model text NOT NULL,
    moved_at integer NOT NULL,
    from_micro integer NOT NULL,
    to_micro integer NOT NULL,
    reason text NOT NULL,
    kept integer NOT NULL,
    broken integer NOT NULL,
    FOREIGN KEY (cluster, gpu_model) REFERENCES etas (cluster, gpu_model)
) STRICT;
CREATE INDEX eta_moves_by_pool ON eta_moves (cluster, gpu_model, id);

CREATE TABLE outcomes (
    id integer PRIMARY KEY,
    event_id text NOT NULL UNIQUE,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    guarantee_hours integer NOT NULL,
    kind text NOT NULL,
    ended_at integer NOT NULL,
    task text,
    node text,
    received_at integer NOT NULL,
    -- The move of eta that counted it; an outcome moves eta once.
    spent_by integer REFERENCES eta_moves (id)
) STRICT;
CREATE INDEX outcomes_by_pool ON outcomes (cluster, gpu_model, ended_at, id);
-- Only what the next move of eta will read: small however long the history grows.
CREATE INDEX outcomes_unspent ON outcomes (cluster, gpu_model, ended_at, id)
    WHERE spent_by IS NULL AND kind IN ('kept', 'broken');

-- A node's name is unique in its cluster: two clusters may both have a "node-1".
CREATE TABLE nodes (
    cluster text NOT NULL REFERENCES clusters (name),
    id text NOT NULL,
    gpu_model text NOT NULL,
    gpus integer NOT NULL,
    cpu_milli integer,
    PRIMARY KEY (cluster, id)
) STRICT;

CREATE TABLE pool_states (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    capacity_milli integer NOT NULL,
    idle_milli integer NOT NULL,
    longest_quota_wait_s integer NOT NULL,
    as_of integer NOT NULL,
    received_at integer NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
) STRICT;

CREATE TABLE pool_state_spot (
    cluster text NOT NULL,
    gpu_model text NOT NULL,
    guarantee_hours integer NOT NULL,
    spot_milli integer NOT NULL,
    PRIMARY KEY (cluster, gpu_model, guarantee_hours),
    FOREIGN KEY (cluster, gpu_model) REFERENCES pool_states (cluster, gpu_model)
) STRICT;

CREATE TABLE pool_settings (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    settings_json text NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
) STRICT;
