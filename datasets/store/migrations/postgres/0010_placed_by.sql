-- Which side places the tasks of a pool: headroom, or an external scheduler that reports the state of the pool. A pool without a
-- row is undecided: its first task, first reported state or first setting decides.
CREATE TABLE pool_placement (
    cluster text COLLATE "C" NOT NULL REFERENCES clusters (name),
    gpu_model text COLLATE "C" NOT NULL,
    -- headroom or external.
    placed_by text NOT NULL,
    -- Null where the migration decided.
    since timestamptz,
    set_by text NOT NULL,
    PRIMARY KEY (cluster, gpu_model)
);

-- Until this version a single task made a pool one of Headroom's, whatever its scheduler reported. A pool with open tasks stays
-- one. A pool whose state was reported after its last task changed belongs to the scheduler that reports.
INSERT INTO pool_placement (cluster, gpu_model, placed_by, set_by)
SELECT cluster, gpu_model, 'headroom', 'migration' FROM placed_pools
WHERE EXISTS (SELECT 1 FROM tasks WHERE pool_id = placed_pools.id AND status IN ('waiting', 'running'))
   OR EXISTS (SELECT 1 FROM tasks WHERE pool_id = placed_pools.id) AND NOT EXISTS (
        SELECT 1 FROM pool_states AS state
        WHERE state.cluster = placed_pools.cluster AND state.gpu_model = placed_pools.gpu_model
          AND state.received_at >= (SELECT max(updated) FROM tasks WHERE pool_id = placed_pools.id));
INSERT INTO pool_placement (cluster, gpu_model, placed_by, set_by)
SELECT cluster, gpu_model, 'external', 'migration' FROM pool_states AS state
WHERE NOT EXISTS (
    SELECT 1 FROM pool_placement AS known WHERE known.cluster = state.cluster AND known.gpu_model = state.gpu_model);
