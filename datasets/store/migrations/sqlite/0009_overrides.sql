-- What people know of the hours ahead and no history does. Rows stay: the audit and old explanations name them.
CREATE TABLE overrides (
    id integer PRIMARY KEY AUTOINCREMENT,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    -- reserve or release.
    kind text NOT NULL,
    gpus_milli integer NOT NULL,
    from_at integer NOT NULL,
    to_at integer NOT NULL,
    reason text NOT NULL,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    withdrawn_by text,
    withdrawn_at integer
);
CREATE INDEX overrides_by_pool ON overrides (cluster, gpu_model, to_at);

-- The most GPUs that each node of a pool had allocated at the renewals of an hour: {"NODE": [hp, spot]}, thousandths. One row
-- holds all nodes, since they are written and read together.
CREATE TABLE node_hours (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    hour integer NOT NULL,
    peaks_json text NOT NULL,
    PRIMARY KEY (cluster, gpu_model, hour)
) WITHOUT ROWID;
