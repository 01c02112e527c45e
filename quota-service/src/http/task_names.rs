//! Task names of organizations. Each organization has its own names, so that a taken name reveals nothing of the tasks of others: a
//! task of a token with an organization is stored as `ORGANIZATION/NAME`, and shown to such a token as `NAME`. Clients without an
//! organization use the stored names.

use super::ApiError;
use crate::access::Caller;
use crate::core::Core;
use vocab::{NameError, Organization, PoolId, TaskId};
use wire::{FieldFault, TaskAnswer};

/// The prefix of the stored names of an organization. A slash inside its own name is escaped: no two organizations share a name.
fn prefix(of: &Organization) -> String {
    format!("{}/", of.as_str().replace('%', "%25").replace('/', "%2F"))
}

fn qualified(of: &Organization, id: &TaskId) -> Result<TaskId, NameError> {
    TaskId::parse(&format!("{}{id}", prefix(of)))
}

/// The stored name of a task of the caller. A task that another caller submitted for its organization under this very name is its
/// own, too.
///
/// # Errors
/// With the organization the name is too long, or the database does not answer.
pub async fn kept(core: &Core, caller: &Caller, pool: &PoolId, id: TaskId) -> Result<TaskId, ApiError> {
    let Some(mine) = caller.organization() else { return Ok(id) };
    let known = core.store.task_record(pool, &id).await?;
    if known.is_some_and(|record| record.organization == *mine) {
        return Ok(id);
    }
    qualified(mine, &id).map_err(|fault| FieldFault::new("/id", format!("with its organization, {fault}")).into())
}

/// A task under the name that the caller uses.
#[must_use]
pub fn shown(caller: &Caller, answer: TaskAnswer) -> TaskAnswer {
    let own = caller.organization().and_then(|mine| answer.id.strip_prefix(&prefix(mine)).map(str::to_owned));
    match own {
        Some(id) => TaskAnswer { id, ..answer },
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_organizations_share_a_name() {
        let of = |organization: &str, id: &str| {
            let organization = Organization::parse(organization).unwrap();
            qualified(&organization, &TaskId::parse(id).unwrap()).map(|id| id.to_string())
        };
        assert_eq!(of("vision", "sweep-1").unwrap(), "vision/sweep-1");
        assert_ne!(of("a/b", "c"), of("a", "b/c"));
        assert_ne!(of("a%2Fb", "c"), of("a/b", "c"));
        assert!(of("vision", &"x".repeat(200)).is_err(), "with its organization it is too long");
    }
}
