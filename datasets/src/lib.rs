//! From files to windows: the way of every usage row before a model sees it.
//!
//! Readers turn a published format into checked [`vocab::UsageRow`]s ([`read`]); a [`Panel`] is one cluster's history on
//! the hour grid with its gaps marked; a [`TimeSplit`] says which hours may be learned from; [`window::at`] cuts what a
//! model sees at one issue time, the same function in training and in serving.

pub mod calendar;
pub mod panel;
pub mod read;
pub mod reservations;
pub mod split;
pub mod spool;
pub mod sweep;
pub mod synthetic;
pub mod time;
pub mod topology;
pub mod window;

pub use calendar::{Calendar, CalendarChoice, CalendarError, HourFeatures};
pub use panel::{Clock, Falls, Panel, PanelBuilder, PanelError, Series};
pub use read::{ReadError, ReadOptions, ReadReport, RowFault, Zones};
pub use split::{HourRange, SplitError, TimeSplit};
