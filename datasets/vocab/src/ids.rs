//! Names of clusters, GPU models, organizations, nodes, tasks and events; series and pools made of them.

use std::fmt;
use std::sync::Arc;

/// Long enough for any name seen in a trace, short enough for an index key in both databases.
const MAX_NAME_BYTES: usize = 200;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the {what} is empty")]
    Empty { what: &'static str },
    #[error("the {what} has {bytes} bytes, more than {MAX_NAME_BYTES}")]
    TooLong { what: &'static str, bytes: usize },
    #[error("the {what} {name:?} holds a control character")]
    Control { what: &'static str, name: String },
    #[error("the {what} {name:?} begins or ends with a space")]
    Space { what: &'static str, name: String },
    #[error("the cluster {name:?} holds a colon, which separates cluster and GPU model in the id of a pool")]
    Colon { name: String },
    #[error("the calendar {name:?} holds {found:?}: letters, digits, dots, dashes and underscores make a name")]
    Letter { name: String, found: char },
    #[error("the name {name:?} contains the invisible character U+{code_point:04X}: remove it")]
    Invisible { name: String, code_point: u32 },
    #[error("{name:?} is reserved in request paths: choose another name")]
    Reserved { name: String },
    #[error("{name:?} stands for idle capacity in statements: choose another name")]
    Idle { name: String },
    #[error("{text:?} is not a pool: write CLUSTER:GPU_MODEL")]
    NoPool { text: String },
}

/// Characters that are not seen, or turn the direction in which others are read: two names that look the same would be two.
/// Spaces other than the plain one are among them.
const INVISIBLE: [(u32, u32); 23] = [
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1_3430, 0x1_345F),
    (0x1_BCA0, 0x1_BCA3),
    (0x1_D173, 0x1_D17A),
    (0xE_0000, 0xE_0FFF),
    (0xF_0000, 0x10_FFFF),
];

/// Stands in statements, and in OpenCost's exports, where other rows have an organization: for capacity that none held.
pub const IDLE: &str = "__idle__";

/// Refuses a new name with characters that cannot be seen, and [`IDLE`]. Asked where names enter; those that are stored already
/// stay readable.
///
/// # Errors
/// [`NameError::Invisible`] with the first of the characters; [`NameError::Idle`].
pub fn new_name(name: &str) -> Result<(), NameError> {
    if name == IDLE {
        return Err(NameError::Idle { name: name.to_owned() });
    }
    match invisible(name) {
        Some(code_point) => Err(NameError::Invisible { name: name.to_owned(), code_point }),
        None => Ok(()),
    }
}

/// The first character of a text that cannot be seen, or turns the direction of others.
pub(crate) fn invisible(text: &str) -> Option<u32> {
    let is_unseen = |code: &u32| INVISIBLE.iter().any(|(first, last)| (first..=last).contains(&code));
    text.chars().map(u32::from).find(is_unseen)
}

/// Refuses the id of a new task or node that stands for something else in the path of a request: the word of a route
/// (`POST /v1/tasks/dry-run`), or a step that clients resolve.
///
/// # Errors
/// [`NameError::Reserved`].
pub fn addressable(id: &str) -> Result<(), NameError> {
    match id {
        "dry-run" | "eta" | "prices" | "." | ".." => Err(NameError::Reserved { name: id.to_owned() }),
        _ => Ok(()),
    }
}

fn checked(what: &'static str, name: &str) -> Result<Arc<str>, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { what, bytes: name.len() });
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control { what, name: name.to_owned() });
    }
    if name.trim() != name {
        return Err(NameError::Space { what, name: name.to_owned() });
    }
    Ok(Arc::from(name))
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        /// Shared text: a clone costs a counter.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// # Errors
            /// The name is empty, longer than 200 bytes, has control characters, or spaces at its ends.
            pub fn parse(name: &str) -> Result<Self, NameError> {
                checked($what, name).map(Self)
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A GPU model such as `A100-SXM4-80GB`.
    GpuModel,
    "GPU model"
);
name!(
    /// A tenant whose demand is forecast; `*` stands for the pool's own hourly peak.
    Organization,
    "organization"
);
name!(
    /// A machine of a cluster.
    NodeId,
    "node"
);
name!(
    /// An event, as its reporter names it; counted once however often it arrives.
    EventId,
    "event id"
);
name!(
    /// A task, as its submitter names it.
    TaskId,
    "task"
);

/// A named set of nodes with a time zone and a holiday calendar. Holds no colon, so that `CLUSTER:GPU_MODEL` is one id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// # Errors
    /// As for every name, and where it holds a colon.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name.contains(':') {
            return Err(NameError::Colon { name: name.to_owned() });
        }
        checked("cluster", name).map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A calendar that a user brought along. Holds no plus, so that `CN+acme` is one name, and nothing of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarName(Arc<str>);

