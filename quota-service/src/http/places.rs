//! Places of requests that are worked on at once, of which one token may hold a part alone: with all of them it would shut everybody
//! else out.

use serving::room::Client;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tokens that are remembered; beyond, those that hold nothing are dropped.
const TOKENS: usize = 1_024;

/// So many places in all, and so many of one token. Requests without a token have the limit of all alone.
#[derive(Debug)]
pub struct Places {
    all: Arc<Semaphore>,
    of_token: usize,
    own: Mutex<HashMap<Client, Arc<Semaphore>>>,
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_token: Option<OwnedSemaphorePermit>,
}

/// Which places are all taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Those of everybody.
    All,
    /// Those that the token may hold.
    OfToken,
}

impl Taken {
    /// The cause, and what to do, in words.
    #[must_use]
    pub const fn detail(self) -> &'static str {
        match self {
            Self::All => "all places for such requests are taken, quotas apart: retry later",
            Self::OfToken => {
                "this token has as many such requests under way as one token may have: wait for their answers before the next"
            }
        }
    }
}

impl Places {
    /// One token may hold half of the places, and one of a single place.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(places)), of_token: places.div_ceil(2), own: Mutex::default() }
    }

    /// The places that a token has to itself.
    fn own(&self, client: &Client) -> Option<Arc<Semaphore>> {
        let Client::Token(_) = client else { return None };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= TOKENS && !own.contains_key(client) {
            own.retain(|_, places| Arc::strong_count(places) > 1);
        }
        Some(own.entry(client.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.of_token))).clone())
    }

    /// A place, if one is free now.
    ///
    /// # Errors
    /// None is.
    pub fn try_take(&self, client: &Client) -> Result<Place, Taken> {
        let own = self.own(client).map(Semaphore::try_acquire_owned);
        let of_token = own.transpose().map_err(|_| Taken::OfToken)?;
        let of_all = self.all.clone().try_acquire_owned().map_err(|_| Taken::All)?;
        Ok(Place { _of_all: of_all, _of_token: of_token })
    }

    /// A place as soon as one is free. `None` only if the places were closed, which nothing does.
    pub async fn take(&self, client: &Client) -> Option<Place> {
        let of_token = match self.own(client) {
            Some(own) => Some(own.acquire_owned().await.ok()?),
            None => None,
        };
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _of_all: of_all, _of_token: of_token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str) -> Client {
        Client::Token(name.to_owned())
    }

    #[test]
    fn one_token_holds_half_of_the_places_and_leaves_the_others_to_others() {
        let places = Places::new(4);
        let held: Vec<Place> = std::iter::from_fn(|| places.try_take(&token("vision")).ok()).collect();
        assert_eq!(held.len(), 2);
        assert_eq!(places.try_take(&token("vision")).err(), Some(Taken::OfToken));
        let other = places.try_take(&token("speech")).expect("a place is left");
        let last = places.try_take(&Client::Inside).expect("one more");
        for client in [token("speech"), Client::Inside] {
            assert_eq!(places.try_take(&client).err(), Some(Taken::All), "none is left");
        }
        drop((held, other, last));
        let all: Vec<Place> = std::iter::from_fn(|| places.try_take(&Client::Inside).ok()).collect();
        assert_eq!(all.len(), 4, "without tokens one client may have all");
        assert!(Places::new(1).try_take(&token("vision")).is_ok(), "a single place is for everybody");
    }

    #[test]
    fn a_token_that_holds_nothing_is_forgotten() {
        let places = Places::new(2);
        let held = places.try_take(&token("held"));
        for number in 0..3 * TOKENS {
            let _ = places.own(&token(&number.to_string()));
        }
        let own = places.own.lock().unwrap();
        assert!(own.len() <= TOKENS && own.contains_key(&token("held")), "{}", own.len());
        drop((own, held));
    }

    #[tokio::test]
    async fn a_token_that_waits_for_a_place_of_its_own_takes_none_from_others() {
        let places = Arc::new(Places::new(2));
        let first = places.try_take(&token("vision"));
        let (of_vision, theirs) = (places.clone(), token("vision"));
        let waiting = tokio::spawn(async move { of_vision.take(&theirs).await.is_some() });
        tokio::task::yield_now().await;
        assert!(places.take(&token("speech")).await.is_some());
        drop(first);
        assert!(waiting.await.unwrap());
    }
}
