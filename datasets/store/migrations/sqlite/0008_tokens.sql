-- Who may ask for what. A token is known by its id; of its secret only the digest is here.
CREATE TABLE tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    role text NOT NULL,
    -- NULL: of every organization.
    organization text,
    -- CLUSTER or CLUSTER:GPU_MODEL, one a line; empty: every pool.
    pools text NOT NULL,
    secret_sha256 blob NOT NULL,
    created_at integer NOT NULL,
    expires_at integer,
    revoked_at integer
) STRICT;

-- What was written, by whom; append-only.
CREATE TABLE audit (
    id integer PRIMARY KEY AUTOINCREMENT,
    at integer NOT NULL,
    -- The name of a token, or who else it was.
    actor text NOT NULL,
    token_id text,
    -- POST /v1/tasks, say, or the name of a command.
    action text NOT NULL,
    -- What it was done to: the path with its query.
    target text NOT NULL,
    -- HTTP status, or 0 of a command.
    status integer NOT NULL,
    -- What was before and after, and why, where that is kept.
    detail_json text
) STRICT;
CREATE INDEX audit_by_time ON audit (at, id);
