//! Requests and answers of the scheduler. The Go types carry no tags: keys are in PascalCase, and nil is `null`; the pods and
//! nodes inside are ordinary JSON of the API.

use crate::cluster::slim::Pod;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Text that lies in the body where nothing in it is escaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// `ExtenderArgs`: of filter and prioritize.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Args<'a> {
    pub pod: Pod,
    /// A `NodeList`, where the scheduler sends whole nodes. It is answered as it came.
    #[serde(borrow, default)]
    pub nodes: Option<&'a RawValue>,
    /// Where it sends names (`nodeCacheCapable`).
    #[serde(borrow, default)]
    pub node_names: Option<Vec<Text<'a>>>,
}

#[derive(Deserialize)]
struct NodeList<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<Item<'a>>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default)]
    metadata: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    uid: Option<Text<'a>>,
}

impl<'a> Args<'a> {
    /// # Errors
    /// It is no such body.
    pub fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(body)
    }

    /// The names of the nodes, in either mode.
    ///
    /// # Errors
    /// The nodes are no list of nodes.
    pub fn names(&self) -> serde_json::Result<Cow<'_, [Text<'a>]>> {
        match (&self.node_names, self.nodes) {
            (Some(names), _) => Ok(Cow::Borrowed(names)),
            (None, Some(nodes)) => {
                let list: NodeList<'a> = serde_json::from_str(nodes.get())?;
                let named = list.items.unwrap_or_default().into_iter().filter_map(|item| item.metadata?.name);
                Ok(Cow::Owned(named.collect()))
            }
            (None, None) => Ok(Cow::Borrowed(&[])),
        }
    }
}

/// `ExtenderFilterResult`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct FilterResult<'a> {
    pub nodes: Option<&'a RawValue>,
    pub node_names: Option<&'a [Text<'a>]>,
    /// Reasons by node; evictions could help there.
    pub failed_nodes: BTreeMap<&'a str, &'a str>,
    /// Evicting would not help: the scheduler does not try to.
    pub failed_and_unresolvable_nodes: BTreeMap<&'a str, &'a str>,
    /// Error of the request; empty without one.
    pub error: &'a str,
}

/// One of a `HostPriorityList`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostPriority<'a> {
    /// Name of the node.
    pub host: &'a str,
    /// 0 to 10.
    pub score: u8,
}

/// `ExtenderPreemptionArgs`, as any writer may write them; see [`Offer`](super::offer::Offer).
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PreemptionArgs<'a> {
    pub pod: Pod,
    #[serde(borrow, default)]
    pub node_name_to_victims: Option<BTreeMap<Text<'a>, Option<Victims<'a>>>>,
    #[serde(borrow, default)]
    pub node_name_to_meta_victims: Option<BTreeMap<Text<'a>, Option<MetaVictims<'a>>>>,
}

#[derive(Deserialize)]
pub struct Victims<'a> {
    #[serde(borrow, default, rename = "Pods")]
    pods: Option<Vec<Option<Item<'a>>>>,
    #[serde(default, rename = "NumPDBViolations")]
    pub violations: i64,
}

impl<'a> Victims<'a> {
    /// The UIDs of those that have one.
    pub fn uids(self) -> impl Iterator<Item = Text<'a>> {
        self.pods.unwrap_or_default().into_iter().filter_map(|pod| pod?.metadata?.uid)
    }
}

#[derive(Debug, Deserialize, Serialize)]
pub struct MetaVictims<'a> {
    #[serde(borrow, default, rename = "Pods")]
    pub pods: Option<Vec<Option<MetaPod<'a>>>>,
    #[serde(default, rename = "NumPDBViolations")]
    pub violations: i64,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct MetaPod<'a> {
    #[serde(borrow, rename = "UID")]
    pub uid: Text<'a>,
}

/// `ExtenderPreemptionResult`: in both modes UIDs.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PreemptionResult<'a> {
    pub node_name_to_meta_victims: BTreeMap<&'a str, MetaVictims<'a>>,
}
