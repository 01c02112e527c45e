use tests::{TestDatabase, on_both_databases};
use vocab::CalendarName;

on_both_databases![a_changed_calendar_has_another_version, calendars_come_by_name_with_their_text_unchanged];

fn name(text: &str) -> CalendarName {
    CalendarName::parse(text).unwrap()
}

async fn a_changed_calendar_has_another_version(database: TestDatabase) {
    let store = database.store().await;
    let acme = name("acme");
    assert_eq!(store.calendar(&acme).await.unwrap(), None);
    let mut versions = Vec::new();
    for text in ["one", "one", "two", "one"] {
        versions.push(store.put_calendar(&acme, text).await.unwrap());
    }
    assert_eq!(versions, [Some(1), None, Some(2), Some(3)]);
    let stored = store.calendar(&acme).await.unwrap().unwrap();
    assert_eq!((stored.days_csv.as_str(), stored.version), ("one", 3));
}

async fn calendars_come_by_name_with_their_text_unchanged(database: TestDatabase) {
    let store = database.store().await;
    let text = "# years: 2024-2026\ndate,kind,name\n2024-02-10,off,\"春节, a \"\"golden\"\" week\"\n";
    for one in ["venus", "acme", "Zeta"] {
        store.put_calendar(&name(one), text).await.unwrap();
    }
    let all = store.calendars().await.unwrap();
    let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Zeta", "acme", "venus"], "by bytes, under any locale of the server");
    assert!(all.iter().all(|one| one.days_csv == text));
}
