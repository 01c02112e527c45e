//! Reservations of windows ahead, and fair shares of spot.

use super::*;

/// A task at will.
fn at_will(id: &str, organization: &str, gpus: u32, pods: usize) -> Value {
    json!({
        "cluster": "demo", "gpu_model": "A100", "id": id, "organization": organization, "class": "spot",
        "gpus_per_pod": gpus, "pods": pods,
    })
}

impl Opened {
    fn sent(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.service.send(method, path, Some(body)).unwrap();
        assert!(status < 300, "{method} {path}: {answer}");
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_and_fair_shares_are_shown_as_the_service_has_them() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    opened.go(POOL);
    assert!(browser.texts("#shares .body").join("").contains("Not kept"), "{:?}", browser.texts("#shares .body"));
    assert!(browser.texts("#reservations .body").join("").contains("No reservations"));
    let mut settings = opened.get("/v1/pools/demo:A100/settings");
    settings["shares"] = json!({ "half_life_hours": 24, "weights": { "org-002": 3 } });
    opened.sent("PUT", "/v1/pools/demo:A100/settings", &settings);
    opened.sent("POST", "/v1/tasks", &at_will("much", MARKUP_ORGANIZATION, 4, 2 * NODES - 1));
    let wide = opened.sent("POST", "/v1/tasks", &at_will("wide", "org-002", 8, 1));
    assert_eq!(wide["status"], "waiting", "{wide}");
    let (from, to) = (this_hour().plus_hours(50).instant(), this_hour().plus_hours(54).instant());
    let window = json!({
        "cluster": "demo", "gpu_model": "A100", "organization": MARKUP_ORGANIZATION, "gpus": 16, "from": from.to_string(),
        "to": to.to_string(), "repeats": { "days": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"] },
    });
    let made = opened.sent("POST", "/v1/reservations", &window);
    let shares = opened.get("/v1/pools/demo:A100/shares");
    let borrows = shown(&shares["organizations"][2]["borrowed_gpus"]);
    for (width, scheme) in [(1280, "light"), (360, "dark")] {
        browser.look(width, scheme);
        opened.go(POOL);
        let rows = browser.texts("#shares tbody tr");
        // The first one waits for more GPUs than there are: no room is left for it.
        let [larger, below, above] = &rows[..] else { panic!("{rows:?}") };
        assert!(larger.contains("org-001") && larger.contains("1,600"), "the lowest level is first: {larger}");
        assert!(below.contains("org-002") && below.contains("wide (8 GPUs)"), "{below}");
        assert!(above.contains(MARKUP_ORGANIZATION) && above.contains(&format!("{borrows} GPUs")), "{above}");
        let sold = browser.texts("#reservations tbody tr").join("");
        assert!(sold.contains(MARKUP_ORGANIZATION) && sold.contains("MO TU WE TH FR SA SU"), "{sold}");
        let probability = made["windows"][0]["probability"].as_f64();
        assert_eq!(probability.is_none(), sold.contains("too little is measured"), "{made}: {sold}");
        assert_eq!(look::faults(browser), [""; 0], "{width} pixels, {scheme}");
        assert_eq!(browser.complaints(), [""; 0], "{width} pixels, {scheme}");
        browser.run("document.querySelector('#shares').scrollIntoView()", &[]);
        browser.picture(&format!("ahead-{width}-{scheme}"));
    }
    browser.click("#reservations tbody button");
    browser.until("document.querySelector('#reservations .message').textContent.includes('Withdrawn: 16 GPUs')");
    browser.until("document.querySelector('#reservations .body').textContent.includes('No reservations')");
    assert_eq!(opened.get(&format!("/v1/reservations?{OF_POOL}"))["reservations"], json!([]));
    assert_eq!(browser.complaints(), [""; 0]);
}
