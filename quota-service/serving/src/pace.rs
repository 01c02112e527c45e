//! Connections that end when their client reads no more: a write that makes no progress for so long is an error.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A client that reads slower than this counts as one that reads nothing: one byte now and then would hold memory for hours.
const SLOWEST_BYTES_PER_S: u64 = 16 * 1_024;

/// A connection whose writes may be blocked for so long. Each byte that is written gives some of the time back.
pub struct Paced<S> {
    inner: S,
    patience: Duration,
    /// How long writes were blocked, less what written bytes gave back.
    blocked: Duration,
    /// Since when the write under way is blocked, and when that ends the connection.
    stall: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Paced<S> {
    /// Wraps `inner`: a write without progress ends after `patience`.
    pub const fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, blocked: Duration::ZERO, stall: None }
    }

    /// Counts what a write came to.
    fn paced<T>(
        &mut self,
        wrote: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match wrote {
            Poll::Ready(done) => {
                if let Some((since, _)) = self.stall.take() {
                    self.blocked += since.elapsed();
                }
                let bytes = done.as_ref().map_or(0, bytes) as u64;
                let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST_BYTES_PER_S);
                self.blocked = self.blocked.saturating_sub(earned);
                Poll::Ready(done)
            }
            Poll::Pending => {
                let left = self.patience.saturating_sub(self.blocked);
                let (_, ends) = self.stall.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(sleep_until(now + left)))
                });
                if ends.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
                }
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.paced(wrote, |bytes| *bytes, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.paced(wrote, |bytes| *bytes, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.paced(shut, |()| 0, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const PATIENCE: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn an_unread_write_ends_after_its_timeout() {
        let (ours, _theirs) = duplex(1_024);
        let (mut ours, began) = (Paced::new(ours, PATIENCE), Instant::now());
        let fault = ours.write_all(&[0; 4_096]).await.unwrap_err();
        assert!(fault.kind() == io::ErrorKind::TimedOut && began.elapsed() >= PATIENCE, "{fault}");
    }

    #[tokio::test]
    async fn a_client_that_reads_a_byte_now_and_then_holds_nothing_for_hours() {
        let (ours, mut theirs) = duplex(1_024);
        let (mut ours, began) = (Paced::new(ours, PATIENCE), Instant::now());
        let reading = async {
            loop {
                tokio::time::sleep(PATIENCE / 6).await;
                let _ = theirs.read_u8().await;
            }
        };
        let fault = tokio::select! {
            wrote = ours.write_all(&[0; 4_096]) => wrote.unwrap_err(),
            () = reading => unreachable!("it reads for ever"),
        };
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < PATIENCE * 10, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_slow_client_that_goes_on_reading_gets_everything() {
        let (ours, mut theirs) = duplex(64 * 1_024);
        let mut ours = Paced::new(ours, PATIENCE);
        let reading = tokio::spawn(async move {
            let (mut read, mut buffer) = (0, vec![0; 64 * 1_024]);
            while read < 1 << 20 {
                tokio::time::sleep(PATIENCE / 3).await;
                read += theirs.read(&mut buffer).await.unwrap();
            }
        });
        ours.write_all(&vec![0; 1 << 20]).await.unwrap();
        reading.await.unwrap();
    }
}
