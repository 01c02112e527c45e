//! A policy as it is written in a file or sent with a pool's settings: the parts of the pipeline by their names.

use crate::FieldFault;
use crate::fault::Place;
use crate::shares::SharesBody;
use placement::Policy;
use placement::fleet::{PreemptionSettings, ScoreRule, Terms, VictimRule};
use placement::pipeline::{Part, PolicyFault};
use placement::policy::ReservationSettings;
use placement::shares::Weights;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A policy by its parts. An absent part is that of the policy `like`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyBody {
    /// Its name in answers and tables.
    pub name: String,
    /// The policy that absent parts are taken from; without it, `gfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// The order of the queue: `small-spot-first`, `size` or `arrival`; HP before spot in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// The tasks that wait behind one that does not fit: none (`nobody`), those of its class (`class`) or all (`everybody`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<String>,
    /// Reservations for tasks that would starve otherwise; for blocking by `nobody`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsBody>,
    /// Fair shares of spot among organizations; for blocking by `nobody`. Without it, only `order` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesBody>,
    /// The condition on which a spot task starts: `quota`, or `idle` GPUs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<String>,
    /// Whether HP demand that rises between two computations of a quota lowers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_follow_demand: Option<bool>,
    /// The choice of nodes and GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreBody>,
    /// Whether score and victims follow the topology of a node: sockets, NUMA nodes, NVLink islands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<bool>,
    /// The choice of victims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victims: Option<VictimsBody>,
    /// The time of an eviction: `at-once`, or `lazer`, where HP that would evict waits for a learned moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<String>,
}

/// Reservations for waiting tasks. An absent value is that of the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationsBody {
    /// HP tasks with a reservation at the same time, 0 to 16. 1 in `gfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hp_heads: Option<u32>,
    /// The same for spot; 0 in `gfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_heads: Option<u32>,
    /// Seconds that an HP task waits before it gets one, at most a week; 600 in `gfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hp_after_s: Option<u32>,
    /// The same for spot; 21,600 in `gfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_after_s: Option<u32>,
    /// A spot task that asks for more of its quota than this, in percent, gets none; 50 in `gfs`, 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_percent: Option<u32>,
}

impl ReservationsBody {
    /// These settings, and the others as they are.
    #[must_use]
    pub fn over(&self, others: ReservationSettings) -> ReservationSettings {
        ReservationSettings {
            hp_heads: self.hp_heads.unwrap_or(others.hp_heads),
            spot_heads: self.spot_heads.unwrap_or(others.spot_heads),
            hp_after_s: self.hp_after_s.unwrap_or(others.hp_after_s),
            spot_after_s: self.spot_after_s.unwrap_or(others.spot_after_s),
            quota_percent: self.quota_percent.unwrap_or(others.quota_percent),
        }
    }
}

/// The choice of nodes and GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreBody {
    /// `apart` (GFS with HP kept apart), `gfs`, `fullest`, `best-fit`, `dot-prod`, `gpu-packing`, `gpu-clustering`, `first-fit`,
    /// `random`, `fgd`, `pwr`, `pwr-fgd` or `pwr-fgd-moving`.
    pub by: String,
    /// α: the weight of power in `pwr-fgd`, 0 to 1 in millionths; fragmentation has the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Whether the order of GFS decides among nodes that `fgd`, `pwr` or a mix of them scores equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_gfs: Option<bool>,
}

/// The choice of victims.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VictimsBody {
    /// `least-waste`, `tightest` or `random`.
    pub by: String,
    /// Whether HP takes idle GPUs before it evicts: a choice for `tightest` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_first: Option<bool>,
    /// β of GFS Eq. 18, for `least-waste`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_weight: Option<f64>,
    /// Seconds over which GPU time is counted in Eq. 18, for `least-waste`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_window_s: Option<u64>,
    /// Whether tasks inside their guarantee are kept before others, for `least-waste`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_guarantees: Option<bool>,
}

/// Letters, digits, `.`, `_` and `-`, at most 63, so that it stands in tables and labels as it is.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=63).contains(&text.len()) && text.bytes().all(is_plain)
}

fn part<T: Part>(place: Place<'_>, field: &str, name: Option<&str>, otherwise: T) -> Result<T, FieldFault> {
    name.map_or(Ok(otherwise), |name| T::parse(name).map_err(|fault| place.fault(field, fault)))
}

