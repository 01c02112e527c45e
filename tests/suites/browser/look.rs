//! How the pages look and what they weigh: themes, a phone's width, people who see with their ears, names that look like markup.

use super::*;

/// Bytes that the browser may load for one page, compressed.
const MOST_BYTES: f64 = 300.0 * 1024.0;
const AXE: &str = include_str!("vendor/axe.min.js");
const PAGES: [(&str, &str); 4] =
    [("pools", "#/"), ("pool", POOL), ("runs", "#/runs/demo"), ("statement", "#/statement")];

/// Faults of the page for those who use it with help, each with its place.
pub fn faults(browser: &Browser) -> Vec<String> {
    browser.run(AXE, &[]);
    let answer = browser.awaited(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`))",
    );
    answer.as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_fits_every_theme_and_width_and_is_good_to_use_with_help() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")] {
        browser.look(width, scheme);
        for (name, page) in PAGES {
            opened.go(page);
            // Folded parts, and parts that are loaded on demand, belong to the page.
            browser.run("for (const one of document.querySelectorAll('details')) one.open = true", &[]);
            if name == "pool" {
                browser.click("#what-if form button[type=submit]");
                browser.until("document.querySelector('#what-if table')");
                let broken = browser.texts("#promises tbody tr").join("\n");
                assert!(broken.contains("task-19"), "{broken}");
            }
            let whole = browser.run("return document.documentElement.scrollWidth", &[]);
            assert!(whole.as_u64() <= Some(u64::from(width)), "{name} at {width} pixels is {whole} wide");
            assert_eq!(faults(browser), [""; 0], "{name}, {width} pixels, {scheme}");
            assert_eq!(browser.complaints(), [""; 0], "{name}, {width} pixels, {scheme}");
            browser.picture(&format!("{name}-{width}-{scheme}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_that_these_tests_seek_are_found() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    opened.go("#/");
    browser.run("document.querySelector('main').append(new Image())", &[]);
    assert!(faults(browser).iter().any(|fault| fault.contains("image-alt")), "{:?}", faults(browser));
    assert_eq!(browser.complaints(), [""; 0]);
    browser.run("document.body.setAttribute('style', 'color: red')", &[]);
    let heard = browser.complaints().join("");
    assert!(heard.contains("Content Security Policy"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_theme_is_that_of_the_system_until_the_reader_chooses_and_stays() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    let paper = || browser.run("return getComputedStyle(document.body).backgroundColor", &[]);
    browser.look(1280, "dark");
    opened.go("#/");
    let dark = paper();
    browser.look(1280, "light");
    let light = paper();
    assert_ne!(dark, light);
    // From system to light to dark.
    browser.click("#theme");
    assert_eq!(paper(), light);
    browser.click("#theme");
    assert_eq!(paper(), dark);
    opened.go("#/");
    assert_eq!(paper(), dark, "it is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_look_like_markup_are_shown_as_text() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    opened.go("#/");
    assert!(browser.texts("#pools tbody th a").contains(&format!("demo:{MARKUP_MODEL}")));
    opened.go("#/pool/demo%3A%3Ci%3EB200%3C%2Fi%3E");
    assert_eq!(browser.texts("h1"), [format!("demo:{MARKUP_MODEL}")]);
    let offered = browser.texts("#fan-organization option");
    assert!(offered.contains(&MARKUP_ORGANIZATION.to_owned()), "{offered:?}");
    assert_eq!(browser.run("return document.querySelectorAll('main img, main i').length", &[]), 0);
    browser.run("const one = document.querySelector('#fan-organization'); one.value = arguments[0]; one.dispatchEvent(new Event('change'))", &[MARKUP_ORGANIZATION.into()]);
    browser.until("document.querySelector('#demand figcaption').textContent.includes('<img')");
    assert_eq!(browser.run("return document.querySelectorAll('main img, main i').length", &[]), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_text_that_would_mirror_the_page_is_shown_with_the_code_point() {
    let Some(opened) = Opened::new().await else { return };
    opened.go("#/");
    let of = "import('/assets/dom.js').then(({ h }) => h('p', null, 'a \\u202Elaunch', ' by ops').textContent)";
    assert_eq!(opened.browser.awaited(of), "a [U+202E]launch by ops");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_names_leave_the_figures_of_a_table_in_sight() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    let (id, organization) = ("t".repeat(100), "x".repeat(200));
    let task = json!({ "cluster": "demo", "gpu_model": "A100", "id": id, "organization": organization, "class": "spot", "gpus_per_pod": 8.0, "pods": 200, "guarantee_hours": 4 });
    let submitted = opened.service.send("POST", "/v1/tasks", Some(&task)).unwrap();
    assert!(submitted.0 < 300, "{submitted:?}");
    for width in [1280, 360] {
        browser.look(width, "light");
        opened.go(POOL);
        assert!(browser.texts("#tasks tbody").join("").contains(&organization), "{:?}", browser.texts("#tasks .body"));
        let beyond =
            "const table = document.querySelector('#tasks .wide'); return table.scrollWidth - table.clientWidth";
        assert_eq!(browser.run(beyond, &[]), 0, "{width} pixels");
        browser.picture(&format!("long-names-{width}"));
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sheet_of_paper_has_all_columns() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    // Letter, less its margins.
    browser.look(740, "light");
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    for (name, page) in PAGES {
        opened.go(page);
        let widest = browser.run(
            "return Math.max(0, ...[...document.querySelectorAll('#content table')].map((one) => one.getBoundingClientRect().right))",
            &[],
        );
        assert!(widest.as_f64() <= Some(740.0), "{name} reaches to {widest}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_weighs_no_more_than_300_kib() {
    let Some(opened) = Opened::new().await else { return };
    let browser = &opened.browser;
    opened.go(POOL);
    let loaded = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((one) => !one.name.includes('/v1/'))";
    let names = browser.run(&format!("return {loaded}.map((one) => one.name)"), &[]);
    assert!(names.as_array().unwrap().len() > 20, "{names}");
    let bytes = browser.run(&format!("return {loaded}.reduce((sum, one) => sum + one.transferSize, 0)"), &[]);
    let bytes = bytes.as_f64().unwrap();
    let painted = browser.run("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0", &[]);
    println!("{bytes} bytes were loaded; the first picture stood after {painted} ms");
    assert!(bytes > 10_000.0 && bytes <= MOST_BYTES, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_pool_the_page_shows_a_start() {
    let Some(browser) = Browser::open() else { return };
    let database = fresh_database(Backend::Sqlite).await;
    let service = Listening::start(&["--database", &database.url]);
    browser.go(&format!("http://{}/", service.address));
    browser.until("document.querySelector('#pools .notice')");
    let printed = browser.texts("#pools .notice").join("");
    assert!(
        printed.contains("datasets ingest")
            && printed.contains("train --cluster")
            && printed.contains("/quota?cluster="),
        "{printed}"
    );
    assert_eq!(browser.complaints(), [""; 0]);
}
