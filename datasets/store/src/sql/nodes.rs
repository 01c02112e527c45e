use super::SqlStore;
use crate::StoreError;
use crate::error::unless_missing;
use crate::nodes::{NodeRow, NodeStore};
use crate::stored::{all, signed};
use async_trait::async_trait;
use vocab::{ClusterName, Node, NodeId, PoolId};

#[async_trait]
impl NodeStore for SqlStore {
    async fn put_node(&self, node: &Node) -> Result<(), StoreError> {
        let cpu_milli = node.cpu_milli.map(|milli| signed("CPUs of a node", milli)).transpose()?;
        let memory_mib = node.memory_mib.map(|mib| signed("memory of a node", mib)).transpose()?;
        let mut transaction = self.begin().await?;
        sqlx::query(
            "INSERT INTO nodes (cluster, id, gpu_model, gpus, cpu_milli, memory_mib, drains, topology)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (cluster, id) DO UPDATE
             SET gpu_model = excluded.gpu_model, gpus = excluded.gpus, cpu_milli = excluded.cpu_milli,
                 memory_mib = excluded.memory_mib, drains = excluded.drains, topology = excluded.topology",
        )
        .bind(node.pool.cluster.as_str())
        .bind(node.id.as_str())
        .bind(node.pool.gpu_model.as_str())
        .bind(i64::from(node.gpus))
        .bind(cpu_milli)
        .bind(memory_mib)
        .bind(node.drains)
        .bind(node.topology.as_ref().map(ToString::to_string))
        .execute(&mut *transaction)
        .await
        .map_err(unless_missing("cluster", &node.pool.cluster))?;
        transaction.commit().await?;
        Ok(())
    }

    async fn delete_node(&self, cluster: &ClusterName, id: &NodeId) -> Result<(), StoreError> {
        let deleting = sqlx::query("DELETE FROM nodes WHERE cluster = $1 AND id = $2");
        let mut transaction = self.begin().await?;
        let done = deleting.bind(cluster.as_str()).bind(id.as_str()).execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("node", &format!("{cluster}:{id}")));
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn nodes(&self, cluster: &ClusterName) -> Result<Vec<Node>, StoreError> {
        let query = sqlx::query_as::<_, NodeRow>(
            "SELECT cluster, id, gpu_model, gpus, cpu_milli, memory_mib, drains, topology FROM nodes
             WHERE cluster = $1 ORDER BY id",
        );
        all(query.bind(cluster.as_str()).fetch_all(self.readers()).await?)
    }

    async fn pool_nodes(&self, pool: &PoolId) -> Result<Vec<Node>, StoreError> {
        let query = sqlx::query_as::<_, NodeRow>(
            "SELECT cluster, id, gpu_model, gpus, cpu_milli, memory_mib, drains, topology FROM nodes
             WHERE cluster = $1 AND gpu_model = $2 ORDER BY id",
        );
        all(query.bind(pool.cluster.as_str()).bind(pool.gpu_model.as_str()).fetch_all(self.readers()).await?)
    }
}
