//! Who may ask for what: tokens, of whose secrets only digests are kept.

use crate::StoreError;
use crate::stored::{Stamp, valid};
use async_trait::async_trait;
use vocab::{Organization, UnixSeconds};

/// What a token is good for.
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
    pub const ALL: [Self; 4] = [Self::Read, Self::Report, Self::Place, Self::Admin];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Report => "report",
            Self::Place => "place",
            Self::Admin => "admin",
        }
    }

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
    /// Who uses it, in the words of whoever made it.
    pub name: String,
    pub role: Role,
    /// Tasks and usage of this organization alone.
    pub organization: Option<Organization>,
    /// `CLUSTER` or `CLUSTER:GPU_MODEL`; empty for every pool.
    pub pools: Vec<String>,
    /// SHA-256 of the secret, which has 256 random bits: it cannot be guessed, and needs no slow digest.
    pub secret_sha256: Vec<u8>,
    pub created_at: UnixSeconds,
    pub expires_at: Option<UnixSeconds>,
    pub revoked_at: Option<UnixSeconds>,
}

#[async_trait]
pub trait TokenStore {
    /// # Errors
    /// [`StoreError::Conflict`] where the id is taken.
    async fn insert_token(&self, token: &TokenRecord) -> Result<(), StoreError>;

    /// Every token that was ever made, the revoked ones too, by creation.
    async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;

    /// Answers whether it was in force until now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there was never such a token.
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
        let role = role.ok_or_else(|| StoreError::corrupt("role of a token", &format!("{:?} is none", row.role)))?;
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
