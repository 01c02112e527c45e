//! The dashboard: files inside the program, served as they are. They request their data like any other client.

use axum::Router;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write as _;
use std::sync::LazyLock;

use super::ApiError;
use super::extract::Path;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The content security policy of the pages: their own files, and no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($name:literal, $kind:expr, $path:literal;)*) => {
        [$(Source { name: $name, kind: $kind, bytes: include_bytes!(concat!("../dashboard/", $path)) }),*]
    };
}

/// A file as it lies in the source.
struct Source {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const SOURCES: [Source; 32] = files![
    "index.html", HTML, "index.html";
    "style.css", STYLE, "style.css";
    "icon.svg", PICTURE, "icon.svg";
    "uPlot.iife.min.js", SCRIPT, "vendor/uPlot.iife.min.js";
    "uPlot.min.css", STYLE, "vendor/uPlot.min.css";
    "api.js", SCRIPT, "api.js";
    "app.js", SCRIPT, "app.js";
    "demand.js", SCRIPT, "demand.js";
    "dom.js", SCRIPT, "dom.js";
    "eta.js", SCRIPT, "eta.js";
    "events.js", SCRIPT, "events.js";
    "explain.js", SCRIPT, "explain.js";
    "figure.js", SCRIPT, "figure.js";
    "format.js", SCRIPT, "format.js";
    "kept.js", SCRIPT, "kept.js";
    "nodes.js", SCRIPT, "nodes.js";
    "overrides.js", SCRIPT, "overrides.js";
    "pool.js", SCRIPT, "pool.js";
    "pools.js", SCRIPT, "pools.js";
    "promises.js", SCRIPT, "promises.js";
    "reservations.js", SCRIPT, "reservations.js";
    "runs.js", SCRIPT, "runs.js";
    "section.js", SCRIPT, "section.js";
    "shares.js", SCRIPT, "shares.js";
    "stage.js", SCRIPT, "stage.js";
    "statement.js", SCRIPT, "statement.js";
    "story.js", SCRIPT, "story.js";
    "tasks.js", SCRIPT, "tasks.js";
    "theme.js", SCRIPT, "theme.js";
    "timechart.js", SCRIPT, "timechart.js";
    "token.js", SCRIPT, "token.js";
    "whatif.js", SCRIPT, "whatif.js";
];

/// A file as it is sent.
struct Served {
    source: &'static Source,
    zipped: Vec<u8>,
    /// Of the bytes as they are, and of the compressed ones: a strong tag names bytes.
    tags: [String; 2],
}

static SERVED: LazyLock<Vec<Served>> = LazyLock::new(|| SOURCES.iter().map(Served::of).collect());

impl Served {
    fn of(source: &'static Source) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let zipped = encoder.write_all(source.bytes).and_then(|()| encoder.finish());
        let zipped = zipped.expect("memory takes what is written to it");
        let hash = hex::encode(&Sha256::digest(source.bytes)[..12]);
        Self { source, zipped, tags: [format!("\"{hash}\""), format!("\"{hash}-gzip\"")] }
    }

    fn answer(&'static self, asked: &HeaderMap) -> Response {
        let zip = takes_gzip(asked);
        let tag = HeaderValue::from_static(&self.tags[usize::from(zip)]);
        let headers = self.headers(tag.clone(), zip);
        if names(asked, tag.as_bytes()) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let bytes: &'static [u8] = if zip { &self.zipped } else { self.source.bytes };
        (headers, bytes).into_response()
    }

    fn headers(&self, tag: HeaderValue, zip: bool) -> HeaderMap {
        let fixed: [(HeaderName, &'static str); 6] = [
            (CONTENT_TYPE, self.source.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            // A page of another version would send requests that this one no longer answers.
            (CACHE_CONTROL, "no-cache"),
            (VARY, "accept-encoding"),
        ];
        let fixed = fixed.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value)));
        let mut headers: HeaderMap = fixed.collect();
        headers.insert(ETAG, tag);
        if zip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers
    }
}

