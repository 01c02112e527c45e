-- Who may ask for what. A token is known by its id; of its secret only the digest is here.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    role text NOT NULL,
    -- NULL: of every organization.
    organization text COLLATE "C",
    -- CLUSTER or CLUSTER:GPU_MODEL, one a line; empty: every pool.
    pools text NOT NULL,
    secret_sha256 bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- What was written, by whom; append-only.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    -- The name of a token, or who else it was.
    actor text NOT NULL,
    token_id text,
    -- POST /v1/tasks, say, or the name of a command.
    action text NOT NULL,
    -- What it was done to: the path with its query.
    target text NOT NULL,
    -- HTTP status, or 0 of a command.
    status bigint NOT NULL,
    -- What was before and after, and why, where that is kept.
    detail_json text
);
CREATE INDEX audit_by_time ON audit (at, id);
