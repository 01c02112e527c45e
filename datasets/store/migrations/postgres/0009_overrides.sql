-- What people know of the hours ahead and no history does. Rows stay: the audit and old explanations name them.
CREATE TABLE overrides (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    -- reserve or release.
    kind text NOT NULL,
    gpus_milli bigint NOT NULL,
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    reason text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    withdrawn_by text,
    withdrawn_at timestamptz
);
CREATE INDEX overrides_by_pool ON overrides (cluster, gpu_model, to_at);

-- The most GPUs that each node of a pool had allocated at the renewals of an hour: {"NODE": [hp, spot]}, thousandths. One row
-- holds all nodes, since they are written and read together.
CREATE TABLE node_hours (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    hour timestamptz NOT NULL,
    peaks_json text NOT NULL,
    PRIMARY KEY (cluster, gpu_model, hour)
);
