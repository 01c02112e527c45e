//! While the service is gone a page keeps the figures that it read last, and counts their age from then.

use super::*;

const ROWS: &str = "return document.querySelectorAll('#content tbody tr').length";
/// Questions fail as those to a service that has stopped.
const STOP: &str = "window.asked = window.fetch; window.fetch = () => Promise.reject(new TypeError('gone'))";
const START: &str = "window.fetch = window.asked";

/// The time in the head, as UTC.
fn read_at(browser: &Browser) -> Value {
    browser.run("return document.querySelector('#age time').dateTime", &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_gone_leaves_its_last_figures_with_their_age() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    for page in ["#/", POOL, "#/runs/demo"] {
        opened.go(page);
        browser.run(STOP, &[]);
        let (rows, before) = (browser.run(ROWS, &[]), read_at(browser));
        assert!(rows.as_u64() > Some(0), "{page}: {rows} rows");
        browser.click("#again");
        browser.until("document.querySelector('#age .badge')");
        assert_eq!((browser.run(ROWS, &[]), read_at(browser)), (rows, before.clone()), "{page}");
        let notices = browser.texts("#content section .notice.fault");
        assert!(!notices.is_empty(), "{page}");
        for notice in notices {
            assert!(notice.contains("does not answer") && notice.contains("was read at"), "{page}: {notice}");
        }
        browser.run(START, &[]);
        browser.click("#again");
        browser.until("!document.querySelector('#age .badge') && !document.querySelector('#content .notice.fault')");
        assert_ne!(read_at(browser), before, "{page}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_never_read_says_that_alone_until_the_service_is_back() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    opened.go("#/statement");
    browser.run(STOP, &[]);
    browser.run("location.hash = arguments[0]", &[POOL.into()]);
    browser.until("document.querySelector('#age').textContent === 'nothing was read yet'");
    let demand = browser.texts("#demand .body").join("");
    assert!(demand.contains("does not answer") && !demand.contains("Neither"), "{demand}");
    assert_eq!(browser.run(ROWS, &[]), 0);
    browser.run(START, &[]);
    browser.click("#again");
    browser.until("document.querySelector('#quota .steps') && !document.querySelector('#content .notice.fault')");
    browser.until("document.querySelector('#age time')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_not_read_again_is_fresh_no_longer_once_its_time_is_over() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    for page in ["#/", POOL] {
        opened.go(page);
        assert_eq!(browser.texts("#content .stage")[0], "fresh", "{page}");
        browser.run(STOP, &[]);
        browser.run("const now = Date.now; Date.now = () => now() + 3600000", &[]);
        browser.until("document.querySelector('#content .stage .badge.warn')?.textContent.endsWith('old')");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_one_of_its_files_says_so() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    browser.devtools("Network.enable", &json!({}));
    browser.devtools("Network.setBlockedURLs", &json!({ "urls": ["*/assets/story.js"] }));
    browser.go(&format!("http://{}/", opened.service.address));
    browser.until("getComputedStyle(document.querySelector('#unloaded')).visibility === 'visible'");
    browser.devtools("Network.setBlockedURLs", &json!({ "urls": [] }));
    browser.click("#unloaded a");
    browser.until("document.querySelector('#pools tbody tr') && !document.querySelector('#unloaded')");
}
