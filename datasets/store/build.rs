//! Lists the files of `migrations/` for `src/migrations.rs`, which embeds them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=migrations");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder")).join("migrations");
    let list =
        ["postgres", "sqlite"].map(|database| listed(&folder, database)).into_iter().collect::<io::Result<String>>()?;
    fs::write(PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the folder")).join("migrations.rs"), list)
}

/// Source text of the list for one database, by version: `0001_start.sql` has version 1 and the description `start`.
fn listed(folder: &Path, database: &str) -> io::Result<String> {
    let mut files =
        fs::read_dir(folder.join(database))?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let mut list = format!("pub(super) const {}: &[(i64, &str, &str)] = &[\n", database.to_uppercase());
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).and_then(|name| name.split_once('_'));
        let (version, description) = name.unwrap_or_else(|| panic!("{}: expected 0001_name.sql", file.display()));
        let version: i64 = version.parse().unwrap_or_else(|_| panic!("{}: expected 0001_name.sql", file.display()));
        let (description, file) = (description.replace('_', " "), file.to_str().expect("cargo takes UTF-8 paths only"));
        writeln!(list, "    ({version}, {description:?}, include_str!({file:?})),").expect("a string grows");
    }
    Ok(list + "];\n")
}
