//! `quota-service token`: creates, lists and revokes tokens, for operators with access to the database.

use super::{ID_BYTES, NewToken, SECRET_BYTES, digest};
use crate::args::{NewTokenFlags, TokenCommand};
use crate::clock::Clock;
use command_line::{
    Exit, Failure, is_stdout_lost, json_text, print_json, print_notice, print_text, say, table, try_print_text,
};
use serde_json::{Value, json};
use store::{AuditRecord, Role, Store, StoreError, TokenRecord};
use vocab::{ClusterName, Organization, PoolId, UnixSeconds};

const SECONDS_PER_DAY: i64 = vocab::SECONDS_PER_DAY;

/// Runs a command, and prints its result.
///
/// # Errors
/// The database does not answer, or a flag is invalid.
pub async fn run(command: TokenCommand, database: &str, json: bool) -> Result<(), Failure> {
    let opened = match &command {
        // The first token may come before the first start of the service. Refused flags create no database.
        TokenCommand::Create(flags) => {
            let _ = parse(flags)?;
            if is_stdout_lost() {
                let why = "stdout is closed or /dev/null, where nobody would see the token; none was made: send stdout to a terminal, \
                           a pipe or a file";
                return Err(Failure::new(Exit::Failure, why));
            }
            store::connect(database).await
        }
        TokenCommand::List | TokenCommand::Revoke { .. } => store::connect_existing(database).await,
    };
    let store = opened.map_err(failed)?;
    let now = Clock::real().now();
    match command {
        TokenCommand::Create(flags) => create(store.as_ref(), flags, now, json).await,
        TokenCommand::List => list(store.as_ref(), now, json).await,
        TokenCommand::Revoke { id } => revoke(store.as_ref(), &id, now, json).await,
    }
}

/// The organization of a new token, and the cluster of each of its pools.
fn parse(flags: &NewTokenFlags) -> Result<(Option<Organization>, Vec<ClusterName>), Failure> {
    let usage = |fault: String| Failure::new(Exit::Usage, fault);
    let cluster = |pool: &String| {
        if let Some(cluster) = pool.strip_suffix(":*") {
            return Err(usage(format!("--pool {pool}: for every GPU model of a cluster write --pool {cluster}")));
        }
        let cluster =
            if pool.contains(':') { PoolId::parse(pool).map(|pool| pool.cluster) } else { ClusterName::parse(pool) };
        cluster.map_err(|fault| usage(format!("--pool {pool}: {fault}; write CLUSTER or CLUSTER:GPU_MODEL")))
    };
    let clusters = flags.pool.iter().map(cluster).collect::<Result<_, _>>()?;
    let organization = flags.organization.as_deref().map(|name| named(name).map_err(usage)).transpose()?;
    Ok((organization, clusters))
}

/// The organization of a scope, by a name that an organization may have.
fn named(name: &str) -> Result<Organization, String> {
    let parsed = vocab::new_name(name).and_then(|()| Organization::parse(name));
    let organization = parsed.map_err(|fault| format!("--organization: {fault}"))?;
    if organization.is_pool_peak() {
        return Err(
            "--organization *: that is the pool itself; for every organization leave --organization out".to_owned()
        );
    }
    Ok(organization)
}

async fn create(store: &dyn Store, flags: NewTokenFlags, now: UnixSeconds, json: bool) -> Result<(), Failure> {
    let (organization, clusters) = parse(&flags)?;
    for (pool, cluster) in flags.pool.iter().zip(&clusters) {
        if store.cluster(cluster).await.map_err(failed)?.is_none() {
            print_notice(format_args!("note: --pool {pool}: the database has no cluster {cluster} yet"));
        }
    }
    let mut random = [0; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|fault| Failure::new(Exit::Failure, format!("no random bytes: {fault}")))?;
    let new = NewToken::of(&random);
    let record = TokenRecord {
        id: new.id.clone(),
        name: flags.name,
        role: flags.role.into(),
        organization,
        pools: flags.pool,
        secret_sha256: digest(&new.secret).to_vec(),
        created_at: now,
        expires_at: flags.expires_days.map(|days| now.plus_s(i64::from(days) * SECONDS_PER_DAY)),
        revoked_at: None,
    };
    let audited = store.audited(entry(now, "token create", &record.id, Some(shown(&record, now).to_string())));
    audited.insert_token(&record).await.map_err(failed)?;
    let text = if json {
        let mut body = shown(&record, now);
        body["token"] = new.text().into();
        json_text(&body)
    } else {
        new.text()
    };
    if let Err(fault) = try_print_text(&format!("{text}\n")) {
        return Err(withdrawn(store, &record.id, now, &fault).await);
    }
    if !json {
        print_notice("the token is shown only now: send it as `Authorization: Bearer TOKEN`");
    }
    Ok(())
}