impl CalendarName {
    /// # Errors
    /// As for every name, and where it holds another character than letters, digits, `.`, `-` and `_`.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let found = name.chars().find(|letter| !letter.is_alphanumeric() && !['.', '-', '_'].contains(letter));
        match found {
            Some(found) => Err(NameError::Letter { name: name.to_owned(), found }),
            None => checked("calendar", name).map(Self),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CalendarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Organization {
    const POOL_PEAK: &str = "*";

    /// The pool's own hourly peak: the maximum over minutes of the sum over organizations, which is less than the sum
    /// of their peaks.
    #[must_use]
    pub fn pool_peak() -> Self {
        Self(Arc::from(Self::POOL_PEAK))
    }

    /// Whether this is `*`, the pool's own hourly peak.
    #[must_use]
    pub fn is_pool_peak(&self) -> bool {
        self.as_str() == Self::POOL_PEAK
    }
}

/// One cluster × one GPU model: capacity, quota and placement belong to a pool.
///
/// ```
/// use vocab::PoolId;
///
/// let pool = PoolId::parse("earth:A100-SXM4-80GB")?;
/// assert_eq!(pool.cluster.as_str(), "earth");
/// assert_eq!(pool.to_string(), "earth:A100-SXM4-80GB");
/// assert!(PoolId::parse("earth").is_err(), "no GPU model");
/// # Ok::<(), vocab::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId {
    /// Cluster of the pool.
    pub cluster: ClusterName,
    /// GPU model of the pool.
    pub gpu_model: GpuModel,
}

impl PoolId {
    /// Reads `CLUSTER:GPU_MODEL`.
    ///
    /// # Errors
    /// There is no colon, or one of the names is refused.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (cluster, gpu_model) = text.split_once(':').ok_or_else(|| NameError::NoPool { text: text.to_owned() })?;
        Ok(Self { cluster: ClusterName::parse(cluster)?, gpu_model: GpuModel::parse(gpu_model)? })
    }
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cluster, self.gpu_model)
    }
}

/// One cluster × GPU model × organization: what demand is measured and forecast for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId {
    /// Pool of the series.
    pub pool: PoolId,
    /// Organization, or `*` for the pool's own hourly peak.
    pub organization: Organization,
}

impl SeriesId {
    /// The series of the pool's own hourly peak.
    #[must_use]
    pub fn pool_peak(pool: PoolId) -> Self {
        Self { pool, organization: Organization::pool_peak() }
    }

    /// Whether this is `*`, the pool's own hourly peak.
    #[must_use]
    pub fn is_pool_peak(&self) -> bool {
        self.organization.is_pool_peak()
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pool, self.organization)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_hurt_later_is_refused_at_once() {
        assert_eq!(Organization::parse(""), Err(NameError::Empty { what: "organization" }));
        assert!(matches!(GpuModel::parse(&"x".repeat(201)), Err(NameError::TooLong { bytes: 201, .. })));
        assert!(matches!(NodeId::parse("a\nb"), Err(NameError::Control { .. })));
        assert!(matches!(TaskId::parse(" a"), Err(NameError::Space { .. })));
        assert!(matches!(ClusterName::parse("a:b"), Err(NameError::Colon { .. })));
        assert!(matches!(CalendarName::parse("CN+acme"), Err(NameError::Letter { found: '+', .. })));
    }

    #[test]
    fn characters_that_cannot_be_seen_are_named_by_their_code_point() {
        for (name, code_point) in
            [("a\u{200b}b", 0x200B), ("a\u{202e}b", 0x202E), ("\u{feff}a", 0xFEFF), ("a\u{a0}b", 0xA0)]
        {
            let fault = new_name(name).unwrap_err();
            assert_eq!(fault, NameError::Invisible { name: name.to_owned(), code_point });
            assert!(fault.to_string().contains(&format!("U+{code_point:04X}")), "{fault}");
        }
        for name in ["org-001", "übung", "部門", "команда", "a b", "NVIDIA/A100:80"] {
            assert_eq!(new_name(name), Ok(()));
        }
        assert_eq!(new_name("__idle__"), Err(NameError::Idle { name: "__idle__".to_owned() }));
    }

    #[test]
    fn words_of_routes_and_steps_of_paths_are_no_ids() {
        for id in ["dry-run", "eta", "prices", ".", ".."] {
            assert_eq!(addressable(id), Err(NameError::Reserved { name: id.to_owned() }));
        }
        assert_eq!((addressable("dry-run-1"), addressable("...")), (Ok(()), Ok(())));
    }

    #[test]
    fn a_pool_id_reads_back_as_it_was_written() {
        let pool = PoolId::parse("earth:nvidia.com/A100:80").expect("a colon may stand in the GPU model");
        assert_eq!(pool.cluster.as_str(), "earth");
        assert_eq!(pool.to_string(), "earth:nvidia.com/A100:80");
        assert!(matches!(PoolId::parse("earth"), Err(NameError::NoPool { .. })));
    }
}
