use std::collections::BTreeSet;
use store::{AuditRecord, NewReservation, ReservationRecord};
use tests::fixture::{at, gpus, pool, put_clusters};
use tests::{TestDatabase, on_both_databases};
use vocab::{Organization, Repeats, Reservation, ReservationId, ReservedWindow, Weekday};

on_both_databases![
    a_reservation_is_kept_with_its_rule_and_audited,
    the_same_reservation_again_is_the_one_that_stands,
    reservations_that_may_have_a_window_ahead_are_asked_for,
];

fn asked(gpus_text: &str, repeats: Option<Repeats>) -> NewReservation {
    let organization = Organization::parse("lab").unwrap();
    let first = ReservedWindow { from: at(100), to: at(200), organization, gpus: gpus(gpus_text) };
    NewReservation { what: Reservation { pool: pool("earth:A100"), first, repeats }, by: "anna".to_owned(), at: at(5) }
}

fn weekly(until: Option<i64>) -> Repeats {
    Repeats { days: BTreeSet::from([Weekday::Monday, Weekday::Sunday]), until: until.map(at) }
}

fn audit() -> AuditRecord {
    AuditRecord {
        at: at(5),
        actor: "anna".to_owned(),
        token_id: None,
        action: "POST /v1/reservations".to_owned(),
        target: "/v1/reservations".to_owned(),
        status: 201,
        detail_json: None,
    }
}

async fn a_reservation_is_kept_with_its_rule_and_audited(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let asked = asked("12.5", Some(weekly(Some(1_000))));
    let (record, is_new) = store.put_reservation(&asked, &audit()).await.unwrap();
    assert!(is_new);
    assert_eq!(record, ReservationRecord { id: record.id, asked, withdrawn: None });
    assert_eq!(store.reservation_record(record.id).await.unwrap(), record);
    assert_eq!(store.audit(at(0), at(1_000), 10).await.unwrap().len(), 1);
    let gone = store.withdraw_reservation(record.id, at(50), "bert").await.unwrap();
    assert_eq!(gone.withdrawn, Some((at(50), "bert".to_owned())));
    assert_eq!(store.withdraw_reservation(record.id, at(60), "carl").await.unwrap(), gone, "the first one counts");
    let unknown = store.reservation_record(ReservationId(77)).await.unwrap_err().to_string();
    assert!(unknown.contains("77"), "{unknown}");
}

async fn the_same_reservation_again_is_the_one_that_stands(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    let (first, _) = store.put_reservation(&asked("8", Some(weekly(None))), &audit()).await.unwrap();
    let again = NewReservation { at: at(9), ..asked("8", Some(weekly(None))) };
    assert_eq!(store.put_reservation(&again, &audit()).await.unwrap(), (first, false));
    assert!(store.put_reservation(&asked("8", Some(weekly(Some(900)))), &audit()).await.unwrap().1, "another rule");
    assert!(store.put_reservation(&asked("8", None), &audit()).await.unwrap().1, "a single window is another one");
}

async fn reservations_that_may_have_a_window_ahead_are_asked_for(database: TestDatabase) {
    let store = database.store().await;
    put_clusters(&*store, &["earth"]).await;
    for repeats in [None, Some(weekly(Some(1_000))), Some(weekly(None))] {
        store.put_reservation(&asked("8", repeats), &audit()).await.unwrap();
    }
    for (after, left) in [(199, 3), (200, 2), (1_099, 2), (1_100, 1), (1_000_000, 1)] {
        let found = store.reservations(Some(&pool("earth:A100")), at(after), false).await.unwrap();
        assert_eq!(found.len(), left, "after {after}");
    }
    assert_eq!(store.reservations(Some(&pool("earth:H800")), at(0), true).await.unwrap(), []);
}
