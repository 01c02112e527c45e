-- What was learned of a pool, written with the quota that was made of it: a restart or another leader does not begin anew. How
-- demand moves is large and changes little, so that it is written more seldom.
CREATE TABLE learned (
    cluster text NOT NULL REFERENCES clusters (name),
    gpu_model text NOT NULL,
    saved_at integer NOT NULL,
    risk blob NOT NULL,
    live blob NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
) STRICT;
