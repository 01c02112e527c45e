//! States of jobs, as words.

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Pending,
    /// It has its nodes.
    Running,
    /// Its size was changed: this record ended there, and another one goes on with the same start.
    Resizing,
    /// It has its nodes and is stopped.
    Suspended,
    /// It ends, and still has nodes; its end is not known yet.
    Completing,
    /// It ended by itself, without a fault.
    Completed,
    /// A user or an operator cancelled it.
    Cancelled,
    /// It ended with a fault of its own, or of its memory.
    Failed,
    /// Its time limit or deadline was over.
    Timeout,
    /// A node failed.
    NodeFail,
    /// It was evicted for another job.
    Preempted,
    /// Another cluster of a federation took it.
    Revoked,
}

/// Meaning of a state for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It asks for GPUs.
    Waits,
    /// It holds GPUs.
    Holds,
    /// It holds none.
    Ended,
}

/// Words that stand for a state alone.
const STATES: [(&str, State); 13] = [
    ("PENDING", State::Pending),
    ("RUNNING", State::Running),
    ("SUSPENDED", State::Suspended),
    ("COMPLETED", State::Completed),
    ("CANCELLED", State::Cancelled),
    ("FAILED", State::Failed),
    ("TIMEOUT", State::Timeout),
    ("NODE_FAIL", State::NodeFail),
    ("PREEMPTED", State::Preempted),
    ("BOOT_FAIL", State::NodeFail),
    ("DEADLINE", State::Timeout),
    ("OUT_OF_MEMORY", State::Failed),
    ("REVOKED", State::Revoked),
];
/// Words that stand beside a state, or, in older forms, in its place: the state that they then stand for.
const FLAGS: [(&str, State); 16] = [
    ("COMPLETING", State::Completing),
    ("CONFIGURING", State::Running),
    ("RESIZING", State::Resizing),
    ("SIGNALING", State::Running),
    ("STAGE_OUT", State::Completing),
    ("STOPPED", State::Suspended),
    ("POWER_UP_NODE", State::Running),
    ("LAUNCH_FAILED", State::Failed),
    ("UPDATE_DB", State::Running),
    ("RECONFIG_FAIL", State::Failed),
    ("REQUEUED", State::Pending),
    ("REQUEUE_FED", State::Pending),
    ("REQUEUE_HOLD", State::Pending),
    ("SPECIAL_EXIT", State::Pending),
    ("RESV_DEL_HOLD", State::Pending),
    ("EXPEDITING", State::Pending),
];

impl State {
    /// Of the words of a record; whether it completes beside them.
    ///
    /// # Errors
    /// No word, or an unknown one.
    pub fn of(words: &[String]) -> Result<(Self, bool), String> {
        let (mut state, mut flag, mut completes) = (None, None, false);
        for word in words {
            // sacct may say by whom: "CANCELLED by 0".
            let word = word.split(' ').next().unwrap_or_default();
            if let Some((_, found)) = STATES.iter().find(|(name, _)| *name == word) {
                // A job of a federation that was revoked is cancelled, too.
                state = Some(if *found == Self::Revoked { *found } else { state.unwrap_or(*found) });
            } else if let Some((_, found)) = FLAGS.iter().find(|(name, _)| *name == word) {
                completes |= *found == Self::Completing;
                flag = flag.or(Some(*found));
            } else {
                return Err(format!("unknown state {word:?}: expected one that squeue documents, such as RUNNING"));
            }
        }
        // The accounting keeps the mark alone, and forms with lists add the state whose number is zero.
        if flag == Some(Self::Resizing) && state == Some(Self::Pending) {
            state = None;
        }
        let found = state.or(flag).ok_or("no state: expected one such as RUNNING")?;
        Ok((found, completes))
    }

    /// Its meaning for GPUs.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::Pending => Phase::Waits,
            Self::Running | Self::Resizing | Self::Suspended | Self::Completing => Phase::Holds,
            _ => Phase::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<(State, bool), String> {
        State::of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_state_is_read_from_a_list_with_flags_and_from_one_word() {
        assert_eq!(of(&["RUNNING", "CONFIGURING"]), Ok((State::Running, false)));
        assert_eq!(of(&["PREEMPTED", "COMPLETING"]), Ok((State::Preempted, true)));
        assert_eq!(of(&["COMPLETING"]), Ok((State::Completing, true)));
        assert_eq!(of(&["PENDING", "REQUEUED"]), Ok((State::Pending, false)));
        let resizing = [of(&["RESIZING"]), of(&["PENDING", "RESIZING"])];
        assert_eq!(resizing, [Ok((State::Resizing, false)), Ok((State::Resizing, false))]);
        assert_eq!(of(&["RUNNING", "RESIZING"]), Ok((State::Running, false)));
        assert_eq!(of(&["CANCELLED by 0"]), Ok((State::Cancelled, false)));
        assert_eq!(of(&["REQUEUE_HOLD"]).map(|(state, _)| state.phase()), Ok(Phase::Waits));
    }

    #[test]
    fn an_unknown_state_and_none_are_faults() {
        assert!(of(&["RUNNING", "DANCING"]).unwrap_err().contains("DANCING"));
        assert!(of(&[]).is_err());
    }
}
