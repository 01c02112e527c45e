//! Settings of a source, as written and as checked.

use crate::promql::{Labels, NAMESPACE, Queries, is_label};
use crate::target::Target;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use vocab::{ClusterName, GpuModel, PoolId, SECONDS_PER_HOUR};

/// An invalid setting of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct BadSource {
    /// Key of the setting.
    pub key: &'static str,
    /// Fault and remedy.
    pub why: String,
}

fn bad<T>(key: &'static str, why: impl Into<String>) -> Result<T, BadSource> {
    Err(BadSource { key, why: why.into() })
}

/// A source as it is written in a file of sources, a table for each cluster; the command line has the same as flags.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceSettings {
    /// `http://HOST:PORT` or `https://HOST:PORT`, with the path of a proxy or a tenant.
    pub url: String,
    /// File with a bearer token; empty for none.
    pub token_file: PathBuf,
    /// Certificates (PEM) of the authority of an https URL; empty for those that the machine trusts.
    pub ca_file: PathBuf,
    /// Timeout of one answer.
    pub timeout_s: u64,
    /// Priority classes of pods that are HP, for the query that is built in.
    pub hp_priority_classes: Vec<String>,
    /// Your own query: HP GPUs running and waiting, one series for each organization and GPU model.
    pub query: String,
    /// A query that answers anything whenever the source was scraped; empty for the one that is built in, or for none where
    /// the demand has a query of its own.
    pub presence_query: String,
    /// GPUs for each GPU model: a query; empty for the one that is built in, or for none where the demand has a query of its
    /// own; `none` for none.
    pub capacity_query: String,
    /// Label of the organization.
    pub organization_label: String,
    /// The label that names the GPU model; empty where there is one model.
    pub gpu_model_label: String,
    /// The GPU model of series that name none.
    pub gpu_model: String,
    /// Seconds between two samples.
    pub step_s: u64,
    /// The least share of the samples of an hour: an hour with fewer is missing.
    pub min_samples: f64,
    /// First hour of a new source, in hours before the present.
    pub lookback_h: u64,
    /// For a new cluster.
    pub time_zone: String,
    /// For a new cluster.
    pub calendar: String,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            url: String::new(),
            token_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            timeout_s: 30,
            hp_priority_classes: Vec::new(),
            query: String::new(),
            presence_query: String::new(),
            capacity_query: String::new(),
            organization_label: NAMESPACE.to_owned(),
            gpu_model_label: String::new(),
            gpu_model: String::new(),
            step_s: 60,
            min_samples: 0.5,
            lookback_h: 35 * 24,
            time_zone: "UTC".to_owned(),
            calendar: "weekdays".to_owned(),
        }
    }
}

/// A source whose settings were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Cluster of the stored hours.
    pub cluster: ClusterName,
    /// Address of the server.
    pub target: Target,
    /// File with a bearer token, read before each request.
    pub token_file: Option<PathBuf>,
    /// Authority certificates (PEM).
    pub ca_file: Option<PathBuf>,
    /// Timeout of one answer.
    pub timeout: Duration,
    /// Queries and labels.
    pub queries: Queries,
    /// Divides an hour.
    pub step_s: u32,
    /// Smallest share of the samples of an hour.
    pub min_samples: f64,
    /// First hour of a new source, in hours before the present.
    pub lookback_hours: u32,
    /// IANA time zone of a new cluster.
    pub time_zone: String,
    /// Calendar of a new cluster.
    pub calendar: String,
}

impl Source {
    /// Whether the source measures a pool: all pools of its cluster, or its one GPU model.
    #[must_use]
    pub fn covers(&self, pool: &PoolId) -> bool {
        let labels = &self.queries.labels;
        pool.cluster == self.cluster
            && (labels.gpu_model.is_some() || labels.fixed_model.as_ref() == Some(&pool.gpu_model))
    }
}

