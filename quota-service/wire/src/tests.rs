//! Each decision of a pool comes back from its twin unchanged.

use crate::{AccountsRecord, FactRecord, SnapshotRecord, StartQuestion, TaskBody, TopologyBody};
use accounts::{Accounts, Parts};
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::policy::Timing;
use placement::pool::{Command, Elastic, Fact, NodeLoss, Pool, PoolRules, Request, Snapshot};
use placement::{Limit, Policy};
use std::sync::Arc;
use vocab::{Affinity, HorizonHours, MilliGpus, NodeId, Organization, TaskClass, TaskId, Topology, UnixSeconds};

/// Numbers that follow from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % count
    }

    fn task(&mut self) -> TaskId {
        TaskId::parse(&format!("task-{}", self.below(40))).unwrap()
    }

    fn node(&mut self) -> NodeId {
        NodeId::parse(&format!("node-{}", self.below(5))).unwrap()
    }

    fn request(&mut self, now: UnixSeconds) -> Request {
        let class = [TaskClass::Hp, TaskClass::Spot][self.below(2) as usize];
        let gpus = match self.below(3) {
            0 => GpuRequest::Share(self.below(999) as u16 + 1),
            _ => GpuRequest::Whole(self.below(8) as u16 + 1),
        };
        let affinity = [None, Affinity::parse("numa:guaranteed"), Affinity::parse("socket")][self.below(3) as usize];
        let pod = PodRequest { affinity, ..PodRequest::new(gpus, self.below(9_000), self.below(99)) };
        let gang = Gang { task: self.task(), class, pod, pods: self.below(3) as u32 + 1 };
        let organization = Organization::parse(["vision", "speech"][self.below(2) as usize]).unwrap();
        let hours = (class == TaskClass::Spot).then(|| HorizonHours::new(self.below(3) + 1).unwrap());
        let (min, more) = (self.below(u64::from(gang.pods)) as u32 + 1, self.below(5) as u32);
        let speeds =
            [None, Some((1..=gang.pods + more).map(|pods| 900 * pods).collect())][self.below(2) as usize].clone();
        let is_elastic = Elastic::check(&gang).is_ok() && self.below(2) == 0;
        let elastic = is_elastic.then(|| Elastic::new(min, gang.pods, gang.pods + more, speeds).unwrap());
        Request { gang, organization, submitted: now, hours, elastic }
    }

    fn command(&mut self, now: UnixSeconds) -> Command {
        match self.below(15) {
            0 => {
                let preset = Topology::PRESETS.get(self.below(3) as usize);
                let topology = preset.map(|name| Arc::new(Topology::preset(name).unwrap()));
                Command::AddNode { node: self.node(), gpus: 8, cpu_milli: Some(64_000), memory_mib: None, topology }
            }
            1 => Command::OpenNode { node: self.node(), is_open: self.below(2) == 0 },
            2 => {
                let cause = [NodeLoss::Failed, NodeLoss::Drained][self.below(2) as usize];
                Command::RemoveNode { node: self.node(), cause }
            }
            3 => {
                let quota = MilliGpus::from_milli(self.below(30_000)).unwrap();
                let limit = |hours| Limit { hours: HorizonHours::new(hours).unwrap(), quota };
                Command::SetLimits((1..=3).map(limit).collect())
            }
            4 | 5 => Command::Finish { task: self.task() },
            6 => Command::Delete { task: self.task() },
            7 => Command::Save { task: self.task() },
            8 => Command::Measure {
                task: self.task(),
                pods: self.below(9) as u32 + 1,
                speed_thousandths: self.below(9_000) + 1,
            },
            _ => Command::Submit(self.request(now)),
        }
    }
}

fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn facts_and_snapshots_of_random_histories_come_back_as_they_were() {
    let (mut kinds, mut widest) = (std::collections::BTreeSet::new(), 0);
    for seed in 0..50 {
        let mut draw = Draw(seed);
        let mut pool = Pool::new(
            Policy { topology: seed % 2 == 0, timing: Timing::Lazer { seed }, ..Policy::GFS },
            PoolRules { grace_s: 30, ..PoolRules::default() },
        );
        let (mut now, mut accounts) = (UnixSeconds::new(1_700_000_000), Accounts::begin(&pool));
        for _ in 0..200 {
            now = now.plus_s(draw.below(900) as i64);
            let command = draw.command(now);
            let report = pool.handle(now, &command).0;
            accounts.take(&pool, &report);
            for fact in report.facts {
                let back = Fact::try_from(&again(&FactRecord::from(&fact)));
                assert_eq!(back.as_ref(), Ok(&fact), "seed {seed}");
                kinds.insert(format!("{fact:?}").split(' ').next().unwrap().to_owned());
            }
        }
        let (parts, stored) =
            (accounts.parts(), serde_json::to_string(&AccountsRecord::from(&accounts.parts())).unwrap());
        let back = Parts::try_from(&crate::from_json::<AccountsRecord>(&stored).unwrap());
        assert!(!parts.final_days.is_empty(), "seed {seed}: no day is over");
        assert_eq!(back, Ok(parts), "seed {seed}");
        let snapshot = pool.snapshot();
        widest = widest.max(snapshot.running.len().min(snapshot.waiting.len()));
        let back = Snapshot::try_from(&again(&SnapshotRecord::from(&snapshot)));
        assert_eq!(back, Ok(snapshot), "seed {seed}");
    }
    assert_eq!(kinds.len(), 12, "every kind of fact came: {kinds:?}");
    assert!(widest > 3, "some histories end with tasks that run and tasks that wait");
}

#[test]
fn a_snapshot_from_before_fragmentation_counted_cpu_is_read_and_gets_its_target() {
    let mut pool = Pool::new(Policy::parse("fgd").unwrap(), PoolRules::default());
    let mut draw = Draw(7);
    for _ in 0..40 {
        let _ = pool.handle(UnixSeconds::new(1_700_000_000), &draw.command(UnixSeconds::new(1_700_000_000)));
    }
    let mut old = serde_json::to_value(SnapshotRecord::from(&pool.snapshot())).unwrap();
    let entries = old["workload"].as_array_mut().unwrap();
    assert!(!entries.is_empty());
    for entry in entries.iter_mut() {
        entry.as_object_mut().unwrap().retain(|key, _| ["gpus_milli", "pods"].contains(&key.as_str()));
    }
    let record: SnapshotRecord = serde_json::from_value(old).unwrap();
    let snapshot = Snapshot::try_from(&record).unwrap();
    let read = Pool::restore(&snapshot, *pool.policy(), PoolRules::default()).unwrap();
    let of = |pool: &Pool| pool.snapshot().workload.iter().map(|one| one.pods).sum::<u64>();
    assert_eq!(of(&read), of(&pool));
    assert!(read.snapshot().workload.iter().any(|one| one.target_pods.is_some()), "it is made of all that is known");
}

