//! The command line of elastic jobs.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:\n  \
    simulate elastic --jobs trace_job_Philly_MIX1.csv\n  \
    simulate elastic --jobs trace_job_Philly_MIX1.csv --gpus 320,640,960 --policies cornucopia,srtf,srtf-elastic --json\n  \
    simulate elastic --jobs trace_job_Philly_MIX1.csv --policies cornucopia --mislabelled 0.05 --non-elastic 0.1 --seed 7\n\n\
    Policies: cornucopia; srtf (knows how long jobs take), srtf-elastic; tiresias (2D-LAS); elasticflow (without deadlines);\n\
    chronus (leases of 20 and 5 minutes; knows how long jobs take, and their deadlines: expect_time_list, in minutes after\n\
    the submission, of jobs that are not best effort).\n\
    Jobs hold GPUs by number: nothing is placed on nodes."
)]
pub struct Elastic {
    #[command(subcommand)]
    pub command: Option<ElasticCommand>,
    #[command(flatten)]
    pub run: Option<Run>,
}

#[derive(Debug, Subcommand)]
pub enum ElasticCommand {
    /// Write which jobs are interactive, by a rule that the file states
    #[command(after_long_help = "Examples:\n  \
        simulate elastic labels --jobs trace_job_Philly_MIX1.csv --out labels.csv\n  \
        simulate elastic labels --jobs trace_job_Philly_MIX1.csv --seed 7 --out labels.csv --json")]
    Labels(Labels),
    /// Write how fast models are by GPUs, with where that comes from
    #[command(after_long_help = "Examples:\n  \
        simulate elastic profiles --out profiles.csv\n  \
        simulate elastic profiles --out profiles.csv --json")]
    Profiles(Profiles),
}

#[derive(Debug, Args)]
pub struct Labels {
    /// The job list of Philly as published with Chronus: job_id,user,num_gpu,submit_time,model_name,duration,best_effort,…
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// File for the labels
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub struct Profiles {
    /// File for the speeds
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// A share of 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "write a share of 0 to 1, such as 0.05".to_owned())
}

#[derive(Debug, Args)]
pub struct Run {
    /// The job list of Philly as published with Chronus: job_id,user,num_gpu,submit_time,model_name,duration,best_effort,…
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// Sizes of the cluster
    #[arg(long, value_name = "GPUS,…", value_delimiter = ',', default_value = "320,640,960",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub gpus: Vec<u32>,
    /// By their names
    #[arg(
        long,
        value_name = "POLICY,…",
        value_delimiter = ',',
        default_value = "cornucopia,srtf,srtf-elastic,tiresias,elasticflow,chronus"
    )]
    pub policies: Vec<String>,
    /// Output of `simulate elastic labels`, or labels of your own; without it they are made by the same rule
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Output of `simulate elastic profiles`, or measurements of your own; without it the same profiles
    #[arg(long, value_name = "FILE")]
    pub profiles: Option<PathBuf>,
    /// Share of the batch jobs that are called interactive
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, allow_negative_numbers = true)]
    pub mislabelled: f64,
    /// Share of the jobs of 2 to 4, 5 to 8 and more than 8 GPUs that run on their request alone
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, allow_negative_numbers = true)]
    pub non_elastic: f64,
    /// Profiles are not known: each job learns its own by ramp-up, 2.45 s on each number of GPUs
    #[arg(long)]
    pub ramp_up: bool,
    /// Seconds for which a job stands still when its GPUs change after its start
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=86_400))]
    pub resize_s: i64,
    /// Folder for elastic.csv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Leave out rows that cannot be read, and list them
    #[arg(long)]
    pub skip_bad_rows: bool,
}
