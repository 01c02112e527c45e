//! One request over one connection of its own, which is closed after it.

use crate::tls::is_of_certificate;
use axum::body::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::task::JoinHandle;

/// Bytes that are read of an answer whose status alone matters: enough for the code that some receivers write beside it.
const GLANCED_BYTES: usize = 4 * 1024;

/// Why another service gave no answer.
#[derive(Debug)]
pub struct NoAnswer {
    /// The reason, in words.
    pub why: String,
    /// Whether it is there, and its certificate is not trusted.
    pub is_of_certificate: bool,
}

impl From<String> for NoAnswer {
    fn from(why: String) -> Self {
        Self { why, is_of_certificate: false }
    }
}

impl From<std::io::Error> for NoAnswer {
    fn from(fault: std::io::Error) -> Self {
        Self { is_of_certificate: is_of_certificate(&fault), why: fault.to_string() }
    }
}

/// The connection of a request; dropped, it is closed.
struct Driven(JoinHandle<hyper::Result<()>>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request, and reads its answer to the end, which is kept in memory: at most `most_bytes` of it. How long that may take is the
/// caller's business.
///
/// # Errors
/// The other side speaks no HTTP, goes away, or answers more.
pub async fn exchange<I>(io: I, request: Request<Full<Bytes>>, most_bytes: usize) -> Result<Response<Bytes>, String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (response, _connection) = sent(io, request).await?;
    let (head, body) = response.into_parts();
    let read = Limited::new(body, most_bytes).collect().await.map_err(|fault| {
        if fault.is::<LengthLimitError>() {
            return format!("its answer is longer than {most_bytes} bytes, the most that is read");
        }
        fault.to_string()
    })?;
    Ok(Response::from_parts(head, read.to_bytes()))
}

/// As [`exchange`], where the status alone matters: of a long body the beginning is read, and the connection closed.
///
/// # Errors
/// The other side speaks no HTTP, or goes away.
pub async fn glance<I>(io: I, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (response, _connection) = sent(io, request).await?;
    let (head, mut body) = response.into_parts();
    let mut read = Vec::new();
    while read.len() < GLANCED_BYTES
        && let Some(frame) = body.frame().await
    {
        let data = frame.map_err(|fault| fault.to_string())?.into_data();
        read.extend_from_slice(&data.unwrap_or_default());
    }
    read.truncate(GLANCED_BYTES);
    Ok(Response::from_parts(head, read.into()))
}

async fn sent<I>(io: I, request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Driven), String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake::<_, Full<Bytes>>(io).await;
    let (mut sender, connection) = handshake.map_err(|fault| fault.to_string())?;
    let driven = Driven(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(|fault| fault.to_string())?;
    Ok((response, driven))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    /// A receiver that answers `head`, and then a megabyte again and again until nobody reads any more. Returns how many it wrote.
    fn receiver(head: &'static str) -> (TokioIo<DuplexStream>, JoinHandle<usize>) {
        let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let written = tokio::spawn(async move {
            let mut request = [0; 1_024];
            let _ = theirs.read(&mut request).await;
            let _ = theirs.write_all(head.as_bytes()).await;
            let megabyte = vec![b'x'; 1 << 20];
            for count in 0..64 {
                if theirs.write_all(&megabyte).await.is_err() {
                    return count;
                }
            }
            64
        });
        (TokioIo::new(ours), written)
    }

    fn request() -> Request<Full<Bytes>> {
        Request::post("/").body(Full::default()).unwrap()
    }

    const ENDLESS: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn of_an_answer_without_end_the_beginning_is_read_where_its_status_alone_matters() {
        let (io, written) = receiver(ENDLESS);
        let answer = glance(io, request()).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.body().len()), (200, GLANCED_BYTES));
        assert!(written.await.unwrap() < 2, "the connection is closed");
    }

    #[tokio::test]
    async fn an_answer_that_is_longer_than_its_reader_takes_is_refused() {
        let (io, written) = receiver(ENDLESS);
        let fault = exchange(io, request(), 3 << 20).await.unwrap_err();
        assert_eq!(fault, "its answer is longer than 3145728 bytes, the most that is read");
        assert!(written.await.unwrap() < 5, "the connection is closed");
        let (io, _) = receiver("HTTP/1.1 200 OK\r\ncontent-length: 3145728\r\n\r\n");
        assert_eq!(exchange(io, request(), 3 << 20).await.unwrap().body().len(), 3 << 20);
    }
}