impl SourceSettings {
    /// Checks them. Whether the server is there is not asked.
    ///
    /// # Errors
    /// One of them is of no use; the fault names it and says what to write.
    pub fn source(&self, cluster: ClusterName) -> Result<Source, BadSource> {
        let target = Target::parse(&self.url).map_err(|why| BadSource { key: "url", why })?;
        if !(1..=3_600).contains(&self.timeout_s) {
            return bad("timeout_s", format!("{} is not between 1 and 3600", self.timeout_s));
        }
        let step = i64::try_from(self.step_s).unwrap_or(0);
        if step < 1 || SECONDS_PER_HOUR % step != 0 {
            return bad("step_s", format!("{} s do not divide an hour: write 60, or 30, or 300", self.step_s));
        }
        if !(self.min_samples > 0.0 && self.min_samples <= 1.0) {
            return bad("min_samples", format!("{} is not a share above 0 and up to 1", self.min_samples));
        }
        if !(1..=24 * 3_660).contains(&self.lookback_h) {
            return bad("lookback_h", format!("{} is not between 1 and {} hours", self.lookback_h, 24 * 3_660));
        }
        let file = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        Ok(Source {
            cluster,
            target,
            token_file: file(&self.token_file),
            ca_file: file(&self.ca_file),
            timeout: Duration::from_secs(self.timeout_s),
            queries: self.queries()?,
            step_s: step as u32,
            min_samples: self.min_samples,
            lookback_hours: self.lookback_h as u32,
            time_zone: self.time_zone.clone(),
            calendar: self.calendar.clone(),
        })
    }

    fn queries(&self) -> Result<Queries, BadSource> {
        let labels = self.labels()?;
        let mut queries = match (self.query.trim(), self.hp_priority_classes.as_slice()) {
            ("", []) => {
                let why = "name the priority classes of HP pods, or write your own query (query, --query)";
                return bad("hp_priority_classes", why);
            }
            ("", classes) => {
                if classes.iter().any(|class| class.trim().is_empty()) {
                    return bad("hp_priority_classes", "empty name of a class: leave it out");
                }
                Queries::kube_state_metrics(classes, labels)
            }
            (_, [_, ..]) => {
                let why =
                    "it does not apply to your own query: put the classes into the query, or leave one of the two out";
                return bad("hp_priority_classes", why);
            }
            (query, []) => Queries { demand: query.to_owned(), presence: None, capacity: None, labels },
        };
        if !self.presence_query.trim().is_empty() {
            queries.presence = Some(self.presence_query.trim().to_owned());
        }
        match self.capacity_query.trim() {
            "" => {}
            "none" => queries.capacity = None,
            query => queries.capacity = Some(query.to_owned()),
        }
        Ok(queries)
    }

