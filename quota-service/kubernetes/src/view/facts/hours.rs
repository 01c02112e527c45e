//! Hours that a pod asks to be guaranteed.

use super::{FactFault, Reading, annotation, annotation_or_label};
use crate::cluster::slim::Pod;
use crate::names;
use vocab::HorizonHours;

/// Hours as a pod itself states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHours {
    /// Nothing.
    Silent,
    /// Its guarantee, in digits: Kueue may write them once more.
    Digits,
    /// Others, or in other words.
    Other,
}

impl OwnHours {
    /// Of a pod with this guarantee.
    pub(super) fn of(pod: &Pod, guarantee: Option<HorizonHours>) -> Self {
        match (annotation_or_label(pod, names::GUARANTEE_HOURS), guarantee) {
            (None, _) => Self::Silent,
            (Some(text), Some(hours)) if text == hours.get().to_string() => Self::Digits,
            (Some(_), _) => Self::Other,
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
