//! Relations between settings. A single value is checked by its type when it is read.

use super::{Config, KueueMode};
use command_line::BadValue;

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        self.check_times()?;
        self.check_modes()
    }
}

impl Config {
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
            let why = "write retry_s < renew_s < lease_s: a leader stops before another replica begins";
            let set = Self::default();
            let changed = [
                ("renew_s", self.renew_s != set.renew_s),
                ("lease_s", self.lease_s != set.lease_s),
                ("retry_s", self.retry_s != set.retry_s),
            ];
            let key = changed.iter().find(|(_, is_changed)| *is_changed).map_or("renew_s", |(key, _)| key);
            let [lease, renew, retry] = [self.lease_s, self.renew_s, self.retry_s];
            return Err(BadValue::new(key, format!("{why}; now retry_s {retry}, renew_s {renew}, lease_s {lease}")));
        }
        // A publisher that works beats in each of its rounds.
        if self.watchdog_after_s <= 2 * self.publish_s {
            return Err(BadValue::new("watchdog_after_s", "write more than twice publish_s: a beat may be late once"));
        }
        if !(0.0..=1.0).contains(&self.least_change_ratio) {
            return Err(BadValue::new("least_change_ratio", "it is no share: write 0 to 1"));
        }
        Ok(())
    }

    fn check_modes(&self) -> Result<(), BadValue> {
        if self.kueue.is_on() && self.flavors.0.is_empty() {
            return Err(BadValue::new("flavors", "kueue is on and no flavor is set: write FLAVOR=GPU_MODEL"));
        }
        if let Some(both) = self.spot_priority_classes.names().intersection(&self.at_will_priority_classes.0).next() {
            let why = format!("{both} is in spot_priority_classes, too: a class is promised hours, or is at will");
            return Err(BadValue::new("at_will_priority_classes", why));
        }
        if !self.at_will_flavors.0.is_empty() {
            self.check_at_will_flavors()?;
        }
        if self.resource_quota && self.resource_quota_shares.0.is_empty() {
            let why = "resource_quota is on and no share is set: write NAMESPACE=SHARE";
            return Err(BadValue::new("resource_quota_shares", why));
        }
        Ok(())
    }

    fn check_at_will_flavors(&self) -> Result<(), BadValue> {
        let wrong = |why: String| Err(BadValue::new("at_will_flavors", why));
        if !self.is_apart() {
            return wrong(
                "write at_will_priority_classes, too: by its class it is counted what a pod holds".to_owned(),
            );
        }
        if matches!(self.kueue, KueueMode::ClusterQueue | KueueMode::Auto) {
            // In one queue Kueue would take whichever flavor has room.
            return wrong(
                "a ClusterQueue of ours has promised flavors alone: set kueue to capacity-provider".to_owned(),
            );
        }
        match self.at_will_flavors.0.keys().find(|flavor| self.flavors.0.contains_key(*flavor)) {
            Some(both) => wrong(format!("{both} is in flavors, too: write a flavor of its own")),
            None => Ok(()),
        }
    }
}
