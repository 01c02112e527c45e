//! Fields with a closed list of values. The OpenAPI document lists them, a body with another value is refused with the list, and
//! each converts to its twin inside without a default.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An enum whose values are the words on the wire, and its conversions to and from a twin without serde. The words are `tt`:
/// utoipa does not find a `literal` in `serde(rename)`, and would list the names of the variants.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident twin $($twin:ident)::+ {
        $($(#[$of_value:meta])* $value:ident = $word:tt,)*
    }) => {
        choice! {
            $(#[$meta])* $name {
                $($(#[$of_value])* $value = $word,)*
            }
        }

        choice!(@twin $name [$($twin)::+] [$($value)*]);
    };
    ($(#[$meta:meta])* $name:ident {
        $($(#[$of_value:meta])* $value:ident = $word:tt,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        pub enum $name {
            $($(#[$of_value])* #[serde(rename = $word)] $value,)*
        }

        impl $name {
            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
    (@twin $name:ident [$($twin:ident)::+] [$($value:ident)*]) => {
        choice!(@from [$($twin)::+] $name [$($value)*]);
        choice!(@from [$name] $($twin)::+ [$($value)*]);
    };
    (@from [$of:path] $to:path [$($value:ident)*]) => {
        impl From<$of> for $to {
            fn from(of: $of) -> Self {
                type Of = $of;
                match of {
                    $(Of::$value => Self::$value,)*
                }
            }
        }
    };
}

choice! {
    /// The class of a task.
    TaskClassBody twin vocab::TaskClass {
        /// High priority: never evicted.
        Hp = "hp",
        /// May be evicted for an HP task.
        Spot = "spot",
    }
}

choice! {
    /// The status of a task.
    TaskStatusBody {
        /// In the queue.
        Waiting = "waiting",
        /// Has its GPUs.
        Running = "running",
        /// Ended by itself.
        Finished = "finished",
        /// Ended by its user.
        Deleted = "deleted",
    }
}

choice! {
    /// How a guarantee period ended.
    OutcomeKindBody twin vocab::OutcomeKind {
        /// The task ran to the end of its guarantee, or finished before.
        Kept = "kept",
        /// HP demand evicted it inside its guarantee.
        Broken = "broken",
        /// A node failed; does not move eta.
        NodeFailure = "node_failure",
        /// A node was drained; does not move eta.
        Drain = "drain",
        /// Its user deleted it; does not move eta.
        UserDeleted = "user_deleted",
    }
}

choice! {
    /// Whether an outcome was new.
    OutcomeResultBody {
        /// It is stored.
        Recorded = "recorded",
        /// It was stored before, with the same content.
        Repeated = "repeated",
        /// It was stored before with other content, which stays.
        Conflicting = "conflicting",
    }
}

choice! {
    /// The effect of an override.
    OverrideKindBody twin vocab::OverrideKind {
        /// Keeps more GPUs for HP work than forecast.
        Reserve = "reserve",
        /// Keeps fewer GPUs for HP work than forecast.
        Release = "release",
    }
}

choice! {
    /// A day of the week, in the time zone of the cluster.
    WeekdayBody twin vocab::Weekday {
        /// The first day of the week.
        Monday = "MO",
        /// The second one.
        Tuesday = "TU",
        /// The third one.
        Wednesday = "WE",
        /// The fourth one.
        Thursday = "TH",
        /// The fifth one.
        Friday = "FR",
        /// The sixth one.
        Saturday = "SA",
        /// The last one.
        Sunday = "SU",
    }
}

choice! {
    /// Source of the probability of a reserved window.
    ProbabilitySourceBody {
        /// The forecast of each of its hours.
        Forecast = "forecast",
        /// The same hours of the week in the measured history: the window ends beyond the model's horizon.
        History = "history",
        /// Nothing: too little is measured.
        Unknown = "unknown",
    }
}

choice! {
    /// The age of a quota's numbers.
    StageBody twin placement::staleness::Stage {
        /// Renewed in time.
        Fresh = "fresh",
        /// Not renewed in time: the last value holds.
        Stale = "stale",
        /// Not renewed for long: no task is admitted.
        Conservative = "conservative",
    }
}

choice! {
    /// The state of a reported HP job.
    HpJobStateBody {
        /// It has its GPUs.
        Running = "running",
        /// It waits for them.
        Waiting = "waiting",
    }
}

choice! {
    /// The side that places the tasks of a pool.
    PlacedByBody twin vocab::PlacedBy {
        /// Headroom places them.
        Headroom = "headroom",
        /// A scheduler places them, and reports the state of the pool.
        External = "external",
    }
}

choice! {
    /// The event whose probability is the guarantee rate.
    PromiseKindBody twin placement::Promise {
        /// A promised GPU stays where it is for its hours.
        Kept = "kept",
        /// HP demand stays below the bound.
        Peak = "peak",
    }
}

choice! {
    /// The origin of an organization's forecast.
    ForecastOriginBody twin vocab::ForecastOrigin {
        /// The model.
        Model = "model",
        /// The organization is new to the model.
        ColdStart = "cold_start",
        /// The organization has had neither demand nor rows for two days, or for a week where it came back after pauses of two days lately.
        Left = "left",
    }
}

choice! {
    /// The source of a pool's capacity.
    CapacitySourceBody twin placement::CapacitySource {
        /// The state that a scheduler reported.
        ReportedState = "reported_state",
        /// The registered nodes.
        Nodes = "nodes",
        /// The ingested capacity table.
        CapacityTable = "capacity_table",
    }
}

choice! {
    /// The choice of an aggregation.
    AggregationSourceBody {
        /// It is set for the pool.
        Settings = "settings",
        /// The training run chose it on its validation part.
        Validation = "validation",
    }
}

choice! {
    /// The part of a node in which the GPUs of a pod lie together.
    DomainBody twin vocab::Domain {
        /// A NUMA node.
        Numa = "numa",
        /// A socket.
        Socket = "socket",
        /// An NVLink island.
        NvlinkIsland = "nvlink-island",
    }
}

choice! {
    /// Whether an affinity is a condition.
    StrictnessBody twin vocab::Strictness {
        /// The task runs so, or waits.
        Guaranteed = "guaranteed",
        /// The task runs anyway.
        BestEffort = "best_effort",
    }
}

choice! {
    /// The reason for which a run was cut.
    CutCodeBody {
        /// An HP task needed its GPUs.
        Evicted = "evicted",
        /// Its node failed.
        NodeFailed = "node_failed",
        /// Its node was drained.
        NodeDrained = "node_drained",
        /// Its GPUs are reserved ahead.
        Reserved = "reserved",
    }
}

choice! {
    /// The kind of an event of a pool.
    EventKindBody {
        /// A task has its GPUs.
        Started = "started",
        /// A task was evicted.
        Evicted = "evicted",
        /// An elastic task has fewer pods.
        Shrunk = "shrunk",
        /// An elastic task has more pods.
        Grown = "grown",
        /// A node was lost, and a task with it.
        NodeLost = "node_lost",
        /// The quotas of the pool changed.
        QuotaChanged = "quota_changed",
        /// A waiting task is expected to start much earlier or later than before.
        EtaMoved = "eta_moved",
    }
}

choice! {
    /// The cause for which a node leaves.
    NodeLossBody twin placement::pool::NodeLoss {
        /// It failed.
        Failed = "failed",
        /// It was drained.
        Drained = "drained",
    }
}

choice! {
    /// The end of a task.
    EndingBody twin placement::pool::Ending {
        /// It ended by itself.
        Finished = "finished",
        /// Its user deleted it.
        Deleted = "deleted",
    }
}

choice! {
    /// A share against its band.
    StandingBody {
        /// Too few hours to judge.
        TooFewHours = "too_few_hours",
        /// Inside its band.
        Inside = "inside",
        /// Below its band.
        Below = "below",
        /// Above its band.
        Above = "above",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{Domain, OutcomeKind, OverrideKind, PlacedBy, Strictness, TaskClass};

    #[test]
    fn the_words_on_the_wire_are_those_of_their_twins() {
        let _ = [TaskClass::Hp, TaskClass::Spot].map(|one| assert_eq!(TaskClassBody::from(one).as_str(), one.as_str()));
        let _ = OutcomeKind::ALL.map(|one| assert_eq!(OutcomeKindBody::from(one).as_str(), one.as_str()));
        let _ = OverrideKind::ALL.map(|one| assert_eq!(OverrideKindBody::from(one).as_str(), one.as_str()));
        let _ = vocab::Weekday::ALL.map(|one| assert_eq!(WeekdayBody::from(one).as_str(), one.as_str()));
        let _ = PlacedBy::ALL.map(|one| assert_eq!(PlacedByBody::from(one).as_str(), one.as_str()));
        let _ = Domain::ALL.map(|one| assert_eq!(DomainBody::from(one).as_str(), one.as_str()));
        let _ = Strictness::ALL.map(|one| assert_eq!(StrictnessBody::from(one).as_str(), one.as_str()));
    }

    #[test]
    fn another_word_is_refused_with_the_list_of_words() {
        let fault = serde_json::from_str::<TaskClassBody>(r#""batch""#).unwrap_err().to_string();
        assert!(fault.starts_with("unknown variant `batch`, expected `hp` or `spot`"), "{fault}");
        assert_eq!(serde_json::to_string(&DomainBody::NvlinkIsland).unwrap(), r#""nvlink-island""#);
    }
}
