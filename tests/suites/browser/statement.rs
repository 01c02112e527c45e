//! The statement of a month: the same numbers as the route has, and a file of them.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_statement_says_where_gpu_time_went_and_who_preempts_whom() {
    let Some(opened) = Opened::new().await else { return };
    let submit = |id: &str, organization: &str, class: &str| {
        let task = json!({
            "cluster": "demo", "gpu_model": "A100", "id": id, "organization": organization, "class": class, "gpus_per_pod": 8,
            "pods": NODES,
        });
        let submitted = opened.service.send("POST", "/v1/tasks", Some(&task)).unwrap();
        assert_eq!(submitted.1["status"], "running", "{submitted:?}");
    };
    let cancelled = opened.service.send("DELETE", "/v1/tasks/large?cluster=demo&gpu_model=A100", None).unwrap();
    assert_eq!(cancelled.0, 200, "{cancelled:?}");
    submit("fill", MARKUP_ORGANIZATION, "spot");
    std::thread::sleep(std::time::Duration::from_secs(2));
    submit("urgent", "org-001", "hp");
    let browser = &opened.browser;
    for (width, scheme) in [(1280, "light"), (360, "dark")] {
        browser.look(width, scheme);
        opened.go("#/statement");
        browser.until("document.querySelector('#preemptions tbody tr')");
        let preemptions = browser.texts("#preemptions tbody tr").join("");
        assert!(preemptions.contains("org-001") && preemptions.contains(MARKUP_ORGANIZATION), "{preemptions}");
        let organizations = browser.texts("#organizations tbody tr").join("\n");
        assert_eq!(organizations.lines().filter(|line| line.contains("org-001")).count(), 1, "{organizations}");
        let pools = browser.texts("#statement").join("");
        assert!(pools.contains("demo:A100") && pools.contains("Goodput"), "{pools}");
        assert_eq!(look::faults(browser), [""; 0], "{width} pixels, {scheme}");
        assert_eq!(browser.complaints(), [""; 0], "{width} pixels, {scheme}");
        browser.picture(&format!("statement-{width}-{scheme}"));
    }
}
