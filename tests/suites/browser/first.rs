//! The first visit: commands where there is no pool, and the quota in sentences where there are one or two.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_pool_the_page_shows_three_commands() {
    let Some(browser) = Browser::open() else { return };
    let database = fresh_database(Backend::Sqlite).await;
    let service =
        Listening::of("quota-service", &["--listen", "127.0.0.1:0", "--json", "--database", &database.url], &[]);
    let _ = service.get_until("/v1/pools", |status, _: &Value| status == 200);
    let opened = Opened { browser, service, database };
    opened.go("#/");
    let commands = opened.browser.texts("#pools .first ol code");
    assert_eq!(commands.len(), 3, "{commands:?}");
    assert!(commands[0].starts_with("datasets ingest ") && commands[1].starts_with("train "), "{commands:?}");
    assert!(commands[2].contains(&format!("http://{}/quota?", opened.service.address)), "{commands:?}");
    opened.browser.picture("first-visit");
    assert_eq!(opened.browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_installation_reads_its_quota_in_sentences() {
    let Some(opened) = Opened::new().await else { return };
    let read = || {
        opened.go("#/");
        opened.browser.texts("#pools .story")
    };
    let (_, stories) = opened.of_one_moment("/v1/quota/explain?cluster=demo&gpu_model=A100&hours=4", read);
    let list = opened.get("/v1/pools");
    let pool = &list["pools"].as_array().unwrap()[usize::from(list["pools"][0]["id"] != "demo:A100")];
    let story = stories.iter().find(|story| story.contains("demo:A100")).expect("a story for each of two pools");
    for value in [&pool["capacity_gpus"], &pool["quota_gpus_by_hours"]["4"], &pool["demand_bound_gpus_by_hours"]["4"]] {
        assert!(story.contains(&format!("{} GPUs", shown(value))), "{value} is not in {story}");
    }
    assert!(story.contains("promise of 4 hours"), "{story}");
    opened.browser.click("#pools .story a");
    opened.browser.until("document.activeElement.id === 'quota-title'");
    assert_eq!(opened.browser.complaints(), [""; 0]);
}
