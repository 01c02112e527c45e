//! Actions of people on the pages.

use super::driver::{ENTER, RIGHT, SHIFT, TAB};
use super::*;
use tests::program;

#[tokio::test(flavor = "multi_thread")]
async fn pools_are_shown_as_the_service_has_them() {
    let Some(opened) = Opened::new().await else { return };
    opened.go("#/");
    let list = opened.get("/v1/pools");
    let pools = list["pools"].as_array().unwrap();
    let rows = opened.browser.texts("#pools tbody tr");
    assert_eq!((pools.len(), rows.len()), (2, 2), "{rows:?}");
    for pool in pools {
        let row = rows.iter().find(|row| row.contains(pool["id"].as_str().unwrap())).expect("a row for each pool");
        assert!(row.contains(pool["stage"].as_str().unwrap()), "{row}");
        assert!(row.contains(&shown(&pool["capacity_gpus"])), "{row}");
        for (hours, gpus) in pool["quota_gpus_by_hours"].as_object().unwrap() {
            assert!(row.contains(&format!("{hours} h{}", shown(gpus))), "{hours} h of {row}");
        }
    }
    let first = |browser: &Browser| browser.texts("#pools tbody th a")[0].clone();
    let before = first(&opened.browser);
    opened.browser.click("[data-key='sort-0']");
    assert_ne!(first(&opened.browser), before, "a click on the head turns the order");
    let sorted = opened.browser.run("return document.querySelector('#pools thead th').ariaSort", &[]);
    assert_eq!(sorted, "descending");
    assert_eq!(opened.browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_shows_its_quota_step_by_step_and_what_if() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    let start = opened.get(&format!("/v1/tasks/large/eta?{OF_POOL}"));
    let read = || {
        opened.go(POOL);
        (browser.texts("#quota .steps li"), browser.texts("#quota .figure")[0].clone())
    };
    let (explained, (steps, figure)) = opened.of_one_moment(&format!("/v1/quota/explain?{OF_POOL}&hours=4"), read);
    let answer: Vec<&str> = explained["steps"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(answer.len() >= 4, "{explained}");
    assert_eq!(steps, answer);
    assert_eq!(figure, shown(&explained["quota"]["quota_gpus"]));
    assert_eq!(browser.texts("#quota .waterfall li").len(), 6);
    // A time within a sentence of the service is the reader's.
    let since = browser.run("return document.querySelector('#eta .body p time')?.dateTime", &[]);
    let detail = explained["eta"]["last_decision"]["detail"].as_str().unwrap();
    assert!(since.as_str().is_some_and(|since| detail.contains(since)), "{detail}: {since:?}");
    browser.run("document.querySelector('#tab-4').focus()", &[]);
    browser.keys("", RIGHT);
    browser.until("document.querySelector('#tab-1').ariaSelected === 'true' && document.querySelector('#quota .facts dt').textContent.includes('1 h')");
    let of_one = opened.get(&format!("/v1/quota/explain?{OF_POOL}&hours=1"));
    assert_eq!(browser.texts("#quota .figure")[0], shown(&of_one["quota"]["quota_gpus"]));
    let waiting = browser.texts("#tasks tbody tr").join("\n");
    assert!(waiting.contains("large") && waiting.contains("org-001"), "{waiting}");
    // It is larger than the pool.
    assert_eq!(start["start"]["p50"], Value::Null, "{start}");
    assert!(waiting.contains("not within 72 h"), "{waiting}");
    let nodes = browser.texts("#nodes .body").join("");
    // They came a moment ago: the hours before are not known.
    assert!(nodes.contains("64 nodes") && !nodes.contains("over 168 hours"), "{nodes}");
    let asked = format!("/v1/quota/what-if?{OF_POOL}&hours=4&capacity_change_gpus=-50&demand_change_gpus=0");
    browser.run("document.querySelector('#what-if-capacity').value = '-50'; document.querySelector('#what-if-hours').value = '4'", &[]);
    browser.click("#what-if form button[type=submit]");
    browser.until("document.querySelector('#what-if table')");
    let answer = opened.get(&asked);
    assert_eq!(
        answer["then"]["capacity_gpus"].as_f64().unwrap() - answer["now"]["capacity_gpus"].as_f64().unwrap(),
        -50.0
    );
    let row = |place: usize| browser.texts(&format!("#what-if tbody tr:nth-child({place}) > *"));
    let numbers = |name: &str| [shown(&answer["now"][name]), shown(&answer["then"][name])];
    assert_eq!(row(1)[1..3], numbers("quota_gpus"));
    assert_eq!(row(3)[1..3], numbers("capacity_gpus"));
    assert_eq!(row(3)[3], "-50");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_another_scheduler_places_says_so_where_tasks_and_nodes_would_stand() {
    let Some(opened) = Opened::new().await else { return };
    let id = "demo%3A%3Ci%3EB200%3C%2Fi%3E";
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let state = json!({ "capacity_gpus": 600, "idle_gpus": 100, "spot_gpus_by_guarantee_hours": {}, "as_of": vocab::UnixSeconds::new(now).to_string() });
    let (status, body) = opened.service.send("PUT", &format!("/v1/pools/{id}/state"), Some(&state)).unwrap();
    assert_eq!(status, 200, "{body}");
    opened.go(&format!("#/pool/{id}"));
    for part in ["nodes", "tasks", "shares"] {
        let shown = opened.browser.texts(&format!("#{part} .body")).join("");
        assert!(shown.starts_with("Another scheduler places the tasks of this pool"), "{part}: {shown}");
    }
}

/// Moves on with the tabulator until the element with the keyboard is the one that is wanted.
fn tab_to(browser: &Browser, held: &str, wanted: &str) {
    for _ in 0..300 {
        browser.keys(held, TAB);
        if browser.run(&format!("return document.activeElement.matches({wanted:?})"), &[]) == true {
            return;
        }
    }
    panic!("{wanted} is not reached with the keyboard");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_is_added_and_withdrawn_with_the_keyboard_alone() {
    let Some(opened) = Opened::new().await else { return };
    opened.go(POOL);
    let browser = &opened.browser;
    let overrides = || opened.get(&format!("/v1/overrides?{OF_POOL}"))["overrides"].as_array().unwrap().clone();
    assert!(overrides().is_empty());
    tab_to(browser, "", "#override-gpus");
    browser.keys("", "32");
    tab_to(browser, "", "#override-reason");
    browser.keys("", "a demo <b>today</b>");
    browser.keys("", ENTER);
    browser.until("document.querySelector('#overrides tbody tr')");
    let made = overrides();
    assert_eq!(
        (made.len(), &made[0]["kind"], made[0]["gpus"].as_f64()),
        (1, &"reserve".into(), Some(32.0)),
        "{made:?}"
    );
    let row = browser.texts("#overrides tbody tr").join("");
    assert!(row.contains("a demo <b>today</b>") && row.contains("32"), "{row}");
    browser.until("document.querySelector('#quota .body').textContent.includes('a demo <b>today</b>') || (document.querySelector('#again').click(), false)");
    tab_to(browser, SHIFT, "[data-key^=withdraw]");
    browser.keys("", ENTER);
    browser.until("!document.querySelector('#overrides tbody tr')");
    assert!(overrides().is_empty());
    let past = opened.get(&format!("/v1/overrides?{OF_POOL}&past=true"));
    assert!(past["overrides"][0]["withdrawn_at"].is_string(), "{past}");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_where_one_is_required_and_forgotten_on_request() {
    let Some(opened) = Opened::new().await else { return };
    let create = ["token", "create", "--name", "eyes", "--role", "read", "--json", "--database", &opened.database.url];
    let token = program("quota-service", &create).json()["token"].as_str().unwrap().to_owned();
    let _ = opened.service.get_until("/v1/pools", |status, _| status == 401);
    opened.go("#/");
    let browser = &opened.browser;
    browser.until("document.querySelector('dialog[open]')");
    assert_eq!(browser.texts("#pools tbody tr"), [""; 0]);
    browser.keys("", &token);
    browser.keys("", ENTER);
    browser.until("document.querySelectorAll('#pools tbody tr').length === 2");
    let kept = "return [Object.values(sessionStorage), Object.values(localStorage), document.cookie, location.href].map(String)";
    let kept = browser.run(kept, &[]);
    let has = |place: usize| kept[place].as_str().unwrap().contains(&token);
    assert_eq!([has(0), has(1), has(2), has(3)], [true, false, false, false], "it stays in the tab: {kept}");
    opened.go(POOL);
    browser.run(
        "document.querySelector('#override-gpus').value = 1; document.querySelector('#override-reason').value = 'x'",
        &[],
    );
    browser.click("#overrides form button[type=submit]");
    browser.until("document.querySelector('#overrides form .message').textContent.includes('a token of the role')");
    browser.click("#forget");
    browser.until("document.querySelector('dialog[open]')");
    assert_eq!(browser.run("return sessionStorage.length", &[]), 0);
    // One that was revoked is refused as one that never was.
    browser.keys("", "revoked");
    browser.keys("", ENTER);
    browser.until("document.querySelector('#age').textContent === 'nothing to show: the service refused'");
    browser.until("document.querySelector('dialog[open]')");
    let asks = browser.texts("#forget").join("");
    let notices = browser.texts("#quota .notice").join("");
    assert!(notices.contains("not valid") && notices.contains(&asks) && asks.starts_with("Token"), "{asks}: {notices}");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_of_a_pool_see_its_events() {
    let Some(opened) = Opened::new().await else { return };
    opened.go(POOL);
    let browser = &opened.browser;
    browser.click("#follow");
    browser.until("document.querySelector('#events .body').textContent.startsWith('Following')");
    let task = json!({ "cluster": "demo", "gpu_model": "A100", "organization": "org-001", "class": "hp", "gpus_per_pod": 8.0, "pods": 1 });
    // The stream tells what comes after it was asked for: a task that came before goes by unseen, and another one comes.
    let is_seen = |number: u32| {
        let mut task = task.clone();
        task["id"] = format!("urgent-{number}").into();
        assert!(opened.service.send("POST", "/v1/tasks", Some(&task)).unwrap().0 < 300);
        std::thread::sleep(std::time::Duration::from_millis(200));
        browser.texts("#events tbody tr").iter().any(|row| row.contains("started") && row.contains("urgent-"))
    };
    assert!((0..40).any(is_seen), "{:?}", browser.texts("#events .body"));
    browser.click("#follow");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Has the page be behind another tab, or before the reader again.
fn shown_as(browser: &Browser, state: &str) {
    let script = "Object.defineProperty(document, 'visibilityState', { value: arguments[0], configurable: true }); document.dispatchEvent(new Event('visibilitychange'))";
    browser.run(script, &[state.into()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_tab_lets_its_stream_go_and_catches_up() {
    let Some(opened) = Opened::new().await else { return };
    opened.go(POOL);
    let browser = &opened.browser;
    let count = "window.streams = 0; window.asked = window.fetch; window.fetch = (url, options) => { const isStream = String(url).includes('/v1/events'); if (isStream) { window.streams += 1; options.signal.addEventListener('abort', () => { window.streams -= 1; }); } return window.asked(url, options); }";
    browser.run(count, &[]);
    browser.click("#follow");
    browser.until("window.streams === 1");
    let rows = |task: &str| browser.texts("#events tbody tr").iter().filter(|row| row.contains(task)).count();
    for round in 0..2 {
        shown_as(browser, "hidden");
        browser.until("window.streams === 0");
        let name = format!("meanwhile-{round}");
        let task = json!({ "cluster": "demo", "gpu_model": "A100", "id": name, "organization": "org-001", "class": "hp", "gpus_per_pod": 8.0, "pods": 1 });
        assert!(opened.service.send("POST", "/v1/tasks", Some(&task)).unwrap().0 < 300);
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(rows(&name), 0);
        shown_as(browser, "visible");
        browser.until(&format!("document.querySelector('#events .body').textContent.includes('{name}')"));
        assert_eq!((rows("meanwhile-0"), rows(&name)), (1, 1), "neither lost nor twice");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_part_leads_there_though_the_parts_above_grow() {
    let Some(opened) = Opened::new().await else { return };
    for part in ["demand", "nodes", "tasks"] {
        opened.go(&format!("{POOL}/{part}"));
        let top = format!("document.querySelector('#{part} h2').getBoundingClientRect().top");
        opened.browser.until(&format!("{top} >= 0 && {top} < 120"));
    }
    assert_eq!(opened.browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_is_drawn_from_now_on_for_its_hours() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    let read = || {
        opened.go(POOL);
        browser.click("#tab-1");
        browser.run("for (const one of document.querySelectorAll('#demand details')) one.open = true", &[]);
        browser.until("document.querySelector('#demand thead th:last-child')?.textContent === 'bound for 1 h'");
        browser.texts("#demand tbody td:last-child").iter().filter(|text| *text != "\u{2013}").count()
    };
    let (explained, hours) = opened.of_one_moment(&format!("/v1/quota/explain?{OF_POOL}&hours=1"), read);
    let is_whole = explained["quota"]["computed_at"].as_str().unwrap().contains(":00:00");
    assert_eq!(hours, if is_whole { 1 } else { 2 }, "an hour from within one reaches into the next");
}
