//! Names, amounts, times, and the short texts that choose something.

use crate::is_one_line;
use chrono_tz::Tz;
use datasets::calendar::CalendarChoice;
use forecaster::ModelKind;
use forecaster::bound::Aggregation;
use placement::{Eta, Policy};
use std::fmt::{Debug, Display};
use vocab::{
    Affinity, CalendarName, ClusterName, EventId, GpuModel, GuaranteeRate, HorizonHours, HourStart, List, MilliGpus,
    NodeId, Organization, OutcomeKind, PoolId, TaskClass, TaskId, Topology, UnixSeconds,
};

/// Text that is a name, an amount, a time or a choice prints as itself; eight bytes are a number.
pub fn names(data: &[u8]) {
    if let Some(bytes) = data.first_chunk() {
        numbers(*bytes);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    for parse in [
        |text: &str| printed(text, ClusterName::parse),
        |text: &str| printed(text, GpuModel::parse),
        |text: &str| printed(text, Organization::parse),
        |text: &str| printed(text, NodeId::parse),
        |text: &str| printed(text, EventId::parse),
        |text: &str| printed(text, TaskId::parse),
        |text: &str| printed(text, CalendarName::parse),
        |text: &str| printed(text, PoolId::parse),
    ] {
        if let Some(again) = parse(text) {
            assert_eq!(again, text, "a name is what was written");
        }
    }
    printed(text, CalendarChoice::parse);
    printed(text, HorizonHours::parse);
    printed(text, GuaranteeRate::parse);
    printed(text, List::parse);
    printed(text, Topology::parse);
    printed(text, |text| Affinity::parse(text).ok_or("none"));
    if let Some(again) = printed(text, MilliGpus::parse) {
        assert_eq!(again.split_once('.').map(|(_, thousandths)| thousandths.len()), Some(3), "{again}");
    }
    for zone in [chrono_tz::UTC, Tz::Asia__Shanghai, Tz::America__St_Johns] {
        printed(text, |text| datasets::time::parse(text, zone));
    }
    let choices = [
        TaskClass::parse(text).map(TaskClass::as_str),
        OutcomeKind::parse(text).map(OutcomeKind::as_str),
        Aggregation::parse(text).ok().map(Aggregation::as_str),
        ModelKind::parse(text).ok().map(ModelKind::as_str),
    ];
    for choice in choices.into_iter().flatten() {
        assert_eq!(choice, text);
    }
    let _ = Policy::parse(text);
}

/// A value that is read prints as a text that is read as the same value.
fn printed<T, E>(text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Option<String>
where
    T: Display + Debug + PartialEq,
    E: Display,
{
    match parse(text) {
        Err(fault) => {
            is_one_line(&fault.to_string());
            None
        }
        Ok(read) => {
            let again = read.to_string();
            match parse(&again) {
                Ok(twice) => assert_eq!(twice, read, "{text:?} prints as {again:?}"),
                Err(fault) => panic!("{text:?} prints as {again:?}, which is refused: {fault}"),
            }
            Some(again)
        }
    }
}

fn numbers(bytes: [u8; 8]) {
    let unix_s = i64::from_le_bytes(bytes);
    let at = UnixSeconds::new(unix_s);
    is_one_line(&at.to_string());
    if let Ok(hour) = at.hour() {
        assert!((0..3_600).contains(&at.since_s(hour.instant())), "{at} is not in the hour of {hour}");
        printed(&hour.to_string(), |text| datasets::time::parse(text, chrono_tz::UTC));
    }
    if let Ok(hour) = HourStart::from_unix_s(unix_s) {
        assert_eq!(at.hour(), Ok(hour));
        let later = hour.plus_hours(unix_s);
        assert!(later >= hour && later.hours_since(hour) <= unix_s);
    }
    if let Ok(amount) = MilliGpus::from_milli(u64::from_le_bytes(bytes)) {
        assert_eq!(MilliGpus::nearest(amount.as_gpus()), Ok(amount));
        assert_eq!(MilliGpus::parse(&amount.to_string()), Ok(amount));
    }
    let float = f64::from_le_bytes(bytes);
    if let Ok(amount) = MilliGpus::rounded_up(float) {
        assert!(amount.as_gpus() >= float, "{float} was rounded up to {amount}");
    }
    if let Ok(rate) = GuaranteeRate::new(float) {
        assert_eq!(GuaranteeRate::new(rate.as_f64()), Ok(rate));
    }
    if let Ok(eta) = Eta::nearest(float) {
        assert_eq!(Eta::nearest(eta.as_f64()), Ok(eta));
    }
}
