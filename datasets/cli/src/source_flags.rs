//! Flags of `datasets ingest --format prometheus`.

use std::path::PathBuf;
use vocab::HourStart;

/// Flags of `--format prometheus`.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "With --format prometheus")]
pub struct SourceFlags {
    /// From this hour on; 35 days before --until, or from when the source begins, if not given
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub from: Option<HourStart>,
    /// Hours before this one; the present hour, which is not over, if not given
    #[arg(long, value_name = "TIME", value_parser = command_line::hour)]
    pub until: Option<HourStart>,
    /// Priority classes of pods that are HP, with commas between, for the query of kube-state-metrics that is built in
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hp_priority_classes: Vec<String>,
    /// A query in its place: HP GPUs running and waiting, a series for each organization and GPU model
    #[arg(long, value_name = "PROMQL")]
    pub query: Option<String>,
    /// A query that answers anything whenever the source was scraped: where it does and the demand does not, that is zero
    #[arg(long, value_name = "PROMQL")]
    pub presence_query: Option<String>,
    /// GPUs for each GPU model: a query, or none; the one that is built in, but for a query of your own, if not given
    #[arg(long, value_name = "PROMQL")]
    pub capacity_query: Option<String>,
    /// The label that names the organization; with the query that is built in the namespace, or a label of it
    #[arg(long, value_name = "LABEL")]
    pub organization_label: Option<String>,
    /// The label that names the GPU model; with the query that is built in one of kube_node_labels, such as
    /// label_nvidia_com_gpu_product
    #[arg(long, value_name = "LABEL")]
    pub gpu_model_label: Option<String>,
    /// Between two samples; divides an hour [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub step: Option<u64>,
    /// The least share of the samples of an hour; one with fewer is missing [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    pub min_samples: Option<f64>,
    /// The largest share of missing hours; with more, nothing is stored (exit code 3) [default: 0.2]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_missing: Option<f64>,
    /// File with a bearer token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of the authority of an https URL; those that the machine trusts if not given
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// How long one answer may take [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
}

impl SourceFlags {
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
    share.ok_or_else(|| format!("{text:?} is no share from 0 to 1"))
}
