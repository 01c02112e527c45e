//! Facts of pods for tests.

use crate::view::facts::{Life, OwnHours, PodFacts, Uid};
use vocab::{NodeId, Organization, TaskClass, UnixSeconds};

/// A pod of `team-a` without a guarantee: it runs on a node since its creation at time 0, or waits.
pub fn pod(uid: Uid, gpus: u32, class: TaskClass, on: Option<&str>) -> PodFacts {
    let created = UnixSeconds::new(0);
    PodFacts {
        uid,
        namespace: "team-a".into(),
        name: "pod".into(),
        gpus,
        share_milli: 0,
        class,
        guarantee: None,
        hours_fault: None,
        own_hours: OwnHours::Silent,
        organization: Organization::parse("team-a").unwrap(),
        priority: 0,
        gpu_model: None,
        node: on.map(|name| NodeId::parse(name).unwrap()),
        life: if on.is_some() { Life::Runs } else { Life::Waits },
        created,
        bound: on.map(|_| created),
        ended: None,
        saved: None,
        is_going: false,
        disruption: None,
        is_emptied: false,
        is_announced: false,
        ready_for: None,
        is_at_will: false,
        workload: None,
        owner: None,
        gangs: Vec::new(),
    }
}
