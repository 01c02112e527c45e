//! Usage out of Parquet files, on disk and on object storage.

use serde_json::Value;
use std::time::{Duration, Instant};
use tests::storage::{BUCKET, ObjectStorage, Trouble};
use tests::{Backend, Ran, TestDatabase, fresh_database, on_both_databases, parquet_of_csv, program, program_with};

on_both_databases![the_same_history_from_csv_from_parquet_and_from_object_storage_trains_the_same_bytes];

/// Usage of three organizations over 14 days, as text.
fn made_up() -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &["generate", "--days", "14", "--organizations", "3", "--out", out]).ok();
    std::fs::read_to_string(folder.path().join("usage.csv")).unwrap()
}

/// A storage with the usage in two objects, and a third one that is none.
fn filled(csv: &str) -> ObjectStorage {
    let storage = ObjectStorage::start();
    let (header, rows) = csv.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    for (name, half) in ["earth/1.parquet", "earth/2.parquet"].into_iter().zip(rows.chunks(rows.len().div_ceil(2))) {
        storage.put(name, parquet_of_csv(&format!("{header}\n{}", half.join("\n"))));
    }
    storage.put("earth/_SUCCESS", Vec::new());
    storage
}

fn asked(storage: &ObjectStorage, program: &str, arguments: &[&str], other: &[(&str, &str)]) -> Ran {
    let variables = storage.variables();
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str())).chain(other.iter().copied());
    program_with(program, arguments, &variables.collect::<Vec<_>>())
}

async fn bytes_of(database: &TestDatabase, trained: &Value) -> Vec<u8> {
    let run = trained[0]["run_id"].as_str().unwrap().parse().unwrap();
    database.store().await.checkpoint(run).await.unwrap()
}

async fn the_same_history_from_csv_from_parquet_and_from_object_storage_trains_the_same_bytes(database: TestDatabase) {
    let (csv, folder) = (made_up(), tempfile::tempdir().unwrap());
    let storage = filled(&csv);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (text, file, lake) = (path("usage.csv"), path("usage.parquet"), format!("s3://{BUCKET}/earth/"));
    std::fs::write(&text, &csv).unwrap();
    std::fs::write(&file, parquet_of_csv(&csv)).unwrap();
    let of_lake = fresh_database(Backend::Sqlite).await;
    let to = |database: &TestDatabase| ["--database".to_owned(), database.url.clone()];
    let (first, second) = (to(&database), to(&of_lake));
    let (first, second) = (first.each_ref().map(String::as_str), second.each_ref().map(String::as_str));
    let _ = program("datasets", &[&["ingest", "--format", "usage", &text], &first[..]].concat()).ok();
    let ingest = ["ingest", "--format", "parquet", &lake, "--json"];
    let summary = asked(&storage, "datasets", &[&ingest, &second[..]].concat(), &[]).json();
    assert_eq!(summary["inserted"], csv.lines().count() - 1, "{summary}");
    let train = ["--horizon", "2h", "--lookback", "168h", "--json"];
    let trained = program("train", &[&train[..], &first].concat()).json();
    let bytes = bytes_of(&database, &trained).await;
    let again = program("train", &[&train[..], &second].concat()).json();
    assert!(bytes_of(&of_lake, &again).await == bytes, "ingested from object storage");
    for source in [&file, &lake] {
        let from = ["--usage", source];
        let trained = asked(&storage, "train", &[&train[..], &from, &first].concat(), &[]).json();
        assert!(bytes_of(&database, &trained).await == bytes, "{source}");
    }
}

/// Ingests a location of the storage into a database that is not there yet.
fn ingested(storage: &ObjectStorage, location: &str, other: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
    asked(storage, "datasets", &["ingest", "--format", "parquet", location, "--database", &url], other)
}

#[test]
fn a_refusal_of_object_storage_says_what_to_do() {
    let storage = filled(&made_up());
    let lake = format!("s3://{BUCKET}/earth/");
    let one = format!("s3://{BUCKET}/earth/1.parquet");
    let (secret, key) = (("AWS_SECRET_ACCESS_KEY", "another"), ("AWS_ACCESS_KEY_ID", "another"));
    for (location, variables, code, why) in [
        ("s3://hystory/earth/", &[][..], 3, "there is no bucket hystory; check its name, AWS_ENDPOINT and AWS_REGION"),
        ("s3://hystory/earth/1.parquet", &[], 3, "there is no bucket hystory; check its name"),
        (&lake, &[key], 3, "the storage does not know the key; check AWS_ACCESS_KEY_ID"),
        (&lake, &[secret], 3, "the storage refuses the signature; check AWS_SECRET_ACCESS_KEY"),
        (&one, &[secret], 3, "the storage refuses access; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"),
        (&lake, &[("AWS_TIMEOUT", "soon")], 3, "invalid AWS_TIMEOUT \"soon\": expected a time such as 30s or 2m"),
        ("s3://", &[], 3, "invalid location \"s3://\""),
        ("s3://history/mars/", &[], 3, "s3://history/mars: no file whose name ends in .parquet"),
        ("s3://history/earth/3.parquet", &[], 3, "s3://history/earth/3.parquet: no such file or bucket"),
    ] {
        let ran = ingested(&storage, location, variables);
        assert!(ran.code == code && ran.stderr.contains(why), "{location} {variables:?}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn object_storage_that_falls_silent_is_given_up_and_an_answer_that_was_cut_is_asked_for_again() {
    let storage = filled(&made_up());
    let lake = format!("s3://{BUCKET}/earth/");
    let soon = &[("AWS_TIMEOUT", "400ms")][..];
    storage.has(Trouble::Cuts(2));
    let _ = ingested(&storage, &lake, &[]).ok();
    for (trouble, why) in [
        (Trouble::Hangs, "nothing came for 0.4 s (AWS_TIMEOUT)"),
        (Trouble::Stalls, "nothing came for 0.4 s (AWS_TIMEOUT)"),
        (Trouble::Cuts(usize::MAX), "earth/1.parquet: the storage does not answer: "),
    ] {
        storage.has(trouble);
        let begun = Instant::now();
        let ran = ingested(&storage, &lake, soon);
        assert!(ran.code == 5 && ran.stderr.contains(why), "{trouble:?}: {} {}", ran.code, ran.stderr);
        assert!(begun.elapsed() < Duration::from_mins(1), "{trouble:?}: {:?}", begun.elapsed());
    }
    let gone = ingested(&storage, &lake, &[("AWS_ENDPOINT", "http://127.0.0.1:9"), soon[0]]);
    assert!(gone.code == 5 && gone.stderr.contains("the storage does not answer"), "{} {}", gone.code, gone.stderr);
}

#[test]
fn amounts_above_what_may_be_stated_are_refused_in_a_parquet_file_and_in_a_flag() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "hour,cluster,gpu_model,organization,demand_gpus\n2026-01-05T00:00:00Z,earth,A100,vision,20000000\n";
    let file = folder.path().join("usage.parquet");
    std::fs::write(&file, parquet_of_csv(csv)).unwrap();
    let url = format!("sqlite://{}", folder.path().join("headroom.db").display());
    let ingest = ["ingest", "--format", "parquet", file.to_str().unwrap(), "--database", &url];
    for (more, code) in [(&[][..], 3), (&["--capacity", "20000000"], 2)] {
        let ran = program("datasets", &[&ingest[..], more].concat());
        assert!(ran.code == code && ran.stderr.contains("2e7 GPUs exceeds the limit of 10000000 GPUs"), "{ran:?}");
    }
}
