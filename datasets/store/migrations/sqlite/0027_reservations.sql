-- GPUs that are sold ahead. Rows stay: the audit and old explanations name them.
CREATE TABLE reservations (
    id integer PRIMARY KEY AUTOINCREMENT,
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    organization text NOT NULL,
    gpus_milli integer NOT NULL,
    -- The first window.
    from_at integer NOT NULL,
    to_at integer NOT NULL,
    -- Days of a weekly repetition such as MO,TU, in the time zone of the cluster; null for a single window.
    days text,
    -- No window begins then or later; null for ever.
    until_at integer,
    -- When its last window is over at the latest; null for never.
    ends_at integer,
    created_by text NOT NULL,
    created_at integer NOT NULL,
    withdrawn_by text,
    withdrawn_at integer
) STRICT;
CREATE INDEX reservations_by_pool ON reservations (cluster, gpu_model, ends_at);
