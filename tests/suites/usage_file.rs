//! usage.csv in and out: what an export writes is what an ingest took, and what no later page could show is refused.

use tempfile::TempDir;
use tests::{Ran, parquet_of_csv, program};

const HEADER: &str = "hour,cluster,gpu_model,organization,demand_gpus\n";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let url = format!("sqlite://{}", self.0.path().join("headroom.db").display());
        program("datasets", &[arguments, &["--database", &url]].concat())
    }

    fn ingest(&self, rows: &str) -> Ran {
        let file = self.0.path().join("usage.csv");
        std::fs::write(&file, format!("{HEADER}{rows}")).unwrap();
        self.run(&["ingest", "--format", "usage", file.to_str().unwrap()])
    }
}

#[test]
fn an_export_has_the_hours_that_the_pools_own_peak_alone_has() {
    let place = Place::new();
    let rows = "2026-01-05T00:00:00Z,c,g,*,4\n2026-01-05T01:00:00Z,c,g,*,5\n2026-01-05T02:00:00Z,c,g,*,6\n\
                2026-01-05T01:00:00Z,c,g,o,3\n2026-01-05T00:00:00Z,c,onlystar,*,1\n2026-01-05T00:00:00Z,c2,onlystar,*,2\n";
    let _ = place.ingest(rows).ok();
    let exported = place.run(&["export", "--out", "-"]).ok().stdout;
    assert_eq!(exported, format!("{HEADER}{rows}"));
    let described = place.run(&["describe", "--json"]).json();
    let hours: Vec<_> = described.as_array().unwrap().iter().map(|one| one["hours"].as_u64()).collect();
    assert_eq!(hours, [Some(3), Some(1)], "{described}");
    assert_eq!(described[0]["recording_gap_hours"].as_array().unwrap().len(), 2, "{described}");
    assert_eq!(
        (&described[1]["pools"][0]["own_peak"], &described[1]["pools"][0]["organizations"]),
        (&true.into(), &0.into())
    );
}

#[test]
fn the_demand_of_a_pool_is_that_of_all_hours_where_one_organization_follows_another() {
    let place = Place::new();
    let row = |hour: u8, organization: &str, gpus: u8| format!("2026-01-05T0{hour}:00:00Z,c,g,{organization},{gpus}\n");
    let rows = [row(0, "team-a", 20), row(1, "team-a", 24), row(2, "team-b", 22), row(4, "team-b", 22)].concat();
    let _ = place.ingest(&rows).ok();
    let described = place.run(&["describe", "--json"]).json();
    let pool = &described[0]["pools"][0];
    assert_eq!((&pool["mean_demand_gpus"], &pool["peak_demand_gpus"]), (&22.0.into(), &24.0.into()), "{described}");
    // An hour that one of them lacks between others counts with its last row, as in a quota.
    let _ = place.ingest(&row(3, "team-a", 90)).ok();
    let described = place.run(&["describe"]).ok();
    assert!(described.stderr.contains("note: c:g: 2 rows are missing"), "{described:?}");
    let described = place.run(&["describe", "--json"]).json();
    assert_eq!(described[0]["pools"][0]["peak_demand_gpus"], 112.0, "{described}");
}

#[test]
fn a_compressed_file_is_named_so() {
    let place = Place::new();
    let file = place.0.path().join("usage.csv.gz");
    // gzip of nothing in particular: its magic bytes, and a quote as any compressed file has.
    std::fs::write(&file, b"\x1f\x8b\x08\x00\x00ab\"c,\n").unwrap();
    let ran = place.run(&["ingest", "--format", "usage", file.to_str().unwrap()]);
    assert!(ran.code == 3 && ran.stderr.contains("usage.csv.gz, row 1: compressed by gzip: decompress"), "{ran:?}");
}

#[test]
fn the_next_command_is_one_for_a_shell() {
    let place = Place::new();
    let printed = place.ingest("2026-01-05T00:00:00Z,cl uster/ö,g,o,4\n").ok().stdout;
    assert!(printed.contains("next: train --cluster 'cl uster/ö'\n"), "{printed}");
}

#[test]
fn the_end_of_an_hour_comes_out_as_it_went_in_and_has_a_column_where_it_is_known() {
    let place = Place::new();
    let rows = "2026-01-05T00:00:00Z,c,g,o,4\n";
    let _ = place.ingest(rows).ok();
    assert_eq!(place.run(&["export", "--out", "-"]).ok().stdout, format!("{HEADER}{rows}"));
    let header = HEADER.replace("demand_gpus", "demand_gpus,demand_at_end_gpus");
    let known = format!("{header}2026-01-05T00:00:00Z,c,g,o,4,1.5\n2026-01-05T01:00:00Z,c,g,o,5,\n");
    let file = place.0.path().join("ends.csv");
    std::fs::write(&file, &known).unwrap();
    let again = ["ingest", "--format", "usage", file.to_str().unwrap()];
    let _ = place.run(&again).ok();
    assert_eq!(place.run(&["export", "--out", "-"]).ok().stdout, known);
    let _ = place.ingest(rows).ok();
    assert_eq!(place.run(&["export", "--out", "-"]).ok().stdout, known, "it stays known");
}

