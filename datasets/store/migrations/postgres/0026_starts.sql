-- Knowledge of the starts of a pool's tasks: how long its jobs run, what arrives, and how forecasts of starts fared.
CREATE TABLE starts (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    saved_at timestamptz NOT NULL,
    learned bytea NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
);
