//! Hours that a pod asks to be guaranteed.

use super::{FactFault, Reading, annotation, annotation_or_label};
use crate::cluster::slim::Pod;
use crate::names;
use vocab::HorizonHours;

/// Hours as a pod itself states them, of any class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHours {
    /// Nothing.
    Silent,
    /// In digits: Kueue may write them once more.
    Digits(HorizonHours),
    /// In other words.
    Words(HorizonHours),
    /// 0, or text that makes no sense.
    Other,
}

impl OwnHours {
    pub(super) fn of(pod: &Pod) -> Self {
        let Some(text) = annotation_or_label(pod, names::GUARANTEE_HOURS) else { return Self::Silent };
        match HorizonHours::parse(text) {
            Ok(hours) if text == hours.get().to_string() => Self::Digits(hours),
            Ok(hours) => Self::Words(hours),
            Err(_) => Self::Other,
        }
    }

    /// Those that make sense.
    #[must_use]
    pub const fn hours(self) -> Option<HorizonHours> {
        match self {
            Self::Digits(hours) | Self::Words(hours) => Some(hours),
            Self::Silent | Self::Other => None,
        }
    }
}

/// The guarantee of a spot pod: what it states, or the default; text that makes no sense is a fault beside the default.
pub(super) fn guarantee(pod: &Pod, name: &str, reading: &Reading, faults: &mut Vec<FactFault>) -> Option<HorizonHours> {
    match annotation_or_label(pod, names::GUARANTEE_HOURS) {
        None => reading.default_guarantee,
        Some("0") => None,
        Some(value) => match HorizonHours::parse(value) {
            Ok(hours) => Some(hours),
            Err(fault) => {
                faults.push(annotation(name, names::GUARANTEE_HOURS, value, fault.to_string()));
                reading.default_guarantee
            }
        },
    }
}
