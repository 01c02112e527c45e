//! Where files are.

use crate::chunks::Chunks;
use crate::environment;
use crate::error::SourceError;
use crate::folder;
use crate::http::{Connector, Patience};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

const ENDING: &str = ".parquet";
const S3: &str = "s3://";

/// Parquet files in the order of their names.
pub struct Files {
    store: Arc<dyn ObjectStore>,
    /// Reads block; they run here, from any thread.
    runtime: Arc<Runtime>,
    found: Vec<ObjectMeta>,
    names: Vec<PathBuf>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Files {
    /// The file of a path or URL, or all of a folder or prefix. `s3://` takes address and credentials from the environment, as AWS's
    /// own tools do. To be called outside of asynchronous code.
    ///
    /// # Errors
    /// The location is none, holds no file, or the storage does not answer.
    pub fn open(location: &str) -> Result<Self, SourceError> {
        let invalid = |why: String| SourceError::Location { location: location.to_owned(), why };
        if location.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        if let Some(path) = location.strip_prefix(S3) {
            let builder = AmazonS3Builder::from_env().with_url(location);
            let setting = |why: String| SourceError::Setting { location: location.to_owned(), why };
            environment::check(&builder).map_err(setting)?;
            let patience = Patience::of(&builder).map_err(setting)?;
            let builder = builder.with_http_connector(Connector(patience)).with_retry(patience.retries());
            let store = builder.build().map_err(|fault| invalid(fault.to_string()))?;
            let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
            let prefix = ObjectPath::parse(prefix).map_err(|fault| invalid(fault.to_string()))?;
            return Self::of(Arc::new(store), &prefix, &|path| PathBuf::from(format!("{S3}{bucket}/{path}")));
        }
        let path = location.strip_prefix("file://").unwrap_or(location);
        if let Some((scheme, _)) = path.split_once("://") {
            return Err(invalid(format!("files are not read by {scheme}")));
        }
        let missing = |fault: std::io::Error| SourceError::Missing { file: path.into(), why: fault.to_string() };
        let whole = Path::new(path).canonicalize().map_err(missing)?;
        folder::check(Path::new(path), &mut vec![whole.clone()])?;
        let prefix = ObjectPath::from_absolute_path(&whole).map_err(|fault| invalid(fault.to_string()))?;
        // Files are named as the location was, not by where links lead.
        let name = |file: &ObjectPath| match file.prefix_match(&prefix) {
            Some(rest) => rest.fold(PathBuf::from(path), |name, part| name.join(part.as_ref())),
            None => PathBuf::from(path),
        };
        Self::of(Arc::new(LocalFileSystem::new()), &prefix, &name)
    }

    /// The files of a prefix in a store; `name` is how errors call them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of(
        store: Arc<dyn ObjectStore>,
        prefix: &ObjectPath,
        name: &dyn Fn(&ObjectPath) -> PathBuf,
    ) -> Result<Self, SourceError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|fault| SourceError::Receiver(fault.to_string()))?;
        let of_storage = |fault| of_storage(name(prefix), &fault);
        let list = || runtime.block_on(store.list(Some(prefix)).try_collect::<Vec<_>>());
        let mut found = if prefix.as_ref().ends_with(ENDING) {
            match runtime.block_on(store.head(prefix)) {
                Ok(file) => vec![file],
                // Spark writes folders of such names.
                Err(missing @ object_store::Error::NotFound { .. }) => match list().map_err(of_storage)? {
                    files if files.is_empty() => return Err(of_storage(missing)),
                    files => files,
                },
                Err(fault) => return Err(of_storage(fault)),
            }
        } else {
            list().map_err(of_storage)?
        };
        found.retain(|file| file.location.as_ref().ends_with(ENDING));
        without_folders(&mut found);
        found.sort_by(|one, other| one.location.cmp(&other.location));
        if found.is_empty() {
            return Err(SourceError::NoFiles { location: name(prefix).display().to_string() });
        }
        let names = found.iter().map(|file| name(&file.location)).collect();
        Ok(Self { store, runtime: Arc::new(runtime), found, names })
    }

    /// How the files are called.
    #[must_use]
    pub fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.found.iter().map(|file| file.size).sum()
    }

    /// Access to the bytes of a file by its number.
    pub(crate) fn chunks(&self, number: usize) -> Chunks {
        let ObjectMeta { location, size, .. } = self.found[number].clone();
        Chunks::new(self.store.clone(), self.runtime.clone(), location, size)
    }
}

