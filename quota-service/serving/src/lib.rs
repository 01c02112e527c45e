//! Shared parts of the servers: connections with limits and graceful shutdown ([`listen`]), a write timeout ([`pace`]), a
//! memory limit for bodies ([`room`]), allowed hosts ([`hosts`]), TLS 1.3 with reloaded certificates ([`tls`]) and their end
//! ([`certificate`]), signals ([`signals`]), requests over a connection of their own ([`client`]), signed ones ([`webhook`]), and
//! faults that are logged when they begin and when they end ([`standing`]).

pub mod certificate;
pub mod client;
pub mod hosts;
pub mod listen;
pub mod pace;
pub mod room;
pub mod signals;
pub mod standing;
pub mod tls;
pub mod webhook;
