-- Names compare by bytes (COLLATE "C"), as they do in Rust: no order may depend on the locale of a server.
-- Amounts are thousandths of a GPU, columns named *_milli; eta is in millionths, columns named *_micro.

CREATE TABLE clusters (
    name text COLLATE "C" PRIMARY KEY,
    time_zone text NOT NULL,
    calendar text NOT NULL,
    -- Counts the changes of usage and capacity. An append locks this row before it reads anything, so that versions
    -- become visible in their order: a reader who sees the same version twice has missed nothing.
    usage_version bigint NOT NULL DEFAULT 0,
    -- First and last hour of any usage row: a row outside cannot be there yet, so it needs no merge.
    first_hour timestamptz,
    last_hour timestamptz,
    -- The same over organizations other than '*'.
    first_demand_hour timestamptz,
    last_demand_hour timestamptz
);

CREATE TABLE series (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    organization text COLLATE "C" NOT NULL,
    -- When a row of it was last inserted or changed, by the clock of the database.
    changed_at timestamptz NOT NULL,
    UNIQUE (cluster, gpu_model, organization)
-- Room in each page for the new versions of all its rows: a live append sets changed_at of every series, and does so in
-- a sixth of the time where no index has to follow.
) WITH (fillfactor = 45);

-- Partitions usage_YYYY_MM are made when the first row of a month arrives, and dropped whole by retention.
-- The key begins with the hour: live rows arrive hour by hour, so they touch the last pages of the index, where a key
-- that began with the series would touch one page for each series (and log it whole after each checkpoint).
-- No foreign key to series: its check costs more than the rest of an insert, ids are resolved in the transaction that
-- inserts, and a series is never deleted.
CREATE TABLE usage (
    hour timestamptz NOT NULL,
    demand_milli bigint NOT NULL,
    series_id integer NOT NULL,
    PRIMARY KEY (hour, series_id)
) PARTITION BY RANGE (hour);

-- A capacity holds from its hour until the next row of the pool.
CREATE TABLE capacity (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    from_hour timestamptz NOT NULL,
    capacity_milli bigint NOT NULL,
    PRIMARY KEY (cluster, gpu_model, from_hour)
);

CREATE TABLE runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    model text NOT NULL,
    horizon_hours bigint NOT NULL,
    lookback_hours bigint NOT NULL,
    -- Text, since a seed has 64 bits without a sign.
    seed text NOT NULL,
    data_from timestamptz NOT NULL,
    data_until timestamptz NOT NULL,
    data_sha256 bytea NOT NULL,
    series bigint NOT NULL,
    aggregation text NOT NULL,
    -- Text, so that what was stored comes back byte by byte; cast to jsonb to look inside.
    parameters_json text NOT NULL,
    scores_json text NOT NULL,
    code_version text NOT NULL,
    created_at timestamptz NOT NULL,
    train_ms bigint NOT NULL
);
CREATE INDEX runs_by_cluster ON runs (cluster, id);

-- Apart from runs, so that listing runs does not read megabytes.
CREATE TABLE checkpoints (
    run_id bigint PRIMARY KEY REFERENCES runs (id),
    sha256 bytea NOT NULL,
    bytes bytea NOT NULL
);

-- Append-only: the newest row of a cluster names its promoted run.
CREATE TABLE promotions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    run_id bigint NOT NULL REFERENCES runs (id),
    promoted_at timestamptz NOT NULL,
    promoted_by text NOT NULL,
    rolled_back boolean NOT NULL,
    -- Where a rollback from this row leads. A rollback copies it from the row that it returns to, so that a second
    -- rollback goes further back instead of returning to the run that was just given up.
    previous bigint REFERENCES promotions (id)
);
CREATE INDEX promotions_by_cluster ON promotions (cluster, id);

CREATE TABLE quotas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    hours bigint NOT NULL,
    computed_at timestamptz NOT NULL,
    quota_milli bigint NOT NULL,
    run_id bigint REFERENCES runs (id),
    answer_json text NOT NULL,
    explanation_json text NOT NULL
);
CREATE INDEX quotas_by_pool ON quotas (cluster, gpu_model, hours, computed_at, id);

-- The last quota stored of each pool and horizon. Found here rather than by the largest computed_at, since a clock may
-- jump back; and kept by retention, since a service falls back on it for as long as its inputs are missing.
CREATE TABLE newest_quotas (
    cluster text COLLATE "C" NOT NULL,
    gpu_model text COLLATE "C" NOT NULL,
    hours bigint NOT NULL,
    quota_id bigint NOT NULL UNIQUE REFERENCES quotas (id),
    PRIMARY KEY (cluster, gpu_model, hours)
);

CREATE TABLE etas (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    eta_micro bigint NOT NULL,
    moved_at timestamptz NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
);

CREATE TABLE eta_moves (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL,
    gpu_model text COLLATE "C" NOT NULL,
    moved_at timestamptz NOT NULL,
    from_micro bigint NOT NULL,
    to_micro bigint NOT NULL,
    reason text NOT NULL,
    kept bigint NOT NULL,
    broken bigint NOT NULL,
    FOREIGN KEY (cluster, gpu_model) REFERENCES etas (cluster, gpu_model)
);
CREATE INDEX eta_moves_by_pool ON eta_moves (cluster, gpu_model, id);

CREATE TABLE outcomes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id text COLLATE "C" NOT NULL UNIQUE,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    guarantee_hours bigint NOT NULL,
    kind text NOT NULL,
    ended_at timestamptz NOT NULL,
    task text,
    node text,
    received_at timestamptz NOT NULL,
    -- The move of eta that counted it; an outcome moves eta once.
    spent_by bigint REFERENCES eta_moves (id)
);
CREATE INDEX outcomes_by_pool ON outcomes (cluster, gpu_model, ended_at, id);
-- Only what the next move of eta will read: small however long the history grows.
CREATE INDEX outcomes_unspent ON outcomes (cluster, gpu_model, ended_at, id)
    WHERE spent_by IS NULL AND kind IN ('kept', 'broken');

-- A node's name is unique in its cluster: two clusters may both have a "node-1".
CREATE TABLE nodes (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    id text COLLATE "C" NOT NULL,
    gpu_model text COLLATE "C" NOT NULL,
    gpus bigint NOT NULL,
    cpu_milli bigint,
    PRIMARY KEY (cluster, id)
);

CREATE TABLE pool_states (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    capacity_milli bigint NOT NULL,
    idle_milli bigint NOT NULL,
    longest_quota_wait_s bigint NOT NULL,
    as_of timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
);

CREATE TABLE pool_state_spot (
    cluster text COLLATE "C" NOT NULL,
    gpu_model text COLLATE "C" NOT NULL,
    guarantee_hours bigint NOT NULL,
    spot_milli bigint NOT NULL,
    PRIMARY KEY (cluster, gpu_model, guarantee_hours),
    FOREIGN KEY (cluster, gpu_model) REFERENCES pool_states (cluster, gpu_model)
);

CREATE TABLE pool_settings (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    settings_json text NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
);
