//! Flags of `datasets ingest --format prometheus`.

use std::path::PathBuf;
use vocab::HourStart;

/// Flags of `--format prometheus`.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "With --format prometheus (--from, --until and --timeout with slurm, too)")]
pub struct SourceFlags {
    /// First hour [default: 35 days before --until, or the first hour of the source; for a file of slurm, the first from which
    /// no job is missing]
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub from: Option<HourStart>,
    /// End: hours before this one [default: the present hour, which is not over]
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub until: Option<HourStart>,
    /// Priority classes of HP pods, separated by commas, for the built-in query of kube-state-metrics
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hp_priority_classes: Vec<String>,
    /// Your own query: HP GPUs running and waiting, one series for each organization and GPU model
    #[arg(long, value_name = "PROMQL")]
    pub query: Option<String>,
    /// Query with any value whenever the source was scraped: hours with a value and without demand are at zero
    #[arg(long, value_name = "PROMQL")]
    pub presence_query: Option<String>,
    /// Query of GPUs for each GPU model, or none [default: the built-in query; none with --query]
    #[arg(long, value_name = "PROMQL")]
    pub capacity_query: Option<String>,
    /// Label of the organization; with the built-in query, the namespace or a label of it
    #[arg(long, value_name = "LABEL")]
    pub organization_label: Option<String>,
    /// Label of the GPU model; with the built-in query, one of kube_node_labels such as
    /// label_nvidia_com_gpu_product
    #[arg(long, value_name = "LABEL")]
    pub gpu_model_label: Option<String>,
    /// Seconds between samples; divides an hour [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub step: Option<u64>,
    /// Smallest share of the samples of an hour; an hour with fewer is missing [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    pub min_samples: Option<f64>,
    /// Largest share of missing hours; above it nothing is stored (exit code 3) [default: 0.2]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_missing: Option<f64>,
    /// File with a bearer token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Authority certificates (PEM) for an https URL [default: those that the machine trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Timeout of one answer [default: 30; for slurm 300]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
}

impl SourceFlags {
    /// The flags that were given and have no meaning for slurm.
    pub fn given_without_slurm(&self) -> Vec<&'static str> {
        self.given().into_iter().filter(|flag| !["--from", "--until", "--timeout"].contains(flag)).collect()
    }

    /// The flags that were given.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--from", self.from.is_some()),
            ("--until", self.until.is_some()),
            ("--hp-priority-classes", !self.hp_priority_classes.is_empty()),
            ("--query", self.query.is_some()),
            ("--presence-query", self.presence_query.is_some()),
            ("--capacity-query", self.capacity_query.is_some()),
            ("--organization-label", self.organization_label.is_some()),
            ("--gpu-model-label", self.gpu_model_label.is_some()),
            ("--step", self.step.is_some()),
            ("--min-samples", self.min_samples.is_some()),
            ("--max-missing", self.max_missing.is_some()),
            ("--token-file", self.token_file.is_some()),
            ("--ca-file", self.ca_file.is_some()),
            ("--timeout", self.timeout.is_some()),
        ];
        all.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is not a share from 0 to 1"))
}
