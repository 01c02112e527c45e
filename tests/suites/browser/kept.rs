//! "Sold, kept, broken": whether a promise holds, in words and as a picture.

use super::*;

/// A gang of 8 GPUs for each of these hours, each hour of 28 days: one of twenty breaks, and in the last week two of five of those
/// of an hour.
fn month() -> Vec<Value> {
    let one = |hours: i64, hours_ago: i64| {
        let fails = hours == 1 && hours_ago <= 7 * 24;
        let breaks = if fails { hours_ago % 5 < 2 } else { hours_ago % 20 == 0 };
        let ended_at = this_hour().plus_hours(-hours_ago).instant();
        let lasted_s = if breaks { 1_800 } else { hours * 3_600 };
        json!({
            "event_id": format!("month-{hours}-{hours_ago}"), "cluster": "demo", "gpu_model": MARKUP_MODEL,
            "guarantee_hours": hours, "kind": if breaks { "broken" } else { "kept" }, "ended_at": ended_at.to_string(),
            "began_at": ended_at.plus_s(-lasted_s).to_string(), "gpus": 8,
        })
    };
    [1, 4].into_iter().flat_map(|hours| (1..=28 * 24).map(move |ago| one(hours, ago))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_that_fails_is_named_in_words_beside_one_that_holds() {
    let Some(opened) = Opened::new().await else { return };
    for batch in month().chunks(500) {
        let reported = opened.service.send("POST", "/v1/outcomes", Some(&json!({ "outcomes": batch }))).unwrap();
        assert_eq!(reported.0, 200, "{reported:?}");
    }
    opened.settle();
    let browser = &opened.browser;
    for (width, scheme) in [(1280, "light"), (360, "dark")] {
        browser.look(width, scheme);
        opened.go("#/pool/demo%3A%3Ci%3EB200%3C%2Fi%3E");
        browser.until("document.querySelector('#kept svg.intervals')");
        let rows = browser.texts("#kept tbody tr");
        let [one, two, four] = rows.try_into().unwrap();
        assert!(one.contains("the promise fails") && one.contains("since"), "{one}");
        assert!(two.contains("too little has ended to tell"), "{two}");
        assert!(four.contains("no sign that the promise fails") && !four.contains("since"), "{four}");
        let label = browser.run("return document.querySelector('#kept [role=img]').getAttribute('aria-label')", &[]);
        let week = label.as_str().unwrap().split("1 h, 7 days: ").nth(1).and_then(|rest| rest.split('%').next());
        let percent: f64 = week.unwrap().parse().unwrap();
        assert!((percent - 60.0).abs() < 2.0 && label.as_str().unwrap().contains("4 h, 28 days: 95"), "{label}");
        browser.run("document.querySelector('#kept details').open = true", &[]);
        assert!(
            browser.texts("#kept details").join("").contains("None of them is over yet"),
            "the first day has begun"
        );
        browser.run("document.querySelector('#kept').scrollIntoView()", &[]);
        assert_eq!(look::faults(browser), [""; 0], "{width} pixels, {scheme}");
        assert_eq!(browser.complaints(), [""; 0], "{width} pixels, {scheme}");
        browser.picture(&format!("kept-{width}-{scheme}"));
    }
}