/// Revokes a token that could not be printed: nobody has it, and it would stay valid.
async fn withdrawn(store: &dyn Store, id: &str, now: UnixSeconds, fault: &std::io::Error) -> Failure {
    let store = store.audited(entry(now, "token revoke", id, None));
    let rest = match store.revoke_token(id, now).await {
        Ok(_) => format!("token {id} was not printed and is revoked: create another"),
        Err(other) => format!("token {id} was not printed and is valid ({other}): quota-service token revoke {id}"),
    };
    Failure::new(Exit::Failure, format_args!("stdout: {fault}: {rest}"))
}

async fn list(store: &dyn Store, now: UnixSeconds, json: bool) -> Result<(), Failure> {
    let tokens = store.tokens().await.map_err(failed)?;
    if json {
        print_json(&json!({ "tokens": tokens.iter().map(|token| shown(token, now)).collect::<Vec<_>>() }));
        return Ok(());
    }
    let row = |token: &TokenRecord| {
        let organization = token.organization.as_ref().map_or("all", Organization::as_str);
        let pools = if token.pools.is_empty() { "all".to_owned() } else { token.pools.join(" ") };
        let (id, name, role) = (token.id.clone(), token.name.clone(), token.role.as_str().to_owned());
        vec![id, name, role, organization.to_owned(), pools, token.created_at.to_string(), state(token, now)]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    print_text(&table(&["id", "name", "role", "organization", "pools", "created", "state"], &rows));
    Ok(())
}

async fn revoke(store: &dyn Store, id: &str, now: UnixSeconds, json: bool) -> Result<(), Failure> {
    // A whole token stands for its id.
    let id = super::split(id).map_or(id, |(id, _)| id);
    let store = store.audited(entry(now, "token revoke", id, None));
    let was_valid = store.revoke_token(id, now).await.map_err(failed)?;
    if json {
        print_json(&json!({ "id": id, "revoked": was_valid }));
    } else if was_valid {
        say(format_args!("{id} is revoked; services refuse it within seconds"));
    } else {
        say(format_args!("{id} was revoked before"));
    }
    Ok(())
}

fn entry(now: UnixSeconds, action: &str, id: &str, detail_json: Option<String>) -> AuditRecord {
    AuditRecord {
        at: now,
        actor: "command line".to_owned(),
        token_id: None,
        action: action.to_owned(),
        target: id.to_owned(),
        status: 0,
        detail_json,
    }
}

fn state(token: &TokenRecord, now: UnixSeconds) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(until)) if until <= now => format!("expired {until}"),
        (None, Some(until)) => format!("until {until}"),
        (None, None) => "valid".to_owned(),
    }
}

fn shown(token: &TokenRecord, now: UnixSeconds) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "role": token.role.as_str(),
        "organization": token.organization.as_ref().map(Organization::as_str),
        "pools": token.pools,
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
        "in_force": token.revoked_at.is_none() && token.expires_at.is_none_or(|until| now < until),
    })
}

/// The exit of a command after an error of the database.
#[must_use]
pub fn failed(fault: StoreError) -> Failure {
    let exit = match &fault {
        fault if fault.is_retryable() || matches!(fault, StoreError::Lost { .. }) => Exit::Unavailable,
        StoreError::BadUrl { .. } => Exit::ConfigInvalid,
        StoreError::NotFound { .. } => Exit::Usage,
        fault if fault.is_bad_data() => Exit::DataInvalid,
        _ => Exit::Failure,
    };
    Failure::new(exit, fault)
}

/// A role, as the command line spells it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum RoleFlag {
    /// Reads
    Read,
    /// Reads, and reports usage, outcomes, nodes and the state of pools
    Report,
    /// Reads, and submits and ends tasks
    Place,
    /// Everything
    Admin,
}

impl From<RoleFlag> for Role {
    fn from(flag: RoleFlag) -> Self {
        match flag {
            RoleFlag::Read => Self::Read,
            RoleFlag::Report => Self::Report,
            RoleFlag::Place => Self::Place,
            RoleFlag::Admin => Self::Admin,
        }
    }
}
