//! An API server that is away for a while.

use super::joined::service;
use super::quotas::{SETTINGS, nominal, offered, site};
use super::{CLUSTER, MODEL, until};
use std::time::{Duration, Instant};

/// Long enough for some tries, too short for a stale view.
const OUTAGE: Duration = Duration::from_secs(8);
/// Lines of the log for one outage: of three watches, the lease, the lead, its end, the quota and the heartbeat, each at begin and end.
const LINES_MOST: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_the_view_follows_again_and_the_log_has_a_line_for_each_begin_and_end() {
    let site = site().await;
    let (service, _database) = service(&site).await;
    let connector = site.connector("run", &format!("http://{}", service.address), &SETTINGS);
    let wanted = offered(&service);
    until("the quota is published", || (nominal(&site) == Some(wanted)).then_some(())).await;
    site.cluster.go_down();
    tokio::time::sleep(OUTAGE).await;
    site.pods(20..24, false);
    site.cluster.come_up();
    let back = Instant::now();
    let pool = format!("/v1/pools/{CLUSTER}:{MODEL}/state");
    let _ = service.get_until(&pool, |status, body| status == 200 && body["idle_gpus"] == 18.0);
    println!("the service knows the pods of the outage {:.1} s after its end", back.elapsed().as_secs_f64());
    assert_eq!(connector.get("/readyz").0, 200);
    let ended = connector.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let logged = ended.stderr.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    assert!(logged > 0 && logged <= LINES_MOST, "{logged} lines: {}", ended.stderr);
    assert!(ended.stderr.contains("the watch works again"), "{}", ended.stderr);
}
