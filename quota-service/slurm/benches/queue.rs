//! `squeue --json` of 50,000 jobs, read and counted as the program does, and read whole as JSON values beside it.
//!
//! Each of the two runs in a process of its own, so that memory of the other does not count, and reads the same file. Prints, and
//! asserts nothing. `HEADROOM_BENCH_JOBS` changes its size.

use slurm::config::Config;
use slurm::view::{Reading, View};
use slurm_records::Accounts;
use slurm_records::nodes::Nodes;
use slurm_records::queue::Queue;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use vocab::UnixSeconds;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const NOW: i64 = 1_795_600_000;

/// A record as Slurm 24.11 writes it, with as many bytes: fields that are not read stand in one text.
fn record(id: usize, filler: &str) -> String {
    let number = |of: i64| format!(r#"{{"set":true,"infinite":false,"number":{of}}}"#);
    let (state, allocated) = match id % 3 {
        0 => (r#"["PENDING"]"#, ""),
        _ => (r#"["RUNNING"]"#, "cpu=8,mem=64G,node=1,billing=8,gres/gpu=2,gres/gpu:a100=2"),
    };
    let (qos, account) = (["normal", "spot1h", "spot4h"][id / 3 % 3], id % 97);
    format!(
        r#"{{"account":"account-{account}","command":"{filler}","job_id":{id},"qos":"{qos}","partition":"gpu","job_state":{state},
        "state_reason":"None","array_job_id":{},"array_task_id":{},"array_task_string":"","array_max_tasks":{},"het_job_id":{},
        "submit_time":{},"eligible_time":{},"start_time":{},"end_time":{},"preempt_time":{},"restart_cnt":0,
        "tres_req_str":"cpu=8,mem=64G,node=1,billing=8,gres/gpu=2,gres/gpu:a100=2","tres_alloc_str":"{allocated}","nodes":"n{}"}}"#,
        number(0),
        r#"{"set":false,"infinite":false,"number":0}"#,
        number(0),
        number(0),
        number(NOW - 9_000),
        number(NOW - 9_000),
        number(NOW - 8_000),
        number(NOW + 9_000),
        number(0),
        id % 5_000
    )
}

/// Bytes of a record that Slurm 24.11.5 printed: 295,172 of fifteen jobs.
const RECORD_BYTES: usize = 19_678;

fn write(path: &Path, jobs: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let filler = "x".repeat(RECORD_BYTES.saturating_sub(record(1, "").len()));
    write!(file, "{{\"jobs\":[")?;
    for id in 1..=jobs {
        write!(file, "{}{}", if id > 1 { "," } else { "" }, record(id, &filler))?;
    }
    write!(file, "],\"meta\":{{\"plugin\":{{\"data_parser\":\"data_parser/v0.0.42\"}}}},\"errors\":[]}}")?;
    Ok(file.flush()?)
}

fn nodes() -> Result<Nodes> {
    let node = |number: usize| {
        format!(
            r#"{{"name":"n{number}","state":["MIXED"],"partitions":["gpu"],"tres":"gres/gpu=16,gres/gpu:a100=16","tres_used":""}}"#
        )
    };
    let list: Vec<String> = (0..5_000).map(node).collect();
    let text = format!(r#"{{"nodes":[{}],"meta":{{"plugin":{{"data_parser":"v0.0.42"}}}}}}"#, list.join(","));
    Ok(Nodes::read("nodes", text.as_bytes())?.0)
}

/// The most memory that this process had, in MiB.
fn peak_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).ok_or("no such field")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1_024.0)
}

fn ours(path: &Path) -> Result<usize> {
    let (queue, _) = Queue::read("squeue", BufReader::with_capacity(1 << 16, File::open(path)?))?;
    let config = Config { spot_qos: "spot1h=1,spot4h=4".parse()?, ..Config::default() };
    let view = View::of(&queue, &nodes()?, &Reading::of(&config, Accounts::default()), UnixSeconds::new(NOW))?;
    Ok(view.jobs)
}

fn peer(path: &Path) -> Result<usize> {
    let value: serde_json::Value = serde_json::from_reader(BufReader::with_capacity(1 << 16, File::open(path)?))?;
    Ok(value["jobs"].as_array().map_or(0, Vec::len))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, which, path, ..] = arguments.as_slice()
        && (which == "ours" || which == "values")
    {
        let start = Instant::now();
        let jobs = if which == "ours" { ours(Path::new(path))? } else { peer(Path::new(path))? };
        println!("{which}: {jobs} jobs, {:.2} s, {:.0} MiB at most", start.elapsed().as_secs_f64(), peak_mib()?);
        return Ok(());
    }
    let jobs = std::env::var("HEADROOM_BENCH_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(50_000);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("squeue.json");
    write(&path, jobs)?;
    println!("{jobs} jobs, {:.0} MiB of JSON", std::fs::metadata(&path)?.len() as f64 / 1_048_576.0);
    for which in ["ours", "values"] {
        let ran = Command::new(std::env::current_exe()?).arg(which).arg(&path).status()?;
        if !ran.success() {
            return Err(format!("{which}: {ran}").into());
        }
    }
    Ok(())
}
