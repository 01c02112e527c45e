//! What settings have to be.

use super::{Config, KueueMode, flavors, shares, spot_classes};
use axum::http::Uri;
use command_line::BadValue;
use tracing_subscriber::EnvFilter;
use vocab::{ClusterName, GpuModel, HorizonHours};

/// Where Headroom answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadroomUrl {
    /// Without a slash at its end.
    pub base: String,
    pub is_secure: bool,
}

impl HeadroomUrl {
    /// # Errors
    /// It is no `http://HOST:PORT` or `https://HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?}: {why}: write http://HOST:PORT or https://HOST:PORT");
        let uri: Uri = text.parse().map_err(|fault: axum::http::uri::InvalidUri| wrong(&fault.to_string()))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("no scheme")),
        };
        if uri.host().is_none() || uri.query().is_some() {
            return Err(wrong("no host, or a query"));
        }
        Ok(Self { base: text.trim_end_matches('/').to_owned(), is_secure })
    }
}

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        if !self.cluster.is_empty() {
            ClusterName::parse(&self.cluster).map_err(|fault| BadValue::new("cluster", fault))?;
        }
        HeadroomUrl::parse(&self.headroom_url).map_err(|why| BadValue::new("headroom_url", why))?;
        self.check_pods()?;
        self.check_times()?;
        self.check_modes()?;
        if !["text", "json"].contains(&self.log_format.as_str()) {
            return Err(BadValue::new("log_format", format!("{:?}: write text or json", self.log_format)));
        }
        EnvFilter::try_new(&self.log)
            .map(drop)
            .map_err(|fault| BadValue::new("log", format!("{:?}: {fault}", self.log)))
    }
}

impl Config {
    fn check_pods(&self) -> Result<(), BadValue> {
        for (key, name) in [("gpu_resource", &self.gpu_resource), ("gpu_model_label", &self.gpu_model_label)] {
            if name.trim().is_empty() {
                return Err(BadValue::new(key, "it is empty: write a name such as nvidia.com/gpu"));
            }
        }
        if spot_classes(&self.spot_priority_classes).is_empty() {
            return Err(BadValue::new("spot_priority_classes", "there is none: which pods are spot?"));
        }
        if !self.default_gpu_model.is_empty() {
            GpuModel::parse(&self.default_gpu_model).map_err(|fault| BadValue::new("default_gpu_model", fault))?;
        }
        if self.default_guarantee_hours > 0 {
            let hours = HorizonHours::new(self.default_guarantee_hours);
            hours.map_err(|fault| BadValue::new("default_guarantee_hours", fault))?;
        }
        HorizonHours::new(self.quota_hours).map_err(|fault| BadValue::new("quota_hours", fault))?;
        Ok(())
    }

    fn check_times(&self) -> Result<(), BadValue> {
        let positive = [
            ("report_s", self.report_s),
            ("poll_s", self.poll_s),
            ("publish_s", self.publish_s),
            ("extender_deadline_ms", self.extender_deadline_ms),
            ("assumed_s", self.assumed_s),
            ("lease_s", self.lease_s),
            ("renew_s", self.renew_s),
            ("retry_s", self.retry_s),
            ("watchdog_after_s", self.watchdog_after_s),
            ("watchdog_check_s", self.watchdog_check_s),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(BadValue::new(key, "0 is below 1, the least"));
        }
        if !(self.retry_s < self.renew_s && self.renew_s < self.lease_s) {
            return Err(BadValue::new(
                "renew_s",
                "write retry_s < renew_s < lease_s: who leads stops before another begins",
            ));
        }
        // A publisher that works beats at each of its looks.
        if self.watchdog_after_s <= 2 * self.publish_s {
            return Err(BadValue::new("watchdog_after_s", "write more than twice publish_s: a beat may be late once"));
        }
        if !(0.0..=1.0).contains(&self.least_change_ratio) {
            return Err(BadValue::new("least_change_ratio", "it is no share: write 0 to 1"));
        }
        Ok(())
    }

    fn check_modes(&self) -> Result<(), BadValue> {
        let Some(mode) = KueueMode::parse(&self.kueue) else {
            let names: Vec<&str> = KueueMode::ALL.iter().map(|(_, name)| *name).collect();
            return Err(BadValue::new("kueue", format!("{:?}: write one of {}", self.kueue, names.join(", "))));
        };
        let flavors = flavors(&self.flavors).map_err(|why| BadValue::new("flavors", why))?;
        if mode != KueueMode::Off && flavors.is_empty() {
            return Err(BadValue::new("flavors", "kueue is on and there is none: write FLAVOR=GPU_MODEL"));
        }
        let shares = shares(&self.resource_quota_shares).map_err(|why| BadValue::new("resource_quota_shares", why))?;
        if self.resource_quota && shares.is_empty() {
            let why = "resource_quota is on and there is none: write NAMESPACE=SHARE";
            return Err(BadValue::new("resource_quota_shares", why));
        }
        let names = [("capacity_provider", &self.capacity_provider), ("cluster_queue", &self.cluster_queue)];
        let more = [("lease_name", &self.lease_name), ("lease_namespace", &self.lease_namespace)];
        for (key, name) in names.into_iter().chain(more).chain([("admission_check_name", &self.admission_check_name)]) {
            if !is_object_name(name) {
                let why = format!("{name:?}: write lower-case letters, digits, '-' and '.'");
                return Err(BadValue::new(key, why));
            }
        }
        Ok(())
    }
}

/// A DNS subdomain, which names of objects are.
fn is_object_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.len() <= 253 && name.chars().all(allowed) && ends(name.chars().next()) && ends(name.chars().last())
}
