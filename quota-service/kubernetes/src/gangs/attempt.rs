//! Attempts: the difference between one run of a gang and the next.

use super::{GangId, GangKind, Stated};
use vocab::UnixSeconds;

/// The clocks of Kueue and of the scheduler differ by no more, s.
const CLOCKS_DIFFER_S: i64 = 5;

/// An attempt to run a gang: pods that end in it are made again by its controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The gang whose object states it.
    pub gang: GangId,
    /// Name: the object, and its attempt.
    pub name: String,
    /// Since when Kueue admits it, where it does.
    admitted: Option<UnixSeconds>,
}

impl Attempt {
    /// As the object of a gang states it.
    #[must_use]
    pub fn of(gang: &GangId, stated: &Stated) -> Option<Self> {
        let attempt = stated.attempt.as_ref()?;
        let by_kueue = attempt.parse().ok().filter(|_| gang.key.kind == GangKind::KueueWorkload);
        let name = format!("{}/{attempt}", stated.uid);
        Some(Self { gang: gang.clone(), name, admitted: by_kueue.map(UnixSeconds::new) })
    }

    /// Whether Kueue admits it.
    #[must_use]
    pub fn is_of_kueue(&self) -> bool {
        self.gang.key.kind == GangKind::KueueWorkload
    }

    /// Whether Kueue admitted it after that.
    pub(super) fn is_after(&self, began: UnixSeconds) -> bool {
        self.admitted.is_some_and(|admitted| began.plus_s(CLOCKS_DIFFER_S) < admitted)
    }
}
