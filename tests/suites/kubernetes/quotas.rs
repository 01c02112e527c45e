//! Quotas that are published.
