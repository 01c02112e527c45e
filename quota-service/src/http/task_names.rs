//! Task names of organizations. Each organization has its own names, so that a taken name reveals nothing of the tasks of others: a
//! task of a token with an organization is stored as `ORGANIZATION/NAME`, and shown to such a token as `NAME`. Clients without an
//! organization use the stored names.

use super::ApiError;
use crate::access::Caller;
use crate::core::Core;
use crate::engine::HELD_BACK;
use placement::ABOVE_FAIR_SHARE;
use vocab::{NameError, Organization, PoolId, TaskId};
use wire::{CutCodeBody, FieldFault, ReasonBody, TaskAnswer, TaskCut, TaskDetail};

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

/// A task under the name that the caller uses. A token with an organization is shown none of the others that evicted it or that it evicts:
/// neither their names nor their organizations.
#[must_use]
pub fn shown(caller: &Caller, answer: TaskAnswer) -> TaskAnswer {
    let Some(prefix) = caller.organization().map(prefix) else { return answer };
    let own = |id: &str| id.strip_prefix(&prefix).map(str::to_owned);
    let TaskDetail { run, waits, cut, victims } = answer.detail;
    let cut = cut.map(|cut| {
        let by = match cut.code {
            CutCodeBody::Evicted => own(&cut.by).unwrap_or_default(),
            CutCodeBody::Reserved if caller.organization().is_some_and(|mine| mine.as_str() == cut.by) => cut.by,
            CutCodeBody::Reserved => String::new(),
            CutCodeBody::NodeFailed | CutCodeBody::NodeDrained => cut.by,
        };
        TaskCut { by, ..cut }
    });
    let victims = victims.iter().filter_map(|victim| own(victim)).collect();
    let waits = waits.map(|why| shown_reason(caller, why));
    let id = own(&answer.id).unwrap_or(answer.id);
    TaskAnswer { id, detail: TaskDetail { run, waits, cut, victims }, ..answer }
}

/// A reason without the organization and the task of another that this one waits for.
#[must_use]
pub fn shown_reason(caller: &Caller, why: ReasonBody) -> ReasonBody {
    if caller.organization().is_none() {
        return why;
    }
    let detail = match why.code.as_str() {
        HELD_BACK => "held back by the reservation of another task",
        ABOVE_FAIR_SHARE => {
            "its organization is above its fair share, and another one below its own waits; it starts when the task of that one \
             has started or more GPUs than both ask for are free"
        }
        _ => return why,
    };
    ReasonBody { detail: detail.to_owned(), ..why }
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

    /// `by` and the reason of a task that was cut, as a token with the organization vision and one without any are shown them.
    fn cut(code: &str, by: &str) -> [(String, String); 2] {
        let answer: TaskAnswer = serde_json::from_value(serde_json::json!({
            "cluster": "earth", "gpu_model": "A100", "id": "vision/fill", "organization": "vision", "class": "spot", "gpus_per_pod": 1.0,
            "pods": 1, "cpu_milli": 0, "memory_mib": 0, "guarantee_hours": null, "submitted": "2026-01-05T10:00:00Z", "status": "waiting",
            "updated": "2026-01-05T10:00:00Z", "shadow": false, "detail": {
                "cut": { "at": "2026-01-05T10:00:00Z", "code": code, "by": by, "deadline": "2026-01-05T10:00:30Z" },
                "waits": { "code": HELD_BACK, "detail": "held back by the reservation of task language/merger" },
            },
        }))
        .unwrap();
        [Caller::of_organization("vision"), Caller::anyone()].map(|caller| {
            let detail = shown(&caller, answer.clone()).detail;
            (detail.cut.unwrap().by, detail.waits.unwrap().detail)
        })
    }

    #[test]
    fn a_token_with_an_organization_is_shown_nobody_that_is_below_its_share() {
        let of = |code: &str| ReasonBody {
            code: code.to_owned(),
            detail: "speech waits with task speech/secret".to_owned(),
        };
        let seen = |caller: &Caller, code: &str| shown_reason(caller, of(code)).detail;
        let vision = Caller::of_organization("vision");
        let shown = seen(&vision, ABOVE_FAIR_SHARE);
        assert!(shown.starts_with("its organization is above its fair share") && !shown.contains("speech"), "{shown}");
        assert_eq!(seen(&Caller::anyone(), ABOVE_FAIR_SHARE), of("").detail);
        assert_eq!(seen(&vision, "over_quota"), of("").detail);
    }

    #[test]
    fn a_token_with_an_organization_is_shown_its_own_names_and_nodes_and_the_others_all() {
        let all = "held back by the reservation of task language/merger";
        for (code, by, expected) in [
            ("evicted", "language/merger", ""),
            ("evicted", "visionary/merger", ""),
            ("evicted", "vision/train", "train"),
            ("reserved", "language", ""),
            ("reserved", "vision", "vision"),
            ("node_failed", "n1", "n1"),
        ] {
            let [theirs, admin] = cut(code, by);
            assert_eq!((theirs.0.as_str(), admin.0.as_str()), (expected, by), "{code}");
            assert_eq!((theirs.1.as_str(), admin.1.as_str()), ("held back by the reservation of another task", all));
        }
    }
}
