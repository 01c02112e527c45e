use std::path::{Path, PathBuf};

/// Where public traces lie; beside the workspace where the variable is not set.
const FOLDER: &str = "HEADROOM_PUBLIC_DATA";
/// Set where the folder has to be there: then its absence is a failure.
const REQUIRED: &str = "HEADROOM_PUBLIC_DATA_REQUIRED";
/// A file that gets a line for each test that read public data.
const LOG: &str = "HEADROOM_PUBLIC_DATA_LOG";

/// The root of the workspace.
///
/// # Panics
/// Never: this crate lies one folder below it.
#[must_use]
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies below the workspace")
}

/// A file or folder of public data, for `test`. `None`, with a line on stderr, where the folder is absent.
///
/// # Panics
/// The folder is absent and required, or lacks what is asked for.
#[must_use]
pub fn public_data(test: &str, path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER).map_or_else(|| workspace_root().join("../shared/data"), PathBuf::from);
    if !folder.is_dir() {
        assert!(std::env::var_os(REQUIRED).is_none(), "{} is required and not there", folder.display());
        println!("not run: {test} needs public data, and {} is not there", folder.display());
        return None;
    }
    let found = folder.join(path);
    assert!(found.exists(), "{} is missing", found.display());
    if let Some(log) = std::env::var_os(LOG) {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        writeln!(file.expect("the log of public data opens"), "{test}").expect("the log of public data takes a line");
    }
    Some(found)
}
