-- Knowledge of the starts of a pool's tasks: how long its jobs run, what arrives, and how forecasts of starts fared.
CREATE TABLE starts (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    saved_at integer NOT NULL,
    learned blob NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
) STRICT;
