//! What the suites share: databases of their own, and fixtures written as text.

mod database;
pub mod fixture;

pub use database::{TestDatabase, fresh_database};
pub use store::Backend;
