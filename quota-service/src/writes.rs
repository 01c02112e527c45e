//! Writes that are under way: a client that hangs up does not end one, and a stop waits for it.

use std::sync::Arc;
use tokio::sync::watch;

/// Counts the writes that are under way.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    count: Arc<watch::Sender<usize>>,
}

/// A write that is under way until this is dropped.
#[derive(Debug)]
pub struct UnderWay(Writes);

impl Writes {
    /// Counts a write.
    #[must_use]
    pub fn begin(&self) -> UnderWay {
        self.count.send_modify(|count| *count += 1);
        UnderWay(self.clone())
    }

    /// Returns once none is under way.
    pub async fn ended(&self) {
        // The sender lives as long as this.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_stop_waits_for_the_writes_that_are_under_way() {
        let writes = Writes::default();
        writes.ended().await;
        let (one, other) = (writes.begin(), writes.begin());
        drop(one);
        assert!(timeout(Duration::from_millis(20), writes.ended()).await.is_err(), "one is under way");
        drop(other);
        timeout(Duration::from_secs(1), writes.ended()).await.unwrap();
    }
}
