//! Discovery: which version of a kind the API serves.

use connectors::chain;
use kube::Client;
use kube::api::ApiResource;

/// Why objects of a kind cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// This identity may not (403), or is not known (401).
    #[error("{resource} may not be listed: HTTP {code}: {message}")]
    Refused {
        /// Plural of the resource.
        resource: &'static str,
        /// HTTP status.
        code: u16,
        /// As the API server words it.
        message: String,
    },
    /// The API server cannot be reached, or fails.
    #[error("{resource} cannot be listed: {detail}")]
    Failed {
        /// Plural of the resource.
        resource: &'static str,
        /// Cause.
        detail: String,
    },
}

impl ListFault {
    /// An error of kube, in the words of the API server where it has answered.
    #[must_use]
    pub fn of(resource: &'static str, fault: &kube::Error) -> Self {
        match fault {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
                Self::Refused { resource, code: status.code, message: status.message.clone() }
            }
            fault => Self::Failed { resource, detail: in_words(fault) },
        }
    }

    /// Plural of the resource.
    #[must_use]
    pub const fn resource(&self) -> &'static str {
        match self {
            Self::Refused { resource, .. } | Self::Failed { resource, .. } => resource,
        }
    }
}

/// A fault with its causes; of an answer of the API server its status and its words, once.
#[must_use]
pub fn in_words(fault: &kube::Error) -> String {
    match fault {
        kube::Error::Api(status) => format!("HTTP {}: {}", status.code, status.message),
        fault => chain(fault),
    }
}

/// A kind, and the versions of it that we read, the newest first.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// API group.
    pub group: &'static str,
    /// Versions.
    pub versions: &'static [&'static str],
    /// Plural.
    pub plural: &'static str,
}

/// The kind in the newest version that is served and that we read; `None` where none is.
///
/// # Errors
/// The API does not answer.
pub async fn served(client: &Client, wanted: Wanted) -> Result<Option<ApiResource>, kube::Error> {
    for version in wanted.versions {
        let api_version = format!("{}/{version}", wanted.group);
        let list = match client.list_api_group_resources(&api_version).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(fault) => return Err(fault),
        };
        if let Some(found) = list.resources.into_iter().find(|one| one.name == wanted.plural) {
            return Ok(Some(ApiResource {
                group: wanted.group.to_owned(),
                version: (*version).to_owned(),
                api_version,
                kind: found.kind,
                plural: wanted.plural.to_owned(),
            }));
        }
    }
    Ok(None)
}
