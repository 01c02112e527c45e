//! Discovery: which version of a kind the API serves.

use kube::Client;
use kube::api::ApiResource;

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
