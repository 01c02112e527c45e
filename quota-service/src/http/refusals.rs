//! Logs refused requests (401 and 403), which show a client that guesses tokens, or uses one beyond its scope. One line in ten
//! seconds for each address and token, with the number of refusals since the last.

use crate::access::{Caller, token_id};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::{Method, StatusCode};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines of one address and token.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Addresses and tokens with a line of their own; more share one.
const MOST_APART: usize = 1_000;

/// The client of a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Refused {
    address: Option<IpAddr>,
    token: Option<String>,
}

struct Lately {
    logged_at: Instant,
    unlogged: u64,
}

/// The refusals of late.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<Refused, Lately>>);

/// The facts of a request for its line, taken before it is answered.
pub struct Line {
    of: Refused,
    method: Method,
}

impl Line {
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let known = request.extensions().get::<Arc<Caller>>().and_then(|caller| caller.token_id.clone());
        // The id of a token is no secret; anything else that was sent may be one.
        let token = known.or_else(|| token_id(request.headers().get(AUTHORIZATION)));
        Self { of: Refused { address, token }, method: request.method().clone() }
    }
}

impl Refusals {
    /// Writes a line where an answer is a refusal, and none was written lately.
    pub fn note(&self, line: Line, route: Option<&str>, status: StatusCode) {
        if ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
            return;
        }
        let (address, token) = (line.of.address.map(|address| address.to_string()), line.of.token.clone());
        if let Some(times) = self.times(line.of, Instant::now()) {
            let (address, token) = (address.unwrap_or_default(), token.unwrap_or_default());
            let (method, route, status) = (line.method, route.unwrap_or("none"), status.as_u16());
            tracing::warn!(status, %method, route, %address, %token, times, "a request was refused");
        }
    }

    /// How many refusals a line stands for; `None` where none is written now.
    fn times(&self, of: Refused, now: Instant) -> Option<u64> {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |one: &Lately| now.saturating_duration_since(one.logged_at) >= LINE_EVERY;
        if lately.len() >= MOST_APART && !lately.contains_key(&of) {
            lately.retain(|_, one| !is_over(one));
        }
        let is_apart = lately.len() < MOST_APART || lately.contains_key(&of);
        let of = if is_apart { of } else { Refused::default() };
        match lately.get_mut(&of) {
            Some(one) if !is_over(one) => {
                one.unlogged += 1;
                None
            }
            Some(one) => {
                let times = one.unlogged + 1;
                *one = Lately { logged_at: now, unlogged: 0 };
                Some(times)
            }
            None => {
                lately.insert(of, Lately { logged_at: now, unlogged: 0 });
                Some(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u32) -> Refused {
        Refused { address: Some(IpAddr::from(number.to_be_bytes())), token: None }
    }

    #[test]
    fn refusals_are_logged_once_in_ten_seconds_of_each_address_with_how_many_there_were() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let times = [0, 1, 9, 10, 11].map(|seconds| refusals.times(of(1), at(seconds)));
        assert_eq!(times, [Some(1), None, None, Some(3), None]);
        assert_eq!(refusals.times(of(2), at(11)), Some(1), "another address has a line of its own");
    }

    #[test]
    fn any_number_of_addresses_takes_bounded_memory_and_lines() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let lines = (0..10_000).filter(|number| refusals.times(of(*number), start).is_some()).count();
        assert_eq!((lines, refusals.0.lock().unwrap().len()), (MOST_APART + 1, MOST_APART + 1));
    }
}
