//! The service decides as the simulator decides: one history, given to both.

use super::*;
use placement::Policy;
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Command, Pool, PoolRules, Request, Snapshot};
use tests::on_both_databases;
use vocab::{ClusterName, MilliGpus, NodeId, Organization, TaskClass, TaskId};
use wire::SnapshotRecord;

on_both_databases![service_and_simulator_decide_the_same_on_the_same_history];

/// Running tasks with their nodes and starts, waiting tasks with their begins, and evictions of each.
fn seen(snapshot: &Snapshot) -> String {
    let running = snapshot.running.iter().map(|run| {
        let task = &run.request.gang.task;
        format!("{task} runs on {:?} since {} from {}, evicted {:?}\n", run.places, run.since, run.starts, run.evicted)
    });
    let waiting = snapshot.waiting.iter().map(|one| {
        format!("{} waits since {}, rests until {:?}\n", one.request.gang.task, one.queued, one.rests_until)
    });
    running.chain(waiting).collect()
}

fn request(id: &str, class: TaskClass, gpus: f64, pods: u32, service: &TestService) -> Request {
    let gpus = GpuRequest::of(MilliGpus::nearest(gpus).unwrap()).unwrap();
    let pod = PodRequest::new(gpus, 0, 0);
    let gang = Gang { task: TaskId::parse(id).unwrap(), class, pod, pods };
    let (organization, submitted) = (Organization::parse("org-000").unwrap(), service.service.core.clock.now());
    Request { gang, organization, submitted, hours: None, elastic: None }
}

async fn service_and_simulator_decide_the_same_on_the_same_history(database: TestDatabase) {
    let service = placing(&database, 6).await;
    // As the settings of a pool are where nobody sets them.
    let mut pool = Pool::new(Policy::GFS, PoolRules { grace_s: 30, ..PoolRules::default() });
    for number in 0..6 {
        let node = NodeId::parse(&format!("n{number}")).unwrap();
        let add = Command::AddNode { node, gpus: 8, cpu_milli: None, memory_mib: None, topology: None };
        pool.handle(service.service.core.clock.now(), &add).1.unwrap();
    }
    let mut seed = 11_u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let cluster = ClusterName::parse("demo").unwrap();
    let mut evictions = 0;
    for number in 0..150 {
        service.pass_s(draw(400) as i64);
        let now = service.service.core.clock.now();
        service.service.engine.pass(&cluster).await.unwrap();
        pool.pass(now);
        let running: Vec<TaskId> = pool.fleet().tasks().keys().cloned().collect();
        if draw(5) < 2 && !running.is_empty() {
            let task = running[draw(running.len() as u64) as usize].clone();
            let _ = tell(&service, task.as_str(), "finish").await.expect(200);
            pool.handle(now, &Command::Finish { task }).1.unwrap();
        } else {
            let id = format!("task-{number}");
            let (gpus, pods) = ([0.5, 1.0, 2.0, 8.0][draw(4) as usize], draw(3) as u32 + 1);
            let is_hp = draw(3) == 0;
            let body = if is_hp { hp(&id, gpus, pods) } else { spot(&id, gpus, pods, None) };
            let _ = submit(&service, &body).await;
            let class = if is_hp { TaskClass::Hp } else { TaskClass::Spot };
            let (report, done) = pool.handle(now, &Command::Submit(request(&id, class, gpus, pods, &service)));
            done.unwrap();
            evictions += report.consequences.cuts.len();
        }
        let record: SnapshotRecord = serde_json::from_value(snapshot(&service).await).unwrap();
        assert_eq!(seen(&Snapshot::try_from(&record).unwrap()), seen(&pool.snapshot()), "after step {number}");
    }
    assert!(evictions >= 5, "{evictions}");
}
