//! Backups beside other files, and at the same time as others.

use super::*;
use std::fs;
use std::path::Path;
use tests::{Ran, fresh_database, on_both_databases, program};

on_both_databases![
    a_backup_leaves_files_of_similar_names_alone,
    backups_at_once_hold_their_own_database_and_replace_no_file,
];

fn saved(database: &TestDatabase, file: &Path) -> Ran {
    program("quota-service", &["database", "backup", file.to_str().unwrap(), "--database", &database.url])
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

async fn a_backup_leaves_files_of_similar_names_alone(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // The journal is one of a killed backup, as earlier programs left it.
    let others = ["saved.unfinished", "saved.unfinished-journal"];
    let _ = others.map(|name| fs::write(path(name), "notes").unwrap());
    for name in ["saved.one", "saved.two"] {
        let ran = saved(&database, &path(name));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(names(folder.path()), ["saved.one", "saved.two", "saved.unfinished", "saved.unfinished-journal"]);
    assert_eq!(others.map(|name| fs::read_to_string(path(name)).unwrap()), ["notes"; 2]);
}

/// Rows of usage in a backup.
async fn rows_of(backup: &Path, backend: tests::Backend) -> Vec<i64> {
    let empty = fresh_database(backend).await;
    let file = backup.to_str().unwrap();
    let _ = program("quota-service", &["database", "restore", file, "--database", &empty.url]).ok();
    empty.numbers("SELECT count(*) FROM usage").await
}

async fn backups_at_once_hold_their_own_database_and_replace_no_file(database: TestDatabase) {
    drop(with_usage(&database, 500).await);
    let other = fresh_database(database.backend).await;
    drop(other.store().await);
    let rows = database.numbers("SELECT count(*) FROM usage").await;
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let at_once = |names: [&str; 2]| {
            std::thread::scope(|scope| {
                let first = scope.spawn(|| saved(&database, &path(names[0])));
                let second = scope.spawn(|| saved(&other, &path(names[1])));
                [first.join().unwrap(), second.join().unwrap()]
            })
        };
        let ran = at_once(["nightly.earth", "nightly.mars"]);
        assert!(ran.iter().all(|ran| ran.code == 0), "{ran:?}");
        assert_eq!(rows_of(&path("nightly.earth"), database.backend).await, rows);
        assert_eq!(rows_of(&path("nightly.mars"), database.backend).await, [0]);
        let [first, second] = at_once(["same", "same"]);
        let (refused, expected) = if first.code == 0 { (&second, rows.clone()) } else { (&first, vec![0]) };
        assert_eq!(first.code + second.code, 2, "{first:?} {second:?}");
        assert!(refused.stderr.contains("same is there already, and was not changed"), "{refused:?}");
        assert_eq!(rows_of(&path("same"), database.backend).await, expected);
        assert_eq!(names(folder.path()), ["nightly.earth", "nightly.mars", "same"]);
    }
}
