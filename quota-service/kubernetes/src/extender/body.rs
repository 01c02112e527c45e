//! Reads the body of a question. Bodies of 15 MB come again and again: memory for them is kept, since fresh pages cost more than the copy.

use axum::body::Body;
use axum::http::{Request, header};
use http_body_util::BodyExt;
use std::sync::{Mutex, PoisonError};

/// Buffers that are kept. A scheduler asks one question at a time.
const KEPT_MOST: usize = 2;
/// Larger buffers are not kept, bytes.
const KEPT_BYTES_MOST: usize = 32 << 20;

/// Buffers to be used again.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty buffer.
    pub fn take(&self) -> Vec<u8> {
        self.kept().pop().unwrap_or_default()
    }

    /// Keeps a buffer for another body.
    pub fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.kept();
        if buffer.capacity() <= KEPT_BYTES_MOST && kept.len() < KEPT_MOST {
            kept.push(buffer);
        }
    }
}

/// The whole body, in `buffer`.
///
/// # Errors
/// It has more than `most` bytes, or the connection broke.
pub async fn read(request: Request<Body>, most: usize, mut buffer: Vec<u8>) -> Result<Vec<u8>, String> {
    let too_large = || format!("a body of more than {most} bytes");
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    let length: usize = length.unwrap_or(0);
    if length > most {
        return Err(too_large());
    }
    // The length that the head promises is not believed beyond what is kept: memory is taken as the bytes come.
    buffer.reserve(length.min(KEPT_BYTES_MOST));
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|fault| fault.to_string())?;
        let Some(data) = frame.data_ref() else { continue };
        if buffer.len() + data.len() > most {
            return Err(too_large());
        }
        buffer.extend_from_slice(data);
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_whole_into_memory_that_is_kept_and_one_that_is_too_large_is_refused() {
        let buffers = Buffers::default();
        let of = |text: &'static str| {
            Request::post("/").header("content-length", text.len()).body(Body::from(text)).unwrap()
        };
        let first = read(of("0123456789"), 10, buffers.take()).await.unwrap();
        assert_eq!(first, b"0123456789");
        let (at, capacity) = (first.as_ptr(), first.capacity());
        buffers.put(first);
        let second = read(of("abc"), 10, buffers.take()).await.unwrap();
        assert_eq!((second.as_slice(), second.as_ptr(), second.capacity()), (&b"abc"[..], at, capacity));
        assert_eq!(read(of("0123456789a"), 10, buffers.take()).await.unwrap_err(), "a body of more than 10 bytes");
        // Without a length in the head.
        let chunked = Request::post("/").body(Body::from("0123456789a")).unwrap();
        assert!(read(chunked, 10, Vec::new()).await.is_err());
        for _ in 0..5 {
            buffers.put(Vec::with_capacity(8));
        }
        buffers.put(Vec::with_capacity(KEPT_BYTES_MOST + 1));
        assert_eq!(buffers.kept().len(), KEPT_MOST);
    }
}
