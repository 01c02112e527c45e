//! Synthetic clusters: through the programs, and their constants against the published tables.

use datasets::synthetic::gfs::published::{self, MODELS, Sum};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;
use tests::{program, public_data};

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn generate(folder: &TempDir, more: &[&str]) -> Vec<Vec<u8>> {
    let out = folder.path().to_str().unwrap();
    let _ = program("datasets", &[&["generate", "--out", out], more].concat()).ok();
    let files = ["node_info_df.csv", "job_info_df.csv", "usage.csv"];
    files.iter().map(|file| std::fs::read(folder.path().join(file)).unwrap()).collect()
}

#[test]
fn generated_usage_is_the_sum_of_its_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let files = generate(&folder, &["--preset", "gfs", "--days", "3", "--start", "2025-01-01", "--seed", "4"]);
    let header = b"job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n";
    assert!(files[1].starts_with(header));
    let database = format!("sqlite://{}", path(&folder, "headroom.db"));
    let (jobs, nodes) = (path(&folder, "job_info_df.csv"), path(&folder, "node_info_df.csv"));
    let of_jobs = ["ingest", "--format", "gfs-jobs", &jobs, "--nodes", &nodes, "--epoch", "2025-01-01T00:00:00+08:00"];
    let ingested =
        program("datasets", &[&of_jobs[..], &["--cluster", "gfs", "--database", &database, "--json"]].concat());
    assert_eq!(ingested.json()["capacity_rows"], 6);
    let exported = path(&folder, "exported.csv");
    let _ = program("datasets", &["export", "--out", &exported, "--database", &database]).ok();
    assert!(std::fs::read(exported).unwrap() == files[2], "the exported usage is not that of usage.csv");
}

#[test]
fn a_file_in_place_of_the_folder_is_wrong_usage() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ran = program("datasets", &["generate", "--out", file.path().to_str().unwrap(), "--days", "1"]);
    assert!(ran.code == 2 && ran.stderr.contains("a file has this name; name a folder"), "{ran:?}");
}

#[test]
fn the_same_seed_gives_the_same_files_and_another_one_others() {
    let [a, b, c] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let of = |folder, seed| generate(folder, &["--preset", "gfs-a100", "--days", "2", "--seed", seed]);
    let (first, again, other) = (of(&a, "7"), of(&b, "7"), of(&c, "8"));
    assert!(first == again, "two runs of one seed differ");
    assert!(first[0] == other[0], "nodes do not depend on the seed");
    assert!(first[1] != other[1] && first[2] != other[2]);
}