#[test]
fn a_damaged_record_is_refused_with_its_field() {
    let fault = |json: &str| {
        let record: FactRecord = serde_json::from_str(json).map_err(|fault| fault.to_string())?;
        Fact::try_from(&record).map_err(|fault| fault.to_string())
    };
    for (json, expected) in [
        (
            r#"{"fact": "ended", "task": "a", "ending": "lost"}"#,
            "unknown variant `lost`, expected `finished` or `deleted`",
        ),
        (
            r#"{"fact": "node_removed", "node": "n", "cause": "bored"}"#,
            "unknown variant `bored`, expected `failed` or `drained`",
        ),
        (r#"{"fact": "saved", "task": ""}"#, "/task: the task is empty"),
        (
            r#"{"fact": "renewed", "task": "a", "guarantee": {"hours": 1, "until_unix_s": -9223372036854775808}}"#,
            "/guarantee/until_unix_s: -9223372036854775808 s since 1970 lies outside the years 1970 to 2200",
        ),
        (r#"{"fact": "forgotten", "task": "a"}"#, "unknown variant `forgotten`"),
        (
            r#"{"fact": "started", "task": "a", "places": [{"node": "n", "gpus": [64]}], "guarantee": null, "victims": [], "starts_unix_s": 1}"#,
            "/places/gpus: GPUs are numbered from 0 to 63",
        ),
    ] {
        let found = fault(json).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn no_task_of_a_journal_belongs_to_the_pool_as_a_whole() {
    let now = UnixSeconds::new(1_700_000_000);
    let request = Draw(3).request(now);
    let mut submitted = serde_json::to_value(FactRecord::from(&Fact::Submitted { request })).unwrap();
    let read = |json: &serde_json::Value| Fact::try_from(&serde_json::from_value::<FactRecord>(json.clone()).unwrap());
    assert!(read(&submitted).is_ok());
    submitted["request"]["organization"] = "*".into();
    assert!(read(&submitted).unwrap_err().to_string().starts_with("/request/organization: * is the pool itself"));
    let mut record = SnapshotRecord::from(&Pool::new(Policy::GFS, PoolRules::default()).snapshot());
    assert!(Snapshot::try_from(&record).is_ok());
    let total = record.demand.last().cloned().unwrap();
    record.demand.push(total);
    assert!(Snapshot::try_from(&record).unwrap_err().to_string().starts_with("/demand: more than one total"));
}

#[test]
fn a_journal_from_before_topologies_reads_on() {
    let json = r#"{"fact": "node_added", "node": "n", "gpus": 8, "cpu_milli": null, "memory_mib": null}"#;
    let fact = Fact::try_from(&serde_json::from_str::<FactRecord>(json).unwrap()).unwrap();
    assert!(matches!(fact, Fact::NodeAdded { topology: None, .. }));
}

#[test]
fn a_topology_is_a_preset_or_its_parts_and_a_wrong_one_is_refused_with_its_field() {
    let of =
        |json: &str| serde_json::from_str::<TopologyBody>(json).unwrap().parse().map_err(|fault| fault.to_string());
    let by_part = of(r#"{"numa_nodes": [{"numa_node": 0, "socket": 0, "gpus": [0, 1], "cores": "0-31,64-95"},
                      {"numa_node": 1, "socket": 1, "gpus": [2, 3], "cores": "32-63"}], "nvlink_islands": [[0, 1]]}"#);
    let by_part = by_part.unwrap();
    assert_eq!(by_part.cores_of(0b1).to_string(), "0-15,64-79");
    assert_eq!(again(&TopologyBody::from(&by_part)).parse(), Ok(by_part));
    assert_eq!(of(r#"{"preset": "a100-8"}"#), Ok(Topology::preset("a100-8").unwrap()));
    for (json, expected) in [
        (r#"{"preset": "dgx"}"#, "/topology/preset: unknown topology \"dgx\": expected one of rtx4090-8, a100-8"),
        (r#"{"preset": "a100-8", "nvlink_islands": [[0]]}"#, "/topology/preset: a preset is a whole topology"),
        (r#"{"numa_nodes": [{"numa_node": 0, "socket": 0, "gpus": [1]}]}"#, "/topology: GPU 0 is in no NUMA node"),
        (r#"{"numa_nodes": [{"numa_node": 0, "socket": 0, "gpus": [64]}]}"#, "/topology/numa_nodes: GPU 64 exceeds"),
    ] {
        let found = of(json).unwrap_err();
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn a_task_without_gpus_is_refused_in_a_submission_and_in_questions() {
    let expected = "/gpus_per_pod: 0 GPUs: no quota holds such a task";
    let fields = r#""cluster": "earth", "gpu_model": "V100", "organization": "o", "gpus_per_pod": 0"#;
    let body: TaskBody = serde_json::from_str(&format!(r#"{{"id": "t", "class": "hp", {fields}}}"#)).unwrap();
    let asked: StartQuestion = serde_json::from_str(&format!(r#"{{"class": "spot", {fields}}}"#)).unwrap();
    let now = UnixSeconds::new(5);
    for found in [body.parse(now).unwrap_err(), asked.parse(now).unwrap_err()] {
        assert!(found.to_string().starts_with(expected), "{found}");
    }
}

#[test]
fn a_task_body_needs_no_more_than_it_says() {
    let body: TaskBody = serde_json::from_str(
        r#"{"cluster": "earth", "gpu_model": "V100", "id": "t", "organization": "o", "class": "spot", "gpus_per_pod": 0.25}"#,
    )
    .unwrap();
    let (pool, request) = body.parse(UnixSeconds::new(5)).unwrap();
    assert_eq!((pool.to_string().as_str(), request.gang.pods, request.hours), ("earth:V100", 1, None));
    assert_eq!(request.gang.pod.gpus, GpuRequest::Share(250));
}
