//! What programs that listen share: connections with limits and an end ([`listen`]), which end when their client reads no more
//! ([`pace`]), room for bodies on their way ([`room`]), the hosts of a request ([`hosts`]), TLS 1.3 with certificates that are read again
//! when they change ([`tls`]) and an end ([`certificate`]), signals ([`signals`]), and faults that are told when they begin and when they are over ([`said`]).

pub mod certificate;
pub mod hosts;
pub mod listen;
pub mod pace;
pub mod room;
pub mod said;
pub mod signals;
pub mod tls;
