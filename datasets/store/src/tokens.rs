//! Tokens of clients. Of their secrets only digests are stored.

use crate::StoreError;
use crate::stored::{Stamp, valid};
use async_trait::async_trait;
use vocab::{Organization, UnixSeconds};

/// Permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Read,
    /// Reads, and reports usage, outcomes, nodes and the state of pools.
    Report,
    /// Reads, and submits and ends tasks.
    Place,
    /// Everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Read, Self::Report, Self::Place, Self::Admin];

    /// Its name, such as `read`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Report => "report",
            Self::Place => "place",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its public part.
    pub id: String,
    /// Its user, as its creator named them.
    pub name: String,
    /// Its permissions.
    pub role: Role,
    /// If given, the token reads and writes tasks and usage of this organization only.
    pub organization: Option<Organization>,
    /// Its pools, each `CLUSTER` or `CLUSTER:GPU_MODEL`; empty for every pool.
    pub pools: Vec<String>,
    /// SHA-256 of the secret. The secret has 256 random bits: it cannot be guessed, and needs no slow digest.
    pub secret_sha256: Vec<u8>,
    /// Time of its creation.
    pub created_at: UnixSeconds,
    /// Time from which it is refused.
    pub expires_at: Option<UnixSeconds>,
    /// Time of its revocation.
    pub revoked_at: Option<UnixSeconds>,
}

/// Tokens of clients.
#[async_trait]
pub trait TokenStore {
    /// Stores a new token.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the id is taken.
    async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError>;

    /// Every token, revoked ones too, by time of creation.
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;

    /// Revokes a token. Returns whether it was valid until now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the token is unknown.
    async fn revoke_token(&self, id: &str, at: UnixSeconds) -> Result<bool, StoreError>;
}

row! {
    pub(crate) struct TokenRow {
        pub id: String,
        pub name: String,
        pub role: String,
        pub organization: Option<String>,
        pub pools: String,
        pub secret_sha256: Vec<u8>,
        pub created_at: Stamp,
        pub expires_at: Option<Stamp>,
        pub revoked_at: Option<Stamp>,
    }
}

impl TryFrom<TokenRow> for TokenRecord {
    type Error = StoreError;

    fn try_from(row: TokenRow) -> Result<Self, StoreError> {
        let role = Role::parse(&row.role);
        let role =
            role.ok_or_else(|| StoreError::corrupt("role of a token", &format!("unknown value {:?}", row.role)))?;
        let organization =
            row.organization.map(|name| valid("organization", Organization::parse(&name))).transpose()?;
        Ok(Self {
            id: row.id,
            name: row.name,
            role,
            organization,
            pools: row.pools.lines().map(str::to_owned).collect(),
            secret_sha256: row.secret_sha256,
            created_at: row.created_at.0,
            expires_at: row.expires_at.map(|stamp| stamp.0),
            revoked_at: row.revoked_at.map(|stamp| stamp.0),
        })
    }
}