#[test]
fn a_fraction_of_a_second_is_refused_as_it_was_written() {
    let place = Place::new();
    for hour in ["2026-01-05T00:00:00.999Z", "2026-01-05T01:00:00.000001+01:00"] {
        let ran = place.ingest(&format!("{hour},c,g,o,1\n"));
        assert!(ran.code == 3 && ran.stderr.contains(&format!("\"{hour}\" has a fraction of a second")), "{ran:?}");
    }
    let file = place.0.path().join("usage.parquet");
    std::fs::write(&file, parquet_of_csv(&format!("{HEADER}2026-01-05T00:00:00.001Z,c,g,o,1"))).unwrap();
    let ran = place.run(&["ingest", "--format", "parquet", file.to_str().unwrap()]);
    assert!(ran.code == 3 && ran.stderr.contains("\"2026-01-05T00:00:00.001Z\" has a fraction of a second"), "{ran:?}");
    let _ = place.ingest("2026-01-05T00:00:00.000Z,c,g,o,1\n").ok();
    let ran = place.run(&["export", "--out", "-", "--from", "2026-01-05T00:00:00.5Z"]);
    assert!(ran.code == 2 && ran.stderr.contains("2026-01-05T00:00:00.5Z has a fraction of a second"), "{ran:?}");
}

#[test]
fn the_name_that_statements_keep_for_idle_capacity_is_no_organization() {
    let ran = Place::new().ingest("2026-01-05T00:00:00Z,c,g,__idle__,1\n");
    let expected = "column organization: \"__idle__\" stands for idle capacity in statements: choose another name";
    assert!(ran.code == 3 && ran.stderr.contains(expected), "{ran:?}");
}

#[test]
fn quotes_that_are_open_or_stand_within_a_field_are_refused_with_their_row_and_store_nothing() {
    let (open, within) = ("close its quote", "a quote stands within a field: put quotes around the whole field");
    let row = |hour: u8, organization: &str| format!("2026-01-05T0{hour}:00:00Z,c,g,{organization},1");
    for (rows, place, expected) in [
        // With line ends of one carriage return, too, the rest of the file was one field.
        ([row(0, "a"), row(1, "\"b"), row(2, "c"), row(3, "d\"")].join("\r"), "row 3", open),
        (format!("{}\n2026-01-05T01:00:00Z,c,g,b,\"2", row(0, "a")), "row 3", open),
        ([row(0, "a"), row(1, "b\"x")].join("\n"), "row 3", within),
        ([row(0, "a"), row(1, "\"b\"x")].join("\n"), "row 3", within),
    ] {
        let place_of = Place::new();
        let ran = place_of.ingest(&rows);
        let expected = [format!("usage.csv, {place}: "), expected.to_owned()];
        assert!(ran.code == 3 && expected.iter().all(|part| ran.stderr.contains(part)), "{rows:?}: {ran:?}");
    }
    let place = Place::new();
    let nodes = place.0.path().join("nodes.csv");
    let header = "node_name,gpu_model,gpu_capacity_num,cpu_num";
    std::fs::write(&nodes, format!("{header},\"note\nn0,A10,8,64,x\"\nn1,A10,8,64,y\n")).unwrap();
    let jobs = place.0.path().join("jobs.csv");
    let columns = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type";
    std::fs::write(&jobs, format!("{columns}\nj,o,A10,8,8,1,0,7200,HP\n")).unwrap();
    let [jobs, nodes] = [&jobs, &nodes].map(|file| file.to_str().unwrap());
    let ran = place.run(&["ingest", "--format", "gfs-jobs", jobs, "--nodes", nodes, "--epoch", "2026-01-05T00:00:00Z"]);
    assert!(
        ran.code == 3 && ran.stderr.contains("nodes.csv, row 1: a field spans 2 lines: close its quote"),
        "{ran:?}"
    );
}

#[test]
fn hours_without_an_offset_are_in_the_stored_zone_of_their_cluster_and_not_of_the_files_name() {
    let place = Place::new();
    let naive = "2026-01-05T00:00:00,c,g,o,4\n2026-01-05T01:00:00,c,g,o,5\n";
    let first = place.0.path().join("first.csv");
    std::fs::write(&first, format!("{HEADER}{naive}")).unwrap();
    let ingest = |file: &str, more: &[&str]| {
        place.run(&[&["ingest", "--format", "usage", file, "--json"], more].concat()).json()
    };
    let _ = ingest(first.to_str().unwrap(), &["--time-zone", "Europe/Berlin"]);
    // A cluster of the file's name has another zone.
    let other = place.0.path().join("tokyo.csv");
    std::fs::write(&other, format!("{HEADER}2026-01-05T00:00:00,tokyo,g,o,1\n")).unwrap();
    let _ = ingest(other.to_str().unwrap(), &["--time-zone", "Asia/Tokyo"]);
    std::fs::write(&other, format!("{HEADER}{naive}2026-01-05T00:00:00,tokyo,g,o,1\n2026-01-05T00:00:00,new,g,o,1\n"))
        .unwrap();
    let again = ingest(other.to_str().unwrap(), &[]);
    assert_eq!((&again["inserted"], &again["unchanged"]), (&1.into(), &3.into()), "{again}");
    let zones: Vec<_> = again["clusters"].as_array().unwrap().iter().map(|one| one["time_zone"].as_str()).collect();
    assert_eq!(zones, [Some("Europe/Berlin"), Some("UTC"), Some("Asia/Tokyo")], "{again}");
}
