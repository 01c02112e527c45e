//! The command line of `simulate eta`.

use crate::args::Trace;
use clap::Args;
use std::path::PathBuf;
use vocab::HorizonHours;

#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    simulate eta --nodes node_info_df.csv --jobs job_info_df.csv --predictor jobs\n  \
    simulate eta --nodes node_info_df.csv --jobs job_info_df.csv --predictor live --every 25 --scored-after 168h --out asked --json\n\n\
    One in so many of the tasks that wait when they are submitted is asked about at that moment: when will it start? The answer is held\n\
    against its start. Beside it: plans by requested times, as squeue --start makes them (a request is twice the duration, rounded up\n\
    to 1, 2, 4, 8, 12, 24, 48, 96, 168 or 336 h; plan-exact knows the duration itself), the mean wait of the class over a week, and\n\
    the quantiles of its last 300 waits. Waits beyond 72 h count as 72 h, for all of them. Questions of the last 72 h of submissions are\n\
    not scored: after the end of the list nothing comes, and all that wait start.")]
pub struct Eta {
    #[command(flatten)]
    pub trace: Trace,
    /// Rules by which tasks are placed: a name, or a file with their parts
    #[arg(long, value_name = "POLICY|FILE", default_value = "gfs")]
    pub policy: String,
    /// Ask about one in so many of the tasks that wait
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub every: u32,
    /// Answers of the first hours teach, and are not scored
    #[arg(long, value_name = "HOURS", default_value = "24h", value_parser = command_line::horizon)]
    pub scored_after: HorizonHours,
    /// Folder for asked.csv: each question with its answers
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
