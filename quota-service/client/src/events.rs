//! Events of a pool, from a stream of server-sent events.

use crate::error::ClientError;
use crate::exchange::Asked;
use crate::pauses::Pauses;
use crate::pool::Pool;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use std::time::Duration;
use wire::EventBody;

/// The service sends a comment every 15 s: a connection without bytes for so long is dead.
const QUIET: Duration = Duration::from_secs(45);
/// The largest event, in bytes.
const MAX_EVENT_BYTES: usize = 4 * 1_024 * 1_024;

/// The events of a pool, in their order. Made by [`Pool::events`].
#[derive(Debug)]
pub struct Events {
    pool: Pool,
    /// Id of the last event.
    last: Option<String>,
    open: Option<Stream>,
    pauses: Pauses,
    /// Wait before the next connection.
    pause: Duration,
}

#[derive(Debug)]
struct Stream {
    body: Incoming,
    read: Lines,
}

impl Events {
    pub(crate) fn new(pool: Pool, after: Option<String>) -> Self {
        Self { pool, last: after, open: None, pauses: Pauses::default(), pause: Duration::ZERO }
    }

    /// The next event, once it is there. After a transient error ([`ClientError::is_transient`]) the next call waits for
    /// [`pause`](Self::pause), connects again, and continues after the last event.
    ///
    /// # Errors
    /// The stream ends, or the service does not answer, refuses, or is no quota-service.
    pub async fn next(&mut self) -> Result<EventBody, ClientError> {
        let read = self.read().await;
        match &read {
            Ok(event) => {
                self.last = Some(event.id.clone());
                self.pauses = Pauses::default();
            }
            Err(fault) => {
                self.open = None;
                self.pause = self.pauses.next(fault.retry_after());
            }
        }
        read
    }

    /// Wait of the next call; zero unless the last one failed.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// Id of the last event: another stream continues after it.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last.as_deref()
    }

    async fn read(&mut self) -> Result<EventBody, ClientError> {
        let path = self.pool.events_path();
        let client = &self.pool.client;
        if self.open.is_none() {
            tokio::time::sleep(std::mem::take(&mut self.pause)).await;
            let mut asked = Asked::get(path.as_str());
            if let Some(last) = self.last.as_deref().and_then(|last| HeaderValue::from_str(last).ok()) {
                asked.headers.insert(HeaderName::from_static("last-event-id"), last);
            }
            let body = client.open_stream(&asked).await?;
            self.open = Some(Stream { body, read: Lines::default() });
        }
        let stream = self.open.as_mut().expect("it was opened above");
        loop {
            while let Some(line) = stream.read.next() {
                let Some(json) = line.strip_prefix("data:") else { continue };
                return serde_json::from_str(json).map_err(|fault| client.foreign(path.as_str(), fault.to_string()));
            }
            let away = |detail: &str| client.away(path.as_str(), detail.to_owned());
            let frame = tokio::time::timeout(QUIET, stream.body.frame()).await;
            let frame = frame.map_err(|_| away("the stream is silent"))?.ok_or_else(|| away("the stream has ended"))?;
            let frame = frame.map_err(|fault| away(&fault.to_string()))?;
            if let Ok(bytes) = frame.into_data() {
                stream.read.add(&bytes);
            }
            if stream.read.bytes.len() > MAX_EVENT_BYTES {
                return Err(client.foreign(path.as_str(), format!("a line exceeds {MAX_EVENT_BYTES} bytes")));
            }
        }
    }
}

/// Lines of a stream. The service writes the data of an event as one line.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_the_bytes_arrive() {
        let text = "id: 7.0\ndata: {\"a\": \"ü\"}\n\n: alive\n";
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for byte in text.as_bytes() {
            lines.add(&[*byte]);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        assert_eq!(found, ["id: 7.0", "data: {\"a\": \"ü\"}", "", ": alive"]);
    }
}
