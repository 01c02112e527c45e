//! Room for bodies that are on their way: so many bytes in all, and so many of one client. What a client does not read, or does
//! not send to its end, is memory of the service.

use hyper::body::Bytes;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Client of the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Client {
    /// The id of a token.
    Token(String),
    Address(IpAddr),
    /// A request that came over no connection, as in tests.
    Inside,
}

/// How many bytes may be on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomLimits {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of one client.
    pub bytes_of_client: u64,
}

/// The bytes on their way.
#[derive(Debug)]
pub struct Room {
    limits: RoomLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    of: HashMap<Client, u64>,
}

/// A part of the room; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    room: Arc<Room>,
    client: Client,
    bytes: u64,
}

impl Room {
    /// Empty room with these limits.
    #[must_use]
    pub fn new(limits: RoomLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Takes room for so many bytes of a client. `None` where there is not enough. A body above a limit counts as the limit:
    /// it fits once nothing else is on its way.
    #[must_use]
    pub fn take(self: &Arc<Self>, client: &Client, bytes: u64) -> Option<Share> {
        let mut share = Share { room: self.clone(), client: client.clone(), bytes: 0 };
        share.resize(bytes).then_some(share)
    }

    /// Bytes on their way, as they count.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl Share {
    /// Makes it another size. Answers whether there was room; without, it stays as it is.
    pub fn resize(&mut self, bytes: u64) -> bool {
        let limits = self.room.limits;
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = taken.of.get(&self.client).copied().unwrap_or(0);
        let changed = |of: u64, most: u64| of - self.bytes.min(most) + bytes.min(most);
        let (all, theirs) = (changed(taken.bytes, limits.bytes), changed(of_client, limits.bytes_of_client));
        if bytes > self.bytes && (all > limits.bytes || theirs > limits.bytes_of_client) {
            return false;
        }
        taken.bytes = all;
        if theirs == 0 {
            taken.of.remove(&self.client);
        } else {
            taken.of.insert(self.client.clone(), theirs);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.resize(0);
    }
}

struct Held<T> {
    bytes: Bytes,
    _until_sent: T,
}

impl<T> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that hold a value until the last of them was handed to the system, or their connection has ended.
#[must_use]
pub fn held<T: Send + 'static>(bytes: Bytes, until_sent: T) -> Bytes {
    Bytes::from_owner(Held { bytes, _until_sent: until_sent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Client {
        Client::Address(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn bytes_on_their_way_are_bounded_in_all_and_of_each_client() {
        let room = Room::new(RoomLimits { bytes: 100, bytes_of_client: 60 });
        let first = room.take(&client(1), 50).unwrap();
        assert!(room.take(&client(1), 11).is_none(), "one client has its limit");
        let second = room.take(&client(2), 50).unwrap();
        assert!(room.take(&client(3), 1).is_none(), "there is no room left");
        drop(first);
        assert!(room.take(&client(3), 50).is_some() && room.taken() == 50);
        drop(second);
        assert_eq!((room.taken(), room.taken.lock().unwrap().of.len()), (0, 0));
    }

    #[test]
    fn a_body_above_the_limits_fits_alone_and_one_that_grows_asks_again() {
        let room = Room::new(RoomLimits { bytes: 100, bytes_of_client: 60 });
        let mut growing = room.take(&client(1), 10).unwrap();
        let other = room.take(&client(2), 50).unwrap();
        assert!(!growing.resize(1_000) && room.taken() == 60, "it stays as it is");
        drop(other);
        assert!(growing.resize(1_000) && room.taken() == 100);
        assert!(growing.resize(20) && room.taken() == 20);
    }

    #[test]
    fn what_bytes_hold_is_let_go_with_the_last_of_them() {
        let room = Room::new(RoomLimits { bytes: 100, bytes_of_client: 100 });
        let mut bytes = held(Bytes::from_static(b"body"), room.take(&client(1), 4).unwrap());
        let rest = bytes.split_off(2);
        drop(bytes);
        assert_eq!(room.taken(), 4);
        drop(rest);
        assert_eq!(room.taken(), 0);
    }
}
