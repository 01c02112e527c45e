//! Watches that begin again by themselves.
