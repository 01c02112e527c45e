//! Why a spot job waits, from the reasons of Slurm (`JOB REASON CODES` of squeue). Pure.

use crate::config::Nesting;

/// Cause of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A limit that this connector writes.
    Limit,
    /// The queue for GPUs.
    Queue,
    /// Another limit. Slurm names ours first while that is reached, too.
    OtherLimit,
    /// Anything else: its nodes, its partition, its licenses. A higher limit starts no such job.
    Other,
}

impl Hold {
    /// Of the reason as Slurm prints it, which may go on after a comma: `ReqNodeNotAvail, UnavailableNodes:g3`.
    #[must_use]
    pub fn of(reason: &str, nesting: Nesting) -> Self {
        let code = reason.split(',').next().unwrap_or_default().trim();
        let ours = match nesting {
            Nesting::Qos => ["QOSGrpGRES", "QOSGrpTRES"],
            Nesting::Accounts => ["AssocGrpGRES", "AssocGrpTRES"],
        };
        if ours.contains(&code) {
            return Self::Limit;
        }
        match code {
            "" | "None" | "Priority" | "Resources" | "SchedDefer" => Self::Queue,
            // The words of `Resources` while some nodes are down, with blanks or without.
            _ if code.starts_with("Nodes required for job") || code.starts_with("Nodes_required_for_job") => {
                Self::Queue
            }
            _ if ["QOS", "Assoc", "MaxGRES", "MaxTRES"].iter().any(|prefix| code.starts_with(prefix)) => {
                Self::OtherLimit
            }
            _ => Self::Other,
        }
    }

    /// Whether room under our limit lets the job start, or lets it queue for GPUs.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::Limit | Self::Queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_slurm_is_our_limit_the_queue_another_limit_or_none_of_these() {
        let kinds: [(Hold, &[&str]); 4] = [
            (Hold::Limit, &["QOSGrpGRES"]),
            (
                Hold::Queue,
                &[
                    "",
                    "None",
                    "Priority",
                    "Resources",
                    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
                ],
            ),
            (
                Hold::OtherLimit,
                &[
                    "AssocGrpGRES",
                    "QOSGrpGRESMinutes",
                    "QOSGrpCpuLimit",
                    "QOSGrpJobsLimit",
                    "QOSMaxGRESPerUser",
                    "QOSMaxJobsPerUserLimit",
                    "AssocMaxJobsLimit",
                    "AssociationResourceLimit",
                ],
            ),
            (
                Hold::Other,
                &[
                    "ReqNodeNotAvail, UnavailableNodes:g3",
                    "PartitionNodeLimit",
                    "PartitionTimeLimit",
                    "PartitionDown",
                    "PartitionInactive",
                    "Reservation",
                    "Licenses",
                    "BadConstraints",
                    "JobHeldUser",
                    "a reason of a later version",
                ],
            ),
        ];
        for (hold, reasons) in kinds {
            for reason in reasons {
                assert_eq!(Hold::of(reason, Nesting::Qos), hold, "{reason}");
            }
        }
    }

    #[test]
    fn with_accounts_the_limit_of_the_association_is_ours_and_that_of_the_qos_another_one() {
        assert_eq!(Hold::of("AssocGrpGRES", Nesting::Accounts), Hold::Limit);
        assert_eq!(Hold::of("QOSGrpGRES", Nesting::Accounts), Hold::OtherLimit);
    }
}
