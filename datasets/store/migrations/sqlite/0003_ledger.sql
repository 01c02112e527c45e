-- What the promoted run said at each issue hour, and how it fared: the service writes the first when it forecasts and the
-- second once, when the hours are over. Both as bytes that forecaster::drift writes and reads.
CREATE TABLE issued_forecasts (
    cluster text NOT NULL REFERENCES clusters (name),
    -- The first hour that the forecast is about.
    issue_hour integer NOT NULL,
    run_id integer NOT NULL REFERENCES runs (id),
    issued_at integer NOT NULL,
    -- NULL until the hours are over and were scored. Before the forecasts, so that a look for it need not pass them.
    scores blob,
    forecasts blob NOT NULL,
    PRIMARY KEY (cluster, issue_hour)
) STRICT;

-- What the scores taught about the forecasts of a run: written with them, so that each issue hour teaches once.
CREATE TABLE calibrations (
    run_id integer PRIMARY KEY REFERENCES runs (id),
    state blob NOT NULL
) STRICT;
