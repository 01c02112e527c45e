-- GPUs that are sold ahead. Rows stay: the audit and old explanations name them.
CREATE TABLE reservations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    organization text COLLATE "C" NOT NULL,
    gpus_milli bigint NOT NULL,
    -- The first window.
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    -- Days of a weekly repetition such as MO,TU, in the time zone of the cluster; null for a single window.
    days text COLLATE "C",
    -- No window begins then or later; null for ever.
    until_at timestamptz,
    -- When its last window is over at the latest; null for never.
    ends_at timestamptz,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    withdrawn_by text,
    withdrawn_at timestamptz
);
CREATE INDEX reservations_by_pool ON reservations (cluster, gpu_model, ends_at);