    fn labels(&self) -> Result<Labels, BadSource> {
        let no_label = |text: &str| format!("{text:?} is not the name of a label: use letters, digits and underscores");
        if !is_label(&self.organization_label) {
            return bad("organization_label", no_label(&self.organization_label));
        }
        let gpu_model = (!self.gpu_model_label.is_empty()).then(|| self.gpu_model_label.clone());
        if let Some(label) = gpu_model.as_deref().filter(|label| !is_label(label)) {
            return bad("gpu_model_label", no_label(label));
        }
        if gpu_model.as_deref() == Some(&self.organization_label) {
            return bad("gpu_model_label", "it is also the label of the organization: name another one");
        }
        let fixed = (!self.gpu_model.is_empty()).then(|| GpuModel::parse(&self.gpu_model)).transpose();
        let fixed_model = fixed.map_err(|fault| BadSource { key: "gpu_model", why: fault.to_string() })?;
        if gpu_model.is_none() && fixed_model.is_none() {
            let why = "name the GPU model of the cluster, or its label (gpu_model_label, --gpu-model-label)";
            return bad("gpu_model", why);
        }
        Ok(Labels { organization: self.organization_label.clone(), gpu_model, fixed_model })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> SourceSettings {
        SourceSettings {
            url: "http://prometheus:9090".to_owned(),
            hp_priority_classes: vec!["high".to_owned()],
            gpu_model: "A100".to_owned(),
            ..SourceSettings::default()
        }
    }

    fn source(settings: &SourceSettings) -> Result<Source, BadSource> {
        settings.source(ClusterName::parse("earth").unwrap())
    }

    #[test]
    fn the_least_that_is_written_is_a_url_the_classes_and_the_model() {
        let source = source(&good()).unwrap();
        assert_eq!((source.step_s, source.lookback_hours), (60, 840));
        assert!(source.queries.presence.is_some() && source.queries.capacity.is_some());
    }

    #[test]
    fn a_query_of_its_own_brings_along_no_other_one() {
        let own = SourceSettings { hp_priority_classes: Vec::new(), query: "demand".to_owned(), ..good() };
        let queries = source(&own).unwrap().queries;
        assert_eq!((queries.demand.as_str(), queries.presence, queries.capacity), ("demand", None, None));
        let all = SourceSettings { presence_query: "up".to_owned(), capacity_query: "gpus".to_owned(), ..own };
        let queries = source(&all).unwrap().queries;
        assert_eq!((queries.presence.as_deref(), queries.capacity.as_deref()), (Some("up"), Some("gpus")));
        let pool = |name: &str| PoolId::parse(name).unwrap();
        assert!(source(&good()).unwrap().covers(&pool("earth:A100")));
        assert!(
            !source(&good()).unwrap().covers(&pool("earth:H800"))
                && !source(&good()).unwrap().covers(&pool("mars:A100"))
        );
        let by_label = SourceSettings { gpu_model_label: "label_gpu".to_owned(), ..good() };
        assert!(source(&by_label).unwrap().covers(&pool("earth:H800")));
        let none = SourceSettings { capacity_query: "none".to_owned(), ..good() };
        assert_eq!(source(&none).unwrap().queries.capacity, None);
    }

    #[test]
    fn a_setting_of_no_use_is_named_with_what_to_write() {
        let with = |change: fn(&mut SourceSettings)| {
            let mut settings = good();
            change(&mut settings);
            source(&settings).unwrap_err().to_string()
        };
        for (refused, expected) in [
            (with(|one| one.url.clear()), "url: \"\" is not a URL"),
            (with(|one| one.step_s = 7), "step_s: 7 s do not divide an hour"),
            (with(|one| one.step_s = 0), "step_s: 0 s"),
            (with(|one| one.step_s = 7_200), "step_s: 7200 s"),
            (with(|one| one.min_samples = f64::NAN), "min_samples: NaN is not a share"),
            (with(|one| one.min_samples = 0.0), "min_samples: 0 is not a share"),
            (with(|one| one.timeout_s = 0), "timeout_s: 0 is not between"),
            (with(|one| one.lookback_h = 0), "lookback_h: 0 is not between"),
            (with(|one| one.hp_priority_classes.clear()), "hp_priority_classes: name the priority classes"),
            (with(|one| one.hp_priority_classes.push(" ".to_owned())), "hp_priority_classes: empty name of a class"),
            (with(|one| one.query = "demand".to_owned()), "hp_priority_classes: it does not apply to your own query"),
            (
                with(|one| one.organization_label = "a-b".to_owned()),
                "organization_label: \"a-b\" is not the name of a label",
            ),
            (with(|one| one.gpu_model_label = "a b".to_owned()), "gpu_model_label: \"a b\" is not the name of a label"),
            (with(|one| one.gpu_model_label = "namespace".to_owned()), "gpu_model_label: it is also the label"),
            (with(|one| one.gpu_model = " ".to_owned()), "gpu_model: the GPU model"),
            (with(|one| one.gpu_model.clear()), "gpu_model: name the GPU model of the cluster"),
        ] {
            assert!(refused.starts_with(expected), "{refused}, expected {expected}");
        }
    }
}
