//! A browser, driven over WebDriver: JSON over HTTP to a `chromedriver` of its own.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use tempfile::TempDir;

/// Set where a browser has to be there: without, tests that find none say so and pass.
const REQUIRED: &str = "HEADROOM_BROWSER_REQUIRED";
/// A folder for pictures of the pages.
const SCREENSHOTS: &str = "HEADROOM_SCREENSHOTS";

/// Two browsers at a time: a page mostly waits, and more would only take the processors from each other.
static PLACES: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];

/// A place for a browser, once one is free.
fn place() -> MutexGuard<'static, ()> {
    let free = PLACES.iter().find_map(|place| match place.try_lock() {
        Ok(free) => Some(free),
        Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    });
    free.unwrap_or_else(|| PLACES[0].lock().unwrap_or_else(PoisonError::into_inner))
}

pub struct Browser {
    driver: Child,
    /// The session that all commands go to.
    session: String,
    agent: ureq::Agent,
    profile: TempDir,
    _place: MutexGuard<'static, ()>,
}

/// Names that `key` has for keys without a letter.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const SHIFT: &str = "\u{e008}";
pub const RIGHT: &str = "\u{e014}";

fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The port that `chromedriver` says it has.
fn port_of(driver: &mut Child) -> u16 {
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let mut ports = lines.map_while(Result::ok).filter_map(|line| {
        let port = line.strip_prefix("ChromeDriver was started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    ports.next().expect("chromedriver says where it listens")
}

fn capabilities(chromium: &Path, profile: &Path) -> Value {
    let profile = format!("--user-data-dir={}", profile.display());
    let quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
    let mut arguments =
        vec!["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"];
    arguments.extend(quiet);
    arguments.push(&profile);
    json!({ "capabilities": { "alwaysMatch": {
        "goog:chromeOptions": { "binary": chromium, "args": arguments },
        "goog:loggingPrefs": { "browser": "ALL" },
    } } })
}

impl Browser {
    /// A new browser, or `None` where there is none on this machine.
    pub fn open() -> Option<Self> {
        let found = installed("chromedriver").zip(installed("chromium").or_else(|| installed("google-chrome")));
        let Some((driver, chromium)) = found else {
            assert!(std::env::var_os(REQUIRED).is_none(), "chromium and chromedriver are not installed");
            println!("not run: chromium and chromedriver are not installed (Debian: apt-get install chromium-driver)");
            return None;
        };
        let place = place();
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let base = format!("http://127.0.0.1:{}/session", port_of(&mut driver));
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent: ureq::Agent = config.timeout_global(Some(Duration::from_mins(1))).build().into();
        let mut browser = Self { driver, session: base, agent, profile, _place: place };
        let made = browser.post("", &capabilities(&chromium, browser.profile.path()));
        browser.session = format!("{}/{}", browser.session, made["sessionId"].as_str().unwrap());
        Some(browser)
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        let url = format!("{}{command}", self.session);
        let text = self.agent.post(url).send_json(body).unwrap().body_mut().read_to_string().unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["value"]["error"].is_null(), "{command}: {}", answer["value"]);
        answer["value"].clone()
    }

    pub fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// The result of a script, whose arguments are in `arguments`.
    pub fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// As [`run`](Self::run), of an expression that gives a promise.
    pub fn awaited(&self, promise: &str) -> Value {
        let script = format!("const done = arguments[0]; ({promise}).then(done, (fault) => done(String(fault)));");
        self.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// The value of an expression, asked for until it is neither null nor false nor 0 nor empty.
    pub fn until(&self, expression: &str) -> Value {
        for _ in 0..300 {
            let value = self.run(&format!("return ({expression}) || null"), &[]);
            if !value.is_null() {
                return value;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = self.run("return document.body.innerText", &[]);
        panic!("{expression} does not come true; the page: {}", text.as_str().unwrap_or_default())
    }

    /// The texts of all elements that a selector finds.
    pub fn texts(&self, selector: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)";
        let found = self.run(script, &[selector.into()]);
        found.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Clicks as a pointer does: on what is there, where it is.
    pub fn click(&self, selector: &str) {
        // At once: a page that still scrolls has the element elsewhere than where the pointer goes.
        let show = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center', behavior: 'instant' })";
        self.run(show, &[selector.into()]);
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys one after the other, with `held` down.
    pub fn keys(&self, held: &str, text: &str) {
        let press = |key: &str| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let mut actions: Vec<Value> = text.chars().flat_map(|key| press(key.encode_utf8(&mut [0; 4]))).collect();
        if !held.is_empty() {
            actions.insert(0, json!({ "type": "keyDown", "value": held }));
            actions.push(json!({ "type": "keyUp", "value": held }));
        }
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// A command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// A window so wide, in a theme of the system.
    pub fn look(&self, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "media": "screen", "features": features }));
    }

    /// Complaints of the browser: violations of the policy, faults in scripts. Answers other than 200 are no fault of a page.
    pub fn complaints(&self) -> Vec<String> {
        let printed = self.post("/se/log", &json!({ "type": "browser" }));
        let grave =
            printed.as_array().unwrap().iter().filter(|one| one["level"] == "SEVERE" && one["source"] != "network");
        grave.map(|one| one["message"].as_str().unwrap().to_owned()).collect()
    }

    /// A picture of the whole page, where `HEADROOM_SCREENSHOTS` asks for pictures.
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os(SCREENSHOTS).map(PathBuf::from) else { return };
        let taken = self.devtools("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes_of(taken["data"].as_str().unwrap())).unwrap();
    }
}

/// Base64 undone.
fn bytes_of(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|byte| {
        let place = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        Some(u32::from(place))
    });
    let digits: Vec<u32> = digits.collect();
    let group = |four: &[u32]| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser goes with its session, the driver by itself is ended.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
