use super::*;
use crate::error::Kind;
use crate::fake::{Fake, Turn, matrix, ok};
use crate::settings::SourceSettings;
use std::sync::Mutex;
use vocab::ClusterName;

fn source(url: &str, change: impl FnOnce(&mut SourceSettings)) -> Source {
    let mut settings = SourceSettings {
        url: url.to_owned(),
        query: "demand".to_owned(),
        gpu_model: "A100".to_owned(),
        ..SourceSettings::default()
    };
    change(&mut settings);
    settings.source(ClusterName::parse("earth").unwrap()).unwrap()
}

const QUICK: Duration = Duration::from_millis(1);

async fn asked(source: &Source, max_bytes: usize) -> Result<Answer, SourceError> {
    let client = Client::new(source).unwrap().bounded(QUICK, max_bytes);
    client.range("sum by (namespace) (gpus{a=\"b&c\"})", 60, 120).await.map_err(SourceError::from)
}

fn good() -> Turn {
    ok(matrix(&[("vision", &[(60, "1")])]))
}

fn error(status: u16, kind: &str, text: &str) -> Turn {
    Turn::Answer(status, "", format!("{{\"status\":\"error\",\"errorType\":\"{kind}\",\"error\":\"{text}\"}}"))
}

#[tokio::test]
async fn a_query_is_a_form_that_is_posted_with_the_token_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "hush\n").unwrap();
    let fake = Fake::start(|_, _| good());
    let source = source(&format!("{}/tenant/", fake.url), |one| one.token_file.clone_from(&file));
    asked(&source, MAX_BYTES).await.unwrap();
    let request = fake.requests().remove(0);
    assert!(request.line.starts_with("POST /tenant/api/v1/query_range HTTP/1.1"), "{request:?}");
    assert!(request.head.contains("authorization: bearer hush") && request.head.contains("host: 127.0.0.1:"));
    let form =
        "query=sum%20by%20%28namespace%29%20%28gpus%7Ba%3D%22b%26c%22%7D%29&start=60&end=120&step=60&timeout=30s";
    assert_eq!(request.form, form);
    std::fs::write(&file, "").unwrap();
    let refused = asked(&source, MAX_BYTES).await.unwrap_err();
    assert!(refused.to_string().contains("expected one token on one line") && refused.kind() == Kind::Settings);
}

#[tokio::test]
async fn what_may_pass_is_asked_for_again() {
    for turn in [
        error(503, "unavailable", "starting up"),
        Turn::Answer(500, "", "oops".to_owned()),
        Turn::Answer(429, "retry-after: 0\r\n", String::new()),
        Turn::Answer(502, "", "<html>".to_owned()),
        Turn::Short(matrix(&[("vision", &[(60, "1")])])),
        ok("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric"),
        Turn::HangUp,
    ] {
        let fake = Fake::start(move |number, _| if number < 2 { turn.clone() } else { good() });
        let answer = asked(&source(&fake.url, |_| ()), MAX_BYTES).await.unwrap();
        assert_eq!((answer.series.len(), fake.requests().len()), (1, 3));
    }
}

#[tokio::test]
async fn what_does_not_pass_is_given_up_with_place_query_and_number_of_attempts() {
    let fake = Fake::start(|_, _| error(500, "internal", "the disk is full"));
    let fault = asked(&source(&fake.url, |_| ()), MAX_BYTES).await.unwrap_err();
    let expected = "is not available: it answers 500, the disk is full, 4 times; query: sum by (namespace) (gpus";
    assert!(fault.to_string().contains(expected) && fault.to_string().starts_with(&fake.url), "{fault}");
    assert_eq!((fault.kind(), fake.requests().len()), (Kind::Unavailable, 4));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = asked(&source(&format!("http://{closed}"), |_| ()), MAX_BYTES).await.unwrap_err();
    assert!(fault.to_string().contains("refused") && fault.kind() == Kind::Unavailable, "{fault}");
}

#[tokio::test]
async fn what_asking_again_does_not_change_is_refused_at_once() {
    let elsewhere = "location: https://user:hush@other/path?token=hush\r\n";
    for (turn, kind, expected) in [
        (error(400, "bad_data", "parse error at char 5"), Kind::Settings, "answers 400: parse error at char 5"),
        (error(422, "execution", "many-to-many matching"), Kind::Data, "many-to-many matching"),
        (Turn::Answer(401, "", "no".to_owned()), Kind::Settings, "see token_file (--token-file)"),
        (Turn::Answer(403, "", "no".to_owned()), Kind::Settings, "see token_file (--token-file)"),
        (Turn::Answer(404, "", "no".to_owned()), Kind::Settings, "does it need a path, such as /prometheus?"),
        (Turn::Answer(302, elsewhere, String::new()), Kind::Settings, "use the URL https://other/path"),
        (Turn::Answer(418, "", String::new()), Kind::Settings, "no reason given"),
        (ok("<html>log in</html>"), Kind::Settings, "not an answer of Prometheus"),
        (error(200, "bad_data", "strange"), Kind::Data, "strange"),
    ] {
        let fake = Fake::start(move |_, _| turn.clone());
        let fault = asked(&source(&fake.url, |_| ()), MAX_BYTES).await.unwrap_err();
        assert!(fault.to_string().contains(expected) && !fault.to_string().contains("hush"), "{fault}");
        assert_eq!((fault.kind(), fake.requests().len()), (kind, 1), "{fault}");
    }
}

