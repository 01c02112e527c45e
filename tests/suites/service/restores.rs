//! Restores that cannot end: the backup is damaged, or the program was killed.

use super::*;
use std::fs;
use std::path::Path;
use tests::{Ran, fresh_database, on_both_databases, program};

on_both_databases![a_restore_of_a_cut_backup_is_refused_and_leaves_nothing_in_the_way_of_a_good_one];

fn restored(file: &Path, into: &TestDatabase) -> Ran {
    program("quota-service", &["database", "restore", file.to_str().unwrap(), "--database", &into.url])
}

/// Names of what lies in the folder of an SQLite database, apart from those that are listed.
fn others_beside(database: &TestDatabase, known: &[&str]) -> Vec<String> {
    let Some(file) = database.url.strip_prefix("sqlite://").map(Path::new) else { return Vec::new() };
    let of = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let found = fs::read_dir(file.parent().unwrap()).unwrap().map(of);
    found.filter(|name| !known.contains(&name.as_str())).collect()
}

async fn a_restore_of_a_cut_backup_is_refused_and_leaves_nothing_in_the_way_of_a_good_one(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let [whole, cut] = ["whole", "cut"].map(|name| folder.path().join(name));
    let file = whole.to_str().unwrap();
    let _ = program("quota-service", &["database", "backup", file, "--database", &database.url]).ok();
    let bytes = fs::read(&whole).unwrap();
    let empty = fresh_database(database.backend).await;
    for length in [bytes.len() / 2, bytes.len() / 8, 100] {
        fs::write(&cut, &bytes[..length]).unwrap();
        let ran = restored(&cut, &empty);
        assert!(ran.code == 3 && ran.stderr.contains("cut: the backup is damaged"), "{length} bytes: {ran:?}");
        assert_eq!(others_beside(&empty, &[]), [""; 0], "{length} bytes");
    }
    if let Some(path) = empty.url.strip_prefix("sqlite://") {
        // As a restore that is killed leaves them.
        for suffix in ["", "-journal", "-wal"] {
            fs::write(format!("{path}.unfinished{suffix}"), &bytes[..5_000]).unwrap();
        }
    }
    let ran = restored(&whole, &empty);
    assert_eq!(ran.code, 0, "{ran:?}");
    let name = empty.url.rsplit('/').next().unwrap();
    assert_eq!(others_beside(&empty, &[name]), [""; 0]);
    let usage = "SELECT count(*) FROM usage";
    assert_eq!(empty.numbers(usage).await, database.numbers(usage).await);
}
