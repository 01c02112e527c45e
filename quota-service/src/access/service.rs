//! Access to a running service: its valid tokens, and the writes of clients that are under way.

use super::Tokens;
use crate::core::Core;
use crate::writes::Writes;
use std::sync::Arc;
use store::StoreError;

pub struct Access {
    pub core: Arc<Core>,
    pub tokens: Tokens,
    pub writes: Writes,
}

impl Access {
    #[must_use]
    pub fn new(core: Arc<Core>) -> Self {
        Self { core, tokens: Tokens::new(), writes: Writes::default() }
    }

    /// Reads the tokens again. Returns the number of valid ones.
    ///
    /// # Errors
    /// The database does not answer: the known tokens stay valid.
    pub async fn read_tokens(&self) -> Result<usize, StoreError> {
        let from_afar = !self.core.config.listen.ip().is_loopback();
        self.tokens.read(self.core.store.as_ref(), from_afar, self.core.clock.now()).await
    }
}
