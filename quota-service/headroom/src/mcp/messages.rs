//! Texts that are no message: JSON-RPC answers each with an error, which the crate of the protocol leaves out.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc::{Receiver, Sender};

/// Most bytes of a line: the crate of the protocol takes no more.
const MOST_LINE_BYTES: usize = 16 * 1_024 * 1_024;
/// Media type of messages over HTTP.
const JSON: &str = "application/json";

/// The answer to a text that is no message; `None` for one that may be. No id can be read from it, so it is null.
fn refusal(text: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(text) {
        Ok(Value::Object(_)) => None,
        Ok(_) => {
            let detail = "expected one JSON object: a request, a notification or a response; batches are not supported";
            Some(fault(ErrorCode::INVALID_REQUEST, detail))
        }
        Err(wrong) => Some(fault(ErrorCode::PARSE_ERROR, &format!("the text is no JSON: {wrong}"))),
    }
}

fn fault(code: ErrorCode, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code.0, "message": message } }).to_string()
}

/// Passes each line of `input` that may be a message to the server, and the answers to others to `refusals`, until the input ends.
pub async fn pass(input: impl AsyncRead + Unpin, mut server: DuplexStream, refusals: Sender<String>) {
    let mut input = BufReader::new(input);
    while let Ok(Some(line)) = next_line(&mut input).await {
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
        let refusal = if line.len() > MOST_LINE_BYTES {
            let detail = format!("a line has more than {MOST_LINE_BYTES} bytes: send one JSON object a line");
            Some(fault(ErrorCode::INVALID_REQUEST, &detail))
        } else if text.is_empty() {
            continue;
        } else {
            refusal(text)
        };
        let is_passed = match refusal {
            Some(refusal) => refusals.send(refusal).await.is_ok(),
            None => server.write_all(&[text, b"\n"].concat()).await.is_ok(),
        };
        if !is_passed {
            return;
        }
    }
}

/// The next line, up to one byte more than it may have; `None` at the end.
async fn next_line<R: AsyncRead + Unpin>(input: &mut BufReader<R>) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut rest) = (Vec::new(), Vec::new());
    let read = (&mut *input).take(MOST_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line).await?;
    let mut is_whole = read <= MOST_LINE_BYTES || line.ends_with(b"\n");
    while !is_whole {
        rest.clear();
        let read = (&mut *input).take(MOST_LINE_BYTES as u64).read_until(b'\n', &mut rest).await?;
        is_whole = read == 0 || rest.ends_with(b"\n");
    }
    Ok((read > 0).then_some(line))
}

/// Prints what the server sends, and the refusals, line by line, until the server ends.
///
/// # Errors
/// The output is closed.
pub async fn print(
    server: DuplexStream,
    mut refusals: Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut server, mut line) = (BufReader::new(server), Vec::new());
    let mut has_ended = false;
    while !has_ended {
        tokio::select! {
            biased;
            Some(refusal) = refusals.recv() => output.write_all(&[refusal.as_bytes(), b"\n"].concat()).await?,
            // A read that another branch interrupts leaves what it has in `line`.
            read = server.read_until(b'\n', &mut line) => {
                has_ended = read? == 0;
                output.write_all(&std::mem::take(&mut line)).await?;
            }
        }
        output.flush().await?;
    }
    Ok(())
}

/// As [`pass`], of requests over HTTP with at most so many bytes.
pub async fn pass_http(most_bytes: usize, request: Request, next: Next) -> Response {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_json = media_type.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(JSON));
    if request.method() != Method::POST || !is_json {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(text) = to_bytes(body, most_bytes).await else {
        let detail = format!("a request has at most {most_bytes} bytes\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, detail).into_response();
    };
    match refusal(&text) {
        Some(refusal) => (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, JSON)], refusal).into_response(),
        None => next.run(Request::from_parts(parts, Body::from(text))).await,
    }
}