impl PolicyBody {
    /// The policy; `at` is where the body stands in what was sent, as a JSON pointer.
    ///
    /// # Errors
    /// A name that is not known, or parts that contradict each other.
    pub fn parse(&self, at: &str) -> Result<Policy, FieldFault> {
        let place = Place(at);
        if !is_name(&self.name) || Policy::parse(&self.name).is_some() {
            let detail = format!(
                "invalid name {:?}: write a new name of at most 63 letters, digits, '.', '_' and '-'",
                self.name
            );
            return Err(place.fault("name", detail));
        }
        let like = self.like.as_deref().unwrap_or("gfs");
        let base = Policy::parse(like).ok_or_else(|| place.fault("like", no_policy(like)))?;
        let admission = part(place, "admission", self.admission.as_deref(), base.admission)?;
        // Without limits, there are none that follow; only a file that asks for it contradicts itself.
        let follows = base.limits_follow_demand && admission == base.admission;
        let blocking = part(place, "blocking", self.blocking.as_deref(), base.blocking)?;
        // The same holds for reservations where others wait behind the first task as it is.
        let inherited = if blocking == base.blocking { base.reservations } else { ReservationSettings::NONE };
        let mut policy = Policy {
            order: part(place, "order", self.order.as_deref(), base.order)?,
            blocking,
            reservations: self.reservations.as_ref().map_or(inherited, |body| body.over(inherited)),
            shares: self.shares.as_ref().map(SharesBody::settings).or(base.shares),
            admission,
            limits_follow_demand: self.limits_follow_demand.unwrap_or(follows),
            topology: self.topology.unwrap_or(base.topology),
            timing: part(place, "timing", self.timing.as_deref(), base.timing)?,
            ..base
        };
        if let Some(score) = &self.score {
            policy.score = score.parse(Place(&format!("{at}/score")))?;
        }
        if let Some(victims) = &self.victims {
            victims.put_into(&mut policy, Place(&format!("{at}/victims")))?;
        }
        policy.check().map_err(|fault| FieldFault::new(at, fault))?;
        self.weights(at)?;
        Ok(policy)
    }

    /// The weights of organizations in fair shares.
    ///
    /// # Errors
    /// A name that no organization can have, or a weight out of range.
    pub fn weights(&self, at: &str) -> Result<Weights, FieldFault> {
        self.shares.as_ref().map_or_else(|| Ok(Weights::default()), |shares| shares.weights(&format!("{at}/shares")))
    }
}

/// The error for a name that no policy has.
#[must_use]
pub fn no_policy(name: &str) -> String {
    format!("unknown policy {name:?}: choose one of {}", Policy::IDS.join(", "))
}

impl ScoreBody {
    fn parse(&self, place: Place<'_>) -> Result<ScoreRule, FieldFault> {
        let rule = ScoreRule::parse(&self.by).map_err(|fault| place.fault("by", fault))?;
        let rule = match (rule, self.alpha) {
            (ScoreRule::MIXED, Some(alpha)) if (0.0..=1.0).contains(&alpha) => {
                ScoreRule::Score(Terms::Mix { alpha_millionths: (alpha * 1e6).round() as u32 })
            }
            (ScoreRule::MIXED, Some(alpha)) => {
                return Err(place.fault("alpha", format!("invalid alpha {alpha}: write 0 to 1")));
            }
            (ScoreRule::MIXED, None) => {
                return Err(place.fault("alpha", "pwr-fgd needs the share of power, such as 0.1"));
            }
            (_, Some(_)) => {
                return Err(
                    place.fault("alpha", format!("{} has no weights: leave alpha out, or choose pwr-fgd", self.by))
                );
            }
            (rule, None) => rule,
        };
        match (rule, self.beside_gfs) {
            (ScoreRule::Score(terms), Some(true)) => Ok(ScoreRule::Beside(terms)),
            (ScoreRule::Score(_), _) | (_, None) => Ok(rule),
            _ => {
                Err(place.fault("beside_gfs", format!("{} scores no two nodes equally: leave beside_gfs out", self.by)))
            }
        }
    }
}

