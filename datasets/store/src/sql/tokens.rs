use super::SqlStore;
use crate::StoreError;
use crate::stored::{Stamp, all};
use crate::tokens::{TokenRecord, TokenRow, TokenStore};
use async_trait::async_trait;
use vocab::{Organization, UnixSeconds};

#[async_trait]
impl TokenStore for SqlStore {
    async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let done = sqlx::query(
            "INSERT INTO tokens
                 (id, name, role, organization, pools, secret_sha256, created_at, expires_at, revoked_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING",
        )
        .bind(&token.id)
        .bind(&token.name)
        .bind(token.role.as_str())
        .bind(token.organization.as_ref().map(Organization::as_str))
        .bind(token.pools.join("\n"))
        .bind(&token.secret_sha256)
        .bind(Stamp(token.created_at))
        .bind(token.expires_at.map(Stamp))
        .bind(token.revoked_at.map(Stamp))
        .execute(&mut *transaction)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::conflict("token", &token.id, "this id is taken"));
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        all(sqlx::query_as::<_, TokenRow>(
            "SELECT id, name, role, organization, pools, secret_sha256, created_at, expires_at, revoked_at
             FROM tokens ORDER BY created_at, id",
        )
        .fetch_all(self.readers())
        .await?)
    }

    async fn revoke_token(&self, id: &str, at: UnixSeconds) -> Result<bool, StoreError> {
        let revoking = sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL");
        let mut transaction = self.begin().await?;
        if revoking.bind(id).bind(Stamp(at)).execute(&mut *transaction).await?.rows_affected() == 1 {
            transaction.commit().await?;
            return Ok(true);
        }
        drop(transaction);
        match sqlx::query("SELECT 1 FROM tokens WHERE id = $1").bind(id).fetch_optional(self.readers()).await? {
            Some(_) => Ok(false),
            None => Err(StoreError::not_found("token", &id)),
        }
    }
}
