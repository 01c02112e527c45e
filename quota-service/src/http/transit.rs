//! Bodies on their way. An answer that is not read, and a request that does not come whole, stay in memory as long as their
//! client likes: there is room for so many bytes in all, and of one client. An answer holds its room, and its place among
//! the requests that are worked on, until its last byte was handed to the system.

use super::ApiError;
use super::guard::Limits;
use super::places::{Place, Places};
use super::routes::{LimitClass, Route};
use crate::access::Caller;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::Method;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use futures_util::StreamExt;
use serving::room::{Client, Room, Share, held};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Smaller bodies are not counted: each connection has buffers of that size anyway, and the number of connections is bounded.
const SMALL_BYTES: u64 = 16 * 1_024;
/// Requests whose last answer is remembered.
const REMEMBERED: usize = 4_096;
/// The step in which a body of unknown length takes room.
const STEP_BYTES: u64 = 1_024 * 1_024;

/// Large answers that are made at the same time: how much memory one takes is known only once it is made.
const MAKERS: usize = 2;
/// Questions about starts whose futures are played at the same time: each takes the processor for up to seconds.
const PLAYERS: usize = 2;
/// The time limit for such a turn.
const MADE_WITHIN: Duration = Duration::from_secs(2);

/// The reason for which a body is refused.
pub enum Unfit {
    /// There is no room at this moment.
    NoRoom,
    Other(ApiError),
}

/// The room for bodies, and how large answers were.
#[derive(Debug)]
pub struct Transit {
    room: Arc<Room>,
    /// Bytes of the last answer, by what was asked.
    sizes: Mutex<HashMap<u64, u64>>,
    makers: Semaphore,
    players: Places,
    body_bytes: usize,
}

/// The client and the subject of a request.
pub struct Asked {
    client: Client,
    about: u64,
    turn: Kind,
}

/// The turn that a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Large,
    Played,
}

/// A turn, until it is dropped.
pub enum Turn<'a> {
    None,
    Large { _turn: SemaphorePermit<'a> },
    Played { _turn: Place },
}

impl Asked {
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let token = request.extensions().get::<Arc<Caller>>().and_then(|caller| caller.token_id.clone());
        let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| Client::Address(peer.0.ip()));
        let mut about = DefaultHasher::new();
        (request.method(), request.uri().path(), request.uri().query()).hash(&mut about);
        let row = request.extensions().get::<&'static Route>();
        let turn = match row.map(|row| row.limit) {
            Some(LimitClass::LargeRead) if request.method() == Method::GET => Kind::Large,
            Some(LimitClass::Played) => Kind::Played,
            _ => Kind::None,
        };
        let client = token.map(Client::Token).or(address).unwrap_or(Client::Inside);
        Self { client, about: about.finish(), turn }
    }

    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }
}

impl Transit {
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            room: Room::new(limits.room),
            sizes: Mutex::default(),
            makers: Semaphore::new(MAKERS),
            players: Places::new(PLAYERS),
            body_bytes: limits.body_bytes,
        }
    }

    /// The turn of a large answer to be made, or of futures to be played, held until the room of the answer is taken; one of another
    /// route needs none.
    pub async fn turn(&self, asked: &Asked) -> Result<Turn<'_>, Unfit> {
        let turn = async {
            match asked.turn {
                Kind::None => Some(Turn::None),
                Kind::Large => Some(Turn::Large { _turn: self.makers.acquire().await.ok()? }),
                Kind::Played => Some(Turn::Played { _turn: self.players.take(&asked.client).await? }),
            }
        };
        timeout(MADE_WITHIN, turn).await.ok().flatten().ok_or(Unfit::NoRoom)
    }

    /// Room for an answer before it is made: for as many bytes as the last one to the same request had.
    pub fn expect(&self, asked: &Asked) -> Option<Share> {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = sizes.get(&asked.about).copied().unwrap_or(0);
        drop(sizes);
        self.room.take(&asked.client, expected)
    }

    /// The answer, which holds its room and `place` until it was sent. `None` where there is no room for it; what was written is
    /// acknowledged anyway.
    pub async fn sent<T: Send + 'static>(
        &self,
        response: Response,
        asked: &Asked,
        mut share: Share,
        place: T,
        has_written: bool,
    ) -> Option<Response> {
        let (head, body) = response.into_parts();
        if body.size_hint().exact().is_none() {
            return Some(Response::from_parts(head, super::stream::held(body, place)));
        }
        // A body whose length is known is in memory already.
        let bytes = to_bytes(body, usize::MAX).await.ok()?;
        let counted = if bytes.len() as u64 <= SMALL_BYTES { 0 } else { bytes.len() as u64 };
        self.remember(asked.about, counted);
        if counted == 0 {
            return Some(Response::from_parts(head, Body::from(bytes)));
        }
        if !share.resize(counted) && !has_written {
            return None;
        }
        // A body written piece by piece occupies up to twice its length.
        let exact = Bytes::copy_from_slice(&bytes);
        Some(Response::from_parts(head, Body::from(held(exact, (share, place)))))
    }

    fn remember(&self, about: u64, bytes: u64) {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes == 0 {
            sizes.remove(&about);
            return;
        }
        if sizes.len() >= REMEMBERED && !sizes.contains_key(&about) {
            sizes.clear();
        }
        sizes.insert(about, bytes);
    }

    /// The request with room for its body. One of unknown length is received here, and takes room as it comes.
    pub async fn received(&self, request: Request, asked: &Asked) -> Result<(Request, Option<Share>), Unfit> {
        if request.body().is_end_stream() {
            return Ok((request, None));
        }
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        match length {
            // One that is too large is refused before it is read.
            Some(length) if length <= SMALL_BYTES || length > self.body_bytes as u64 => Ok((request, None)),
            Some(length) => {
                let share = self.room.take(&asked.client, length).ok_or(Unfit::NoRoom)?;
                Ok((request, Some(share)))
            }
            None => self.collected(request, asked).await,
        }
    }

    async fn collected(&self, request: Request, asked: &Asked) -> Result<(Request, Option<Share>), Unfit> {
        let (head, body) = request.into_parts();
        let mut share = self.room.take(&asked.client, 0).ok_or(Unfit::NoRoom)?;
        let (mut bytes, mut frames, mut room) = (Vec::new(), body.into_data_stream(), SMALL_BYTES);
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|fault| Unfit::Other(ApiError::Receive { detail: fault.to_string() }))?;
            bytes.extend_from_slice(&frame);
            if bytes.len() > self.body_bytes {
                return Err(Unfit::Other(ApiError::TooLarge { max_bytes: self.body_bytes }));
            }
            if bytes.len() as u64 > room {
                room = (bytes.len() as u64).next_multiple_of(STEP_BYTES);
                if !share.resize(room) {
                    return Err(Unfit::NoRoom);
                }
            }
        }
        Ok((Request::from_parts(head, Body::from(bytes)), Some(share)))
    }
}