#[test]
fn the_check_prints_published_beside_generated_and_refuses_other_presets() {
    let check = |more: &[&str]| program("datasets", &[&["generate", "--check"], more].concat());
    let made = check(&["--preset", "gfs-a100", "--seed", "1", "--json"]).json();
    let rows = made["check"].as_array().unwrap();
    let gang = rows.iter().find(|row| row["marginal"] == "gang" && row["category"] == "HP").unwrap();
    assert!((gang["published"].as_f64().unwrap() - 0.0866 * 0.8386).abs() < 1e-5, "{gang}");
    assert!(gang["ok"].as_bool().unwrap() && gang["tolerance"].as_f64().unwrap() < 0.006, "{gang}");
    for (refused, why) in [
        (vec!["--preset", "small"], "needs a calibrated preset"),
        (vec!["--preset", "gfs", "--days", "27"], "needs --days 28 or more"),
        (vec!["--preset", "gfs", "--organizations", "12"], "needs all 84 organizations"),
    ] {
        let ran = check(&refused);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert_eq!(program("datasets", &["generate", "--preset", "gfs"]).code, 2, "neither --out nor --check");
}

/// The rows of a published table, by their first cell.
fn table(folder: &Path, name: &str) -> BTreeMap<String, Vec<f64>> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let row = |line: &str| {
        let (first, rest) = line.split_once(',').unwrap();
        (first.to_owned(), rest.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
    };
    text.lines().skip(1).map(row).collect()
}

/// Jobs and GPU-seconds stand in these cells after the name.
fn assert_sums(sums: &[Sum<'_>], table: &BTreeMap<String, Vec<f64>>, cells: [usize; 2]) {
    assert_eq!(sums.len(), table.len());
    for sum in sums {
        let row = &table[sum.name];
        assert_eq!([sum.jobs, sum.gpu_seconds], cells.map(|cell| row[cell]), "{}", sum.name);
    }
}

#[test]
fn the_constants_of_the_generator_are_those_published() {
    let name = "the_constants_of_the_generator_are_those_published";
    let Some(folder) = public_data(name, "alibaba-spot-gpu/marginals") else { return };
    let table = |name: &str| table(&folder, name);
    assert_sums(&published::DURATIONS, &table("bucket_duration.csv"), [0, 2]);
    assert_sums(&published::GPUS, &table("bucket_gpu_demand.csv"), [0, 2]);
    assert_sums(&published::WORKERS, &table("bucket_worker_num.csv"), [0, 2]);
    assert_sums(&published::CLASSES, &table("job_type_summary.csv"), [0, 1]);
    let models = table("demand_by_model.csv");
    let fleets = table("fleet_by_model.csv");
    for (index, model) in MODELS.iter().enumerate() {
        assert_eq!(models[model.name][..3], [model.jobs, model.gpus, model.gpu_seconds]);
        let shapes = || published::FLEET.iter().filter(|shape| shape.model == index);
        let nodes: u32 = shapes().map(|shape| shape.nodes).sum();
        let gpus: u32 = shapes().map(|shape| shape.nodes * shape.gpus).sum();
        assert_eq!(fleets[model.name][..2], [f64::from(nodes), f64::from(gpus)]);
    }
    let (organizations, mix) = (table("org_by_gpu_seconds.csv"), table("org_model_mix_share.csv"));
    let models = [0, 1, 5, 3, 4, 2].map(|column| move |row: &Vec<f64>| row[column]);
    for tenant in published::tenants() {
        let (row, mix) = (&organizations[&tenant.id.to_string()], &mix[&tenant.id.to_string()]);
        assert_eq!(row[..], [tenant.jobs, tenant.gpu_seconds, tenant.gpus, tenant.median_duration_s]);
        assert_eq!(models.map(|model| model(mix)), tenant.mix, "{}", tenant.id);
    }
    for (workers, jobs) in published::workers() {
        assert_eq!(table("worker_count_distribution.csv")[&workers.to_string()], [jobs]);
    }
}

#[test]
fn the_times_of_the_generator_are_those_published() {
    let name = "the_times_of_the_generator_are_those_published";
    let Some(folder) = public_data(name, "alibaba-spot-gpu/marginals") else { return };
    for (hour, row) in table(&folder, "hour_of_day_patterns.csv") {
        let hour: usize = hour.parse().unwrap();
        assert_eq!(row[..2], [published::HOURS[hour], published::GPU_SECONDS_BY_HOUR[hour]]);
    }
    for (quantiles, file, digit) in [
        (published::DURATION_QUANTILES, "duration_quantiles.csv", 0.05),
        (published::GAP_QUANTILES, "inter_arrival_quantiles.csv", 0.0),
    ] {
        for (share, row) in table(&folder, file) {
            let constant = quantiles.iter().find(|(known, _)| known.to_string() == share).unwrap().1;
            assert!((row[0] - constant).abs() <= digit, "{share}: {constant}");
        }
    }
    // Day 0 is a Friday, and holds what was running before; the last one is half an hour long.
    let days = table(&folder, "daily_summary.csv");
    let jobs: Vec<f64> = (1..184).map(|day| days[&day.to_string()][0]).collect();
    let median = |mut jobs: Vec<f64>| {
        jobs.sort_by(f64::total_cmp);
        f64::midpoint(jobs[(jobs.len() - 1) / 2], jobs[jobs.len() / 2])
    };
    let of = |wanted: &dyn Fn(usize) -> bool, days: std::ops::Range<usize>| {
        median(days.filter(|day| wanted((day + 5) % 7)).map(|day| jobs[day]).collect())
    };
    for (weekday, jobs) in published::JOBS_BY_WEEKDAY.iter().enumerate() {
        assert_eq!(of(&|day| day == weekday, 0..183), *jobs);
    }
    let windows = || (0..=183 - 35).map(|first| first..first + 35);
    let weekends = windows().map(|days| of(&|day| day >= 5, days.clone()) / of(&|day| day < 5, days));
    let variations = windows().map(|days| {
        let mean = jobs[days.clone()].iter().sum::<f64>() / 35.0;
        (jobs[days].iter().map(|jobs| (jobs - mean).powi(2)).sum::<f64>() / 35.0).sqrt() / mean
    });
    let range = |figures: Vec<f64>| figures.iter().fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    for ((least, most), constant) in
        [(range(weekends.collect()), published::WEEKEND), (range(variations.collect()), published::DAILY_VARIATION)]
    {
        assert!((least - constant.0).abs() < 6e-4 && (most - constant.1).abs() < 6e-4, "{least} {most}");
    }
}

#[test]
fn the_fleet_the_long_jobs_and_the_load_of_the_generator_are_those_published() {
    let name = "the_fleet_the_long_jobs_and_the_load_of_the_generator_are_those_published";
    let Some(folder) = public_data(name, "alibaba-spot-gpu") else { return };
    let lines = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut shapes: BTreeMap<String, u32> = BTreeMap::new();
    for node in lines("node_info_df.csv").lines().skip(1) {
        *shapes.entry(node.rsplit_once(',').unwrap().0.to_owned()).or_default() += 1;
    }
    assert_eq!(shapes.len(), published::FLEET.len());
    for shape in published::FLEET {
        assert_eq!(shapes[&format!("{},{},{}", MODELS[shape.model].name, shape.gpus, shape.vcpus)], shape.nodes);
    }
    let long = lines("marginals/long_job_slices_by_type.csv");
    for (line, sum) in [("False,HP", 0), ("True,HP", 1), ("False,Spot", 2), ("True,Spot", 3)] {
        let sum = published::CLASSES_BY_LENGTH[sum];
        let wanted = format!("{line},{},{}", sum.jobs, sum.gpu_seconds);
        assert!(long.lines().any(|known| known == wanted), "{wanted}");
    }
    let hourly = lines("hourly_concurrency_by_model.csv");
    let column = |name: &str| hourly.lines().next().unwrap().split(',').position(|known| known == name).unwrap();
    for (index, model) in MODELS.iter().enumerate() {
        let gpus = published::FLEET.iter().filter(|shape| shape.model == index).map(|shape| shape.gpus * shape.nodes);
        let gpus = f64::from(gpus.sum::<u32>());
        let demand = hourly.lines().skip(1).map(|line| line.split(',').nth(column(model.name)).unwrap());
        let demand: Vec<f64> = demand.map(|cell| cell.parse().unwrap()).collect();
        let load = [demand.iter().sum::<f64>() / demand.len() as f64, demand.iter().copied().fold(0.0, f64::max)];
        for (load, constant) in load.iter().zip(published::LOAD[index]) {
            assert!((load / gpus - constant).abs() < 0.006, "{}: {}", model.name, load / gpus);
        }
    }
}