/// Leaves out the objects of no bytes by which consoles of object stores and Hadoop show a folder, such as one that is called
/// `usage.parquet/`: their names have lost the slash.
fn without_folders(found: &mut Vec<ObjectMeta>) {
    let is_folder = |one: &ObjectMeta| {
        let mut others = found.iter().filter(|other| other.location != one.location);
        one.size == 0 && others.any(|other| other.location.prefix_matches(&one.location))
    };
    let folders: Vec<_> = found.iter().filter(|one| is_folder(one)).map(|one| one.location.clone()).collect();
    found.retain(|one| !folders.contains(&one.location));
}

/// A fault of the storage.
pub(crate) fn of_storage(file: PathBuf, fault: &object_store::Error) -> SourceError {
    let text = fault.to_string();
    if let Some((_, why)) = REFUSALS.iter().find(|(code, _)| text.contains(code)) {
        let bucket = file.to_str().and_then(|name| name.strip_prefix(S3)?.split('/').next()).unwrap_or_default();
        return SourceError::Missing { why: why.replace("BUCKET", bucket), file };
    }
    match fault {
        object_store::Error::NotFound { .. } => {
            let is_remote = file.starts_with(S3);
            let why = if is_remote {
                "no such file or bucket; check its name, AWS_ENDPOINT and AWS_REGION"
            } else {
                "no such file"
            };
            SourceError::Missing { file, why: why.to_owned() }
        }
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            SourceError::Missing { file, why: REFUSED.to_owned() }
        }
        object_store::Error::InvalidPath { .. } => {
            let why = format!(
                "{text}: a key with an empty part, as in a//b, cannot be read; rename the object, or name a prefix without it"
            );
            SourceError::Missing { file, why }
        }
        // A disk that does not give a file now does not give it later.
        object_store::Error::Generic { store: "LocalFileSystem", source } => {
            SourceError::Missing { file, why: folder::unread(root_of(source.as_ref())) }
        }
        _ => SourceError::Unavailable { file, why: text },
    }
}

/// The first cause.
fn root_of<'a>(fault: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    std::iter::successors(Some(fault), |fault| fault.source()).last().unwrap_or(fault)
}

const REFUSED: &str = "the storage refuses access; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, or the role";

const NO_KEYS: &str = "no keys are set and this machine has no role; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket";

/// Codes of permanent faults in answers of S3, each with its remedy. The client has no error kind of its own for a refused list.
const REFUSALS: [(&str, &str); 12] = [
    (
        "<Code>NoSuchBucket</Code>",
        "there is no bucket BUCKET; check its name, AWS_ENDPOINT and AWS_REGION, or create it",
    ),
    ("<Code>InvalidAccessKeyId</Code>", "the storage does not know the key; check AWS_ACCESS_KEY_ID"),
    ("<Code>SignatureDoesNotMatch</Code>", "the storage refuses the signature; check AWS_SECRET_ACCESS_KEY"),
    ("<Code>AccessDenied</Code>", REFUSED),
    ("<Code>ExpiredToken</Code>", "the session has expired; renew AWS_SESSION_TOKEN and its keys"),
    ("<Code>InvalidToken</Code>", "the storage does not know the session; check AWS_SESSION_TOKEN"),
    // Where no keys are set the client asks the machine for a role, at these addresses.
    ("http://169.254.169.254/", NO_KEYS),
    ("http://169.254.170.2/", NO_KEYS),
    ("<Code>RequestTimeTooSkewed</Code>", "the clock of this machine differs from that of the storage; set it"),
    ("<Code>AuthorizationHeaderMalformed</Code>", "the bucket lies in another region; set AWS_REGION"),
    ("<Code>PermanentRedirect</Code>", "the bucket lies in another region; set AWS_REGION"),
    ("redirect without LOCATION", "the bucket lies in another region; set AWS_REGION"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn objects_that_stand_for_folders_are_no_files_and_an_empty_file_is_one() {
        let store = Arc::new(InMemory::new());
        let runtime = Builder::new_current_thread().build().unwrap();
        for (path, bytes) in [("runs/a.parquet", ""), ("runs/a.parquet/part-0.parquet", "PAR1"), ("runs/b.parquet", "")]
        {
            runtime.block_on(store.put(&ObjectPath::from(path), bytes.into())).unwrap();
        }
        let files = Files::of(store, &ObjectPath::from("runs"), &|path| PathBuf::from(path.as_ref())).unwrap();
        assert_eq!(files.names(), ["runs/a.parquet/part-0.parquet", "runs/b.parquet"].map(PathBuf::from));
    }
}