impl VictimsBody {
    fn put_into(&self, policy: &mut Policy, place: Place<'_>) -> Result<(), FieldFault> {
        policy.victims = VictimRule::parse(&self.by).map_err(|fault| place.fault("by", fault))?;
        // A rule that looks at idle GPUs first has no choice in it.
        policy.idle_first = self.idle_first.unwrap_or(true);
        let given = [
            ("usage_weight", self.usage_weight.is_some()),
            ("usage_window_s", self.usage_window_s.is_some()),
            ("keeps_guarantees", self.keeps_guarantees.is_some()),
        ];
        if let Some((parameter, _)) = given.into_iter().find(|(_, given)| *given)
            && policy.victims != VictimRule::LeastWaste
        {
            return Err(place.fault(parameter, PolicyFault::Unread { victims: policy.victims.name(), parameter }));
        }
        let PreemptionSettings { usage_weight, usage_window_s, keeps_guarantees } = policy.preemption;
        policy.preemption = PreemptionSettings {
            usage_weight: self.usage_weight.unwrap_or(usage_weight),
            usage_window_s: self.usage_window_s.unwrap_or(usage_window_s),
            keeps_guarantees: self.keeps_guarantees.unwrap_or(keeps_guarantees),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::policy::{Admission, Blocking, OrderRule};

    fn parse(json: &str) -> Result<Policy, String> {
        let body: PolicyBody = serde_json::from_str(json).map_err(|fault| fault.to_string())?;
        let back: PolicyBody = serde_json::from_str(&serde_json::to_string(&body).unwrap()).unwrap();
        assert_eq!(back, body);
        body.parse("/policy_parts").map_err(|fault| fault.to_string())
    }

    #[test]
    fn parts_that_are_not_named_are_those_of_the_policy_it_is_like() {
        assert_eq!(parse(r#"{"name": "mine"}"#), Ok(Policy::GFS));
        let lyra = Policy::parse("lyra").unwrap();
        let mine = parse(r#"{"name": "mine", "like": "lyra", "order": "arrival", "blocking": "class"}"#);
        assert_eq!(mine, Ok(Policy { order: OrderRule::Arrival, blocking: Blocking::Class, ..lyra }));
        let mine = parse(
            r#"{"name": "mine", "admission": "idle",
                "victims": {"by": "least-waste", "usage_weight": 5, "keeps_guarantees": false}}"#,
        )
        .unwrap();
        assert_eq!((mine.admission, mine.limits_follow_demand), (Admission::Idle, false));
        assert_eq!((mine.preemption.usage_weight, mine.preemption.keeps_guarantees), (5.0, false));
        let mine = parse(r#"{"name": "mine", "victims": {"by": "tightest", "idle_first": false}}"#).unwrap();
        assert_eq!((mine.victims, mine.idle_first), (VictimRule::Tightest, false));
        let scored =
            |score: &str| parse(&format!(r#"{{"name": "mine", "score": {score}}}"#)).map(|policy| policy.score);
        let mix = Terms::Mix { alpha_millionths: 250_000 };
        assert_eq!(scored(r#"{"by": "pwr-fgd", "alpha": 0.25}"#), Ok(ScoreRule::Score(mix)));
        assert_eq!(scored(r#"{"by": "pwr-fgd", "alpha": 0.25, "beside_gfs": true}"#), Ok(ScoreRule::Beside(mix)));
        assert_eq!(scored(r#"{"by": "fgd", "beside_gfs": false}"#), Ok(ScoreRule::Score(Terms::Fgd)));
    }

    #[test]
    fn reservations_are_those_of_the_policy_where_they_are_not_named_and_stay_within_bounds() {
        let gfs = Policy::GFS.reservations;
        let of = |json: &str| parse(json).map(|policy| policy.reservations);
        let two = of(r#"{"name": "m", "reservations": {"hp_heads": 2, "hp_after_s": 60}}"#);
        assert_eq!(two, Ok(ReservationSettings { hp_heads: 2, hp_after_s: 60, ..gfs }));
        assert_eq!(of(r#"{"name": "m", "like": "gfs-paper"}"#), Ok(ReservationSettings::NONE));
        assert_eq!(of(r#"{"name": "m", "blocking": "class"}"#), Ok(ReservationSettings::NONE));
        let refused = |json: &str| of(json).unwrap_err();
        let behind = refused(r#"{"name": "m", "blocking": "class", "reservations": {"hp_heads": 1}}"#);
        assert!(behind.starts_with("/policy_parts: reservations are for blocking by \"nobody\""), "{behind}");
        let many = refused(r#"{"name": "m", "reservations": {"spot_heads": 17}}"#);
        assert_eq!(many, "/policy_parts: spot_heads is 17: write a number of 0 to 16");
        let none = refused(r#"{"name": "m", "reservations": {"quota_percent": 0}}"#);
        assert_eq!(none, "/policy_parts: quota_percent is 0: write a number of 1 to 100");
    }

    #[test]
    fn contradicting_parts_of_a_policy_are_refused_with_their_pointer() {
        let cases = [
            (r#"{"name": "gfs"}"#, "/policy_parts/name: invalid name \"gfs\": write a new name"),
            (r#"{"name": "a b"}"#, "/policy_parts/name: invalid name \"a b\": write"),
            (r#"{"name": "m", "like": "best"}"#, "/policy_parts/like: unknown policy \"best\": choose one of gfs, "),
            (r#"{"name": "m", "order": "fifo"}"#, "/policy_parts/order: \"fifo\" is no order; there are small-spot-"),
            (
                r#"{"name": "m", "timing": "later"}"#,
                "/policy_parts/timing: \"later\" is no timing; there are at-once, lazer",
            ),
            (
                r#"{"name": "m", "admission": "idle", "limits_follow_demand": true}"#,
                "/policy_parts: limits_follow_demand is for admission by quota",
            ),
            (
                r#"{"name": "m", "victims": {"by": "least-waste", "idle_first": false}}"#,
                "/policy_parts: idle_first = false is for victims by \"tightest\"",
            ),
            (
                r#"{"name": "m", "topology": true, "victims": {"by": "random"}}"#,
                "/policy_parts: topology = true is for victims by \"least-waste\"",
            ),
            (
                r#"{"name": "m", "victims": {"by": "random", "usage_weight": 1}}"#,
                "/policy_parts/victims/usage_weight: victims by \"random\" do not look at what is lost",
            ),
            (
                r#"{"name": "m", "victims": {"by": "least-waste", "usage_weight": -1}}"#,
                "/policy_parts: usage_weight is -1: write a number",
            ),
            (r#"{"name": "m", "scores": {}}"#, "unknown field `scores`"),
            (
                r#"{"name": "m", "score": {"by": "full"}}"#,
                "/policy_parts/score/by: \"full\" is no score; there are gfs,",
            ),
            (r#"{"name": "m", "score": {"by": "pwr-fgd"}}"#, "/policy_parts/score/alpha: pwr-fgd needs the share"),
            (
                r#"{"name": "m", "score": {"by": "pwr-fgd", "alpha": 1.5}}"#,
                "/policy_parts/score/alpha: invalid alpha 1.5: write 0 to 1",
            ),
            (r#"{"name": "m", "score": {"by": "fgd", "alpha": 0.5}}"#, "/policy_parts/score/alpha: fgd has no weights"),
            (
                r#"{"name": "m", "score": {"by": "best-fit", "beside_gfs": true}}"#,
                "/policy_parts/score/beside_gfs: best-fit scores no two nodes equally",
            ),
        ];
        for (json, expected) in cases {
            let fault = parse(json).unwrap_err();
            assert!(fault.starts_with(expected), "{json}: {fault}");
        }
    }
    #[test]
    fn wrong_shares_of_a_policy_are_refused_with_their_pointer() {
        let cases = [
            (
                r#"{"name": "m", "blocking": "class", "shares": {"half_life_hours": 24}}"#,
                "/policy_parts: shares are for blocking by \"nobody\": with \"class\"",
            ),
            (
                r#"{"name": "m", "shares": {"half_life_hours": 0}}"#,
                "/policy_parts: half_life_hours is 0: write a number of 1 to 2160",
            ),
            (
                r#"{"name": "m", "shares": {"half_life_hours": 24, "weights": {"vision": 0}}}"#,
                "/policy_parts/shares/weights/vision: the weight of vision is 0: write",
            ),
        ];
        for (json, expected) in cases {
            let fault = parse(json).unwrap_err();
            assert!(fault.starts_with(expected), "{json}: {fault}");
        }
        let mine = parse(r#"{"name": "m", "shares": {"half_life_hours": 24}}"#).unwrap();
        assert_eq!(mine.shares.map(|shares| shares.half_life_hours), Some(24));
    }
}
