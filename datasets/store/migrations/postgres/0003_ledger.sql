-- What the promoted run said at each issue hour, and how it fared: the service writes the first when it forecasts and the
-- second once, when the hours are over. Both as bytes that forecaster::drift writes and reads.
CREATE TABLE issued_forecasts (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    -- The first hour that the forecast is about.
    issue_hour timestamptz NOT NULL,
    run_id bigint NOT NULL REFERENCES runs (id),
    issued_at timestamptz NOT NULL,
    -- NULL until the hours are over and were scored.
    scores bytea,
    forecasts bytea NOT NULL,
    PRIMARY KEY (cluster, issue_hour)
);

-- What the scores taught about the forecasts of a run: written with them, so that each issue hour teaches once.
CREATE TABLE calibrations (
    run_id bigint PRIMARY KEY REFERENCES runs (id),
    state bytea NOT NULL
);