#[tokio::test]
async fn where_post_is_forbidden_the_form_goes_into_the_address() {
    let fake = Fake::start(|number, _| if number == 0 { Turn::Answer(405, "", String::new()) } else { good() });
    asked(&source(&fake.url, |_| ()), MAX_BYTES).await.unwrap();
    let requests = fake.requests();
    assert!(requests[1].line.starts_with("GET /api/v1/query_range?query=sum%20by"), "{requests:?}");
    assert_eq!((requests[1].form.as_str(), requests[1].number("start")), ("", 60));
}

#[tokio::test]
async fn what_is_too_large_or_too_slow_may_be_asked_for_in_parts() {
    let large = Fake::start(|_, _| ok(" ".repeat(5_000)));
    let slow = Fake::start(|_, _| Turn::Silence(Duration::from_mins(1)));
    let many = Fake::start(|_, _| error(422, "execution", "query processing would load too many samples into memory"));
    for (url, expected) in [
        (&large.url, "the answer is larger than 4000 bytes"),
        (&slow.url, "no answer within 1 s"),
        (&many.url, "too many samples"),
    ] {
        let source = source(url, |one| one.timeout_s = 1);
        let client = Client::new(&source).unwrap().bounded(QUICK, 4_000);
        let Err(Failed::TooHeavy(fault)) = client.range("demand", 0, 60).await else { panic!("{expected}") };
        assert!(fault.to_string().contains(expected), "{fault}");
    }
    assert_eq!((large.requests().len(), slow.requests().len(), many.requests().len()), (1, 2, 1));
}

#[tokio::test]
async fn warnings_come_with_the_answer_and_each_end_is_counted_once() {
    let fake = Fake::start(|number, _| match number {
        0 => ok(
            "{\"status\":\"success\",\"warnings\":[\"a store is down\"],\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
        ),
        1 => Turn::HangUp,
        2 => good(),
        _ => error(400, "bad_data", "no"),
    });
    let (source, ends) = (source(&fake.url, |_| ()), Mutex::new(Vec::new()));
    let tell = |outcome| ends.lock().unwrap().push(outcome);
    let client = Client::new(&source).unwrap().bounded(QUICK, MAX_BYTES).reporting(&tell);
    assert_eq!(client.range("a", 0, 60).await.ok().unwrap().warnings, ["a store is down"]);
    assert!(client.range("a", 0, 60).await.is_ok() && client.range("a", 0, 60).await.is_err());
    assert_eq!(*ends.lock().unwrap(), [Outcome::Warned, Outcome::Answered, Outcome::Failed]);
}

#[tokio::test]
async fn the_version_is_reported_where_the_server_knows_it() {
    let fake = Fake::start(|_, _| ok("{\"status\":\"success\",\"data\":{\"version\":\"2.42.0\"}}"));
    let source_of = source(&fake.url, |_| ());
    assert_eq!(Client::new(&source_of).unwrap().version().await.unwrap(), "2.42.0");
    let plain = Fake::start(|number, _| if number == 0 { Turn::Answer(404, "", String::new()) } else { ok("Ready") });
    let source_of = source(&plain.url, |_| ());
    assert_eq!(Client::new(&source_of).unwrap().version().await.unwrap(), "unknown");
    assert!(plain.requests()[1].line.starts_with("GET /-/ready "));
}

#[test]
fn a_pause_doubles_is_bounded_and_follows_the_server_up_to_half_a_minute() {
    let source = source("http://prometheus", |_| ());
    let client = Client::new(&source).unwrap();
    let pause = |attempt, asked| client.pause_before(attempt, asked).as_millis();
    assert_eq!([pause(1, None), pause(2, None), pause(3, None), pause(40, None)], [500, 1_000, 2_000, 10_000]);
    assert_eq!([pause(1, Some(7)), pause(1, Some(7_000)), pause(3, Some(0))], [7_000, 30_000, 2_000]);
}

#[test]
fn a_long_query_is_shortened_to_one_line() {
    assert_eq!(shortened("sum(\n  a\n)"), "sum( a )");
    assert_eq!(shortened(&"é".repeat(400)).chars().count(), 301);
}

#[test]
fn authorities_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let with = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let source = source("https://prometheus", |one| one.ca_file.clone_from(&file));
        Client::new(&source).map(drop).map_err(|fault| fault.to_string())
    };
    let made = rcgen::generate_simple_self_signed(vec!["prometheus".to_owned()]).unwrap();
    assert_eq!(with(&made.cert.pem()), Ok(()));
    assert!(with("nothing").unwrap_err().contains("no certificate (PEM)"));
    let broken = with("-----BEGIN CERTIFICATE-----\n").unwrap_err();
    assert!(broken.contains("missing section end marker") && !broken.contains("MissingSectionEnd"), "{broken}");
}
