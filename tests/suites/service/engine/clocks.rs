//! Rules of reservations over the changes of the clocks, through the routes.

use super::*;
use tests::on_both_databases;

on_both_databases![a_rule_in_the_night_keeps_its_local_time_over_each_change_of_the_clocks];

/// The first Sunday of a rule at 02:30 in Berlin, and its first three windows. The second is that of the change: in spring 02:30 does not
/// exist and counts with the offset before, in autumn it comes twice and is the first.
const SUNDAYS: [(&str, [&str; 3]); 4] = [
    ("2026-03-22T02:30:00+01:00", ["2026-03-22T01:30:00Z", "2026-03-29T01:30:00Z", "2026-04-05T00:30:00Z"]),
    ("2026-10-18T02:30:00+02:00", ["2026-10-18T00:30:00Z", "2026-10-25T00:30:00Z", "2026-11-01T01:30:00Z"]),
    ("2027-03-21T02:30:00+01:00", ["2027-03-21T01:30:00Z", "2027-03-28T01:30:00Z", "2027-04-04T00:30:00Z"]),
    ("2027-10-24T02:30:00+02:00", ["2027-10-24T00:30:00Z", "2027-10-31T00:30:00Z", "2027-11-07T01:30:00Z"]),
];

fn instant(text: &str) -> UnixSeconds {
    datasets::time::parse(text, datasets::reservations::Tz::UTC).unwrap()
}

/// A service of a cluster in Berlin, two days before an instant.
async fn in_berlin(store: Arc<dyn Store>, before: UnixSeconds) -> TestService {
    let until = before.hour().unwrap().plus_hours(-48);
    let demo =
        Cluster { name: cluster("demo"), time_zone: "Europe/Berlin".to_owned(), calendar: "weekdays".to_owned() };
    store.put_cluster(&demo).await.unwrap();
    let start = until.plus_hours(-24 * i64::from(DAYS));
    let made_up = SmallCluster {
        cluster: cluster("demo"),
        gpu_model: GpuModel::parse("A100").unwrap(),
        start,
        days: DAYS,
        organizations: 3,
        seed: 7,
    };
    let capacity = CapacityRow { pool: pool(POOL), from: start, capacity: MilliGpus::from_gpus(500) };
    store.append(&made_up.usage(), &[capacity]).await.unwrap();
    promote(store.as_ref(), &cluster("demo"), ModelKind::LastValue, until).await;
    let service = TestService::start(store, until.instant().plus_s(60)).await;
    service.renew().await;
    service
}

async fn a_rule_in_the_night_keeps_its_local_time_over_each_change_of_the_clocks(database: TestDatabase) {
    let store = database.store().await;
    for (from, expected) in SUNDAYS {
        let begin = instant(expected[0]);
        let service = in_berlin(store.clone(), begin).await;
        let rule = json!({
            "cluster": "demo", "gpu_model": "A100", "organization": "org-001", "gpus": 8.0, "from": from,
            "to": begin.plus_s(3_600).to_string(), "repeats": { "days": ["SU"] },
        });
        let made = service.post("/v1/reservations", &rule).await.expect(201);
        let path = format!("/v1/reservations?{OF_POOL}");
        let listed = service.get(&path).await.expect(200);
        let mine = listed["reservations"].as_array().unwrap().iter().find(|one| one["id"] == made["id"]).unwrap();
        let calendar = service.get(&format!("/v1/reservations.ics?{OF_POOL}")).await;
        let calendar = calendar.body.as_str().unwrap().to_owned();
        for (window, from) in mine["windows"].as_array().unwrap().iter().zip(expected) {
            let to = instant(from).plus_s(3_600);
            assert_eq!((&window["from"], &window["to"]), (&json!(from), &json!(to.to_string())), "{mine}");
            let stamp: String = from.chars().filter(|one| !matches!(one, '-' | ':')).collect();
            assert!(calendar.contains(&format!("DTSTART:{stamp}\r\n")), "{from}: {calendar}");
        }
        let id = &made["id"];
        assert_eq!(service.send(Method::DELETE, &format!("/v1/reservations/{id}"), &[], None).await.status, 204);
        service.leave().await;
    }
}
