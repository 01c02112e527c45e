//! Access: bearer tokens with roles and scopes.
//!
//! A token is `hr_ID_SECRET`. The secret has 256 random bits; the database stores its SHA-256, and digests are compared in constant
//! time. A service without any token admits every caller as admin, and listens on its own machine alone.

pub mod command;
mod rules;
mod service;
mod token;

pub use rules::{Need, cluster_in_query, decoded, path_segment, pool_in_path, pool_in_query, queried};
pub use service::Access;
pub use token::{ID_BYTES, NewToken, SECRET_BYTES, digest, split};

use arc_swap::ArcSwap;
use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Role, Store, StoreError, TokenRecord};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use vocab::{ClusterName, Organization, PoolId, UnixSeconds};

/// So long a request with an unknown token waits for the next reading of the tokens, which comes after a fifth of `lease_s`, a second
/// as delivered.
const KNOWN_WITHIN: Duration = Duration::from_millis(1_500);

/// A caller with a role and a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token, for the audit.
    pub name: String,
    pub token_id: Option<String>,
    role: Role,
    organization: Option<Organization>,
    pools: Vec<String>,
}

impl Caller {
    /// Any caller of a service without tokens.
    #[must_use]
    pub fn anyone() -> Self {
        Self { name: "anyone".to_owned(), token_id: None, role: Role::Admin, organization: None, pools: Vec::new() }
    }

    /// A caller whose token has an organization.
    #[cfg(test)]
    #[must_use]
    pub fn of_organization(name: &str) -> Self {
        Self { organization: Organization::parse(name).ok(), ..Self::anyone() }
    }

    fn of(record: TokenRecord) -> Self {
        let TokenRecord { id, name, role, organization, pools, .. } = record;
        Self { name, token_id: Some(id), role, organization, pools }
    }

    /// Whether the role covers a required one.
    #[must_use]
    pub fn may(&self, need: Need) -> bool {
        match need {
            Need::Nothing | Need::Read => true,
            Need::Report => matches!(self.role, Role::Report | Role::Admin),
            Need::Place => matches!(self.role, Role::Place | Role::Admin),
            Need::Admin => self.role == Role::Admin,
        }
    }

    /// Whether the scope is limited.
    #[must_use]
    pub fn is_scoped(&self) -> bool {
        self.organization.is_some() || !self.pools.is_empty()
    }

    /// The one organization of its scope.
    #[must_use]
    pub const fn organization(&self) -> Option<&Organization> {
        self.organization.as_ref()
    }

    #[must_use]
    pub fn may_pool(&self, pool: &PoolId) -> bool {
        let is_of = |scope: &String| *scope == pool.to_string() || *scope == pool.cluster.as_str();
        self.pools.is_empty() || self.pools.iter().any(is_of)
    }

    /// Whether every pool of a cluster is in the scope.
    #[must_use]
    pub fn may_cluster(&self, cluster: &ClusterName) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|scope| scope == cluster.as_str())
    }

    #[must_use]
    pub fn may_organization(&self, organization: &Organization) -> bool {
        self.organization.as_ref().is_none_or(|mine| mine == organization)
    }
}

/// The reason for which a caller was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The request has no token.
    Missing,
    /// Its token is not valid: whether it once was stays secret.
    Unknown,
}

#[derive(Clone)]
struct Known {
    secret_sha256: Vec<u8>,
    until: Option<UnixSeconds>,
    caller: Arc<Caller>,
}

struct Table {
    /// Whether a token is required.
    closed: bool,
    known: BTreeMap<String, Known>,
}

/// A token in the file that is read while the database is away: good for reading quotas.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptToken {
    id: String,
    secret_sha256: Vec<u8>,
    pools: Vec<String>,
    until_unix_s: Option<i64>,
}

/// The valid tokens, in memory: a request takes no lock and waits for no database.
pub struct Tokens {
    table: ArcSwap<Table>,
    /// Counts changes of the table, for open streams.
    changes: watch::Sender<u64>,
    /// Counts readings of the database.
    reads: watch::Sender<u64>,
    anyone: Arc<Caller>,
}

impl Tokens {
    /// No caller is admitted before the tokens were read.
    #[must_use]
    pub fn new() -> Self {
        let table = Table { closed: true, known: BTreeMap::new() };
        let [changes, reads] = [(); 2].map(|()| watch::Sender::new(0));
        Self { table: ArcSwap::from_pointee(table), changes, reads, anyone: Arc::new(Caller::anyone()) }
    }

    /// Reads the tokens again, and returns the number of valid ones. `from_afar`: other machines reach the service, and a token is
    /// always required.
    ///
    /// # Errors
    /// The database does not answer: the known tokens stay valid.
    pub async fn read(&self, store: &dyn Store, from_afar: bool, now: UnixSeconds) -> Result<usize, StoreError> {
        // Whether the database answers or not.
        self.expire(now);
        let records = store.tokens().await?;
        let closed = from_afar || !records.is_empty();
        let is_valid =
            |record: &TokenRecord| record.revoked_at.is_none() && record.expires_at.is_none_or(|until| now < until);
        let known: BTreeMap<String, Known> = records.into_iter().filter(is_valid).map(known).collect();
        let count = known.len();
        self.replace(Table { closed, known });
        self.reads.send_modify(|count| *count += 1);
        Ok(count)
    }