/// Whether the client accepts gzip at a quality above zero.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, "q=1"));
        let quality = quality.trim().strip_prefix("q=").and_then(|text| text.trim().parse::<f32>().ok());
        ["gzip", "*"].contains(&name.trim()) && quality.is_none_or(|quality| quality > 0.0)
    })
}

/// Whether the client has the bytes that the tag names.
fn names(asked: &HeaderMap, tag: &[u8]) -> bool {
    let values = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one).as_bytes() == tag)
}

fn served(name: &str) -> Option<&'static Served> {
    SERVED.iter().find(|one| one.source.name == name)
}

async fn page(headers: HeaderMap) -> Response {
    served("index.html").expect("the page is one of the files").answer(&headers)
}

async fn asset(Path(name): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let found = served(&name).filter(|one| one.source.kind != HTML);
    found.map_or_else(|| ApiError::NoRoute { path: uri.path().to_owned() }.into_response(), |one| one.answer(&headers))
}

/// `GET /` and `GET /assets/{name}`: they ask for no token, since they hold nothing but the program's own files.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    // Compressed once at the start: the first reader does not wait for it.
    LazyLock::force(&SERVED);
    Router::new().route("/", get(page)).route("/assets/{name}", get(asset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;

    fn asked(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn every_file_that_a_file_names_is_served() {
        let mut named = BTreeSet::new();
        for one in SERVED.iter().filter(|one| !one.source.name.starts_with("uPlot")) {
            let text = std::str::from_utf8(one.source.bytes).unwrap();
            for start in ["from \"./", "=\"/assets/"] {
                named.extend(text.split(start).skip(1).filter_map(|rest| rest.split('"').next()));
            }
        }
        let had: BTreeSet<&str> =
            SOURCES.iter().map(|source| source.name).filter(|name| *name != "index.html").collect();
        assert_eq!(named, had, "each is named by another, and each that is named is there");
    }

    #[test]
    fn a_file_is_sent_compressed_to_a_client_that_accepts_gzip() {
        let page = served("index.html").unwrap();
        for (accepts, zipped) in
            [("gzip, deflate, br", true), ("br;q=1, gzip;q=0.5", true), ("gzip;q=0", false), ("br", false), ("*", true)]
        {
            assert_eq!(takes_gzip(&asked(&[(ACCEPT_ENCODING, accepts)])), zipped, "{accepts}");
        }
        let mut text = String::new();
        flate2::read::GzDecoder::new(page.zipped.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text.as_bytes(), page.source.bytes);
    }

    #[test]
    fn a_client_with_the_same_bytes_gets_304() {
        let page = served("index.html").unwrap();
        let plain: &'static str = Box::leak(page.tags[0].clone().into_boxed_str());
        let answer = |pairs: &[(HeaderName, &'static str)]| page.answer(&asked(pairs)).status().as_u16();
        assert_eq!(answer(&[]), 200);
        assert_eq!(answer(&[(IF_NONE_MATCH, plain)]), 304);
        assert_eq!(answer(&[(IF_NONE_MATCH, "\"another\", *")]), 304);
        assert_eq!(answer(&[(IF_NONE_MATCH, plain), (ACCEPT_ENCODING, "gzip")]), 200, "those are other bytes");
    }

    #[test]
    fn no_page_has_script_or_style_inside() {
        let page = std::str::from_utf8(served("index.html").unwrap().source.bytes).unwrap();
        for word in ["style=", "<style", "onclick", "javascript:"] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/assets/").count());
        for one in SERVED.iter().filter(|one| one.source.kind == SCRIPT && !one.source.name.starts_with("uPlot")) {
            let text = std::str::from_utf8(one.source.bytes).unwrap();
            assert!(!text.contains("innerHTML") && !text.contains("insertAdjacentHTML"), "{}", one.source.name);
        }
    }
}