    /// Removes expired tokens.
    fn expire(&self, now: UnixSeconds) {
        let table = self.table.load();
        let is_over = |known: &Known| known.until.is_some_and(|until| until <= now);
        if table.known.values().any(is_over) {
            let left = table.known.iter().filter(|(_, known)| !is_over(known));
            let known = left.map(|(id, known)| (id.clone(), known.clone())).collect();
            self.replace(Table { closed: table.closed, known });
        }
    }

    fn replace(&self, table: Table) {
        let before = self.table.swap(Arc::new(table));
        let now = self.table.load();
        if before.closed != now.closed || !before.known.keys().eq(now.known.keys()) {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Whether every caller is admitted, without a token.
    #[must_use]
    pub fn are_open(&self) -> bool {
        !self.table.load().closed
    }

    /// Returns when an admitted caller would no longer be admitted: its token was revoked or has expired, or the first token was
    /// created.
    pub async fn expired(&self, caller: &Caller) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let is_in = {
                let table = self.table.load();
                caller.token_id.as_ref().map_or(!table.closed, |id| table.known.contains_key(id))
            };
            if !is_in || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The table for a start without the database: whether a token is required, and the valid ones.
    #[must_use]
    pub fn kept(&self) -> (bool, Vec<KeptToken>) {
        let table = self.table.load();
        let kept = |(id, known): (&String, &Known)| KeptToken {
            id: id.clone(),
            secret_sha256: known.secret_sha256.clone(),
            pools: known.caller.pools.clone(),
            until_unix_s: known.until.map(UnixSeconds::get),
        };
        (table.closed, table.known.iter().map(kept).collect())
    }

    /// The tokens of such a table.
    #[must_use]
    pub fn of_kept(kept: Vec<KeptToken>, closed: bool) -> Self {
        let one = |kept: KeptToken| {
            let KeptToken { id, secret_sha256, pools, until_unix_s } = kept;
            let (name, token_id) = (id.clone(), Some(id.clone()));
            let caller = Arc::new(Caller { name, token_id, role: Role::Read, organization: None, pools });
            (id, Known { secret_sha256, until: until_unix_s.map(UnixSeconds::new), caller })
        };
        let table = Table { closed, known: kept.into_iter().map(one).collect() };
        Self { table: ArcSwap::from_pointee(table), ..Self::new() }
    }

    /// The caller of a request, by its header `Authorization`.
    ///
    /// # Errors
    /// A token is required, and the request has no valid one.
    pub fn admit(&self, header: Option<&HeaderValue>, now: UnixSeconds) -> Result<Arc<Caller>, Refused> {
        let table = self.table.load();
        if !table.closed {
            return Ok(self.anyone.clone());
        }
        let header = header.ok_or(Refused::Missing)?;
        let (id, secret) = header.to_str().ok().and_then(bearer).and_then(split).ok_or(Refused::Unknown)?;
        let digest = digest(secret);
        let known = table.known.get(id).ok_or(Refused::Unknown)?;
        let is_it = bool::from(known.secret_sha256.as_slice().ct_eq(&digest));
        let is_valid = known.until.is_none_or(|until| now < until);
        if is_it && is_valid { Ok(known.caller.clone()) } else { Err(Refused::Unknown) }
    }

    /// As [`admit`](Self::admit), but for a token that is not known yet, since it may have been created a moment ago: waits until the tokens
    /// are read once more.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub async fn admit_new(&self, header: Option<&HeaderValue>, now: UnixSeconds) -> Result<Arc<Caller>, Refused> {
        let mut reads = self.reads.subscribe();
        let is_new = || token_id(header).is_some_and(|id| !self.table.load().known.contains_key(&id));
        match self.admit(header, now) {
            Err(Refused::Unknown) if is_new() => {
                // Without a database the known ones stay.
                let _ = tokio::time::timeout(KNOWN_WITHIN, reads.changed()).await;
                self.admit(header, now)
            }
            answered => answered,
        }
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

fn known(record: TokenRecord) -> (String, Known) {
    let (id, secret_sha256, until) = (record.id.clone(), record.secret_sha256.clone(), record.expires_at);
    (id, Known { secret_sha256, until, caller: Arc::new(Caller::of(record)) })
}

/// The id of the token that a header `Authorization` carries, where it is one that the service could have made.
#[must_use]
pub fn token_id(header: Option<&HeaderValue>) -> Option<String> {
    let (id, _) = header?.to_str().ok().and_then(bearer).and_then(split)?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| id.to_owned())
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
