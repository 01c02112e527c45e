//! Relations between settings. A single value is checked by its type when it is read.

use super::{Config, Nesting};
use command_line::BadValue;

impl command_line::Config for Config {
    fn check(&self) -> Result<(), BadValue> {
        self.check_times()?;
        self.check_classes()?;
        self.check_modes()
    }
}

impl Config {
    fn check_times(&self) -> Result<(), BadValue> {
        let positive = [
            ("slurm_command_timeout_s", self.slurm_command_timeout_s),
            ("accounting_timeout_s", self.accounting_timeout_s),
            ("look_s", self.look_s),
            ("poll_s", self.poll_s),
            ("report_s", self.report_s),
            ("accounting_s", self.accounting_s),
            ("publish_s", self.publish_s),
            ("lease_s", self.lease_s),
            ("watchdog_after_s", self.watchdog_after_s),
            ("watchdog_check_s", self.watchdog_check_s),
            ("hook_valid_s", self.hook_valid_s),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(BadValue::new(key, "0 is below 1, the least"));
        }
        // A write that begins under the lease has to end under it.
        if self.lease_s <= 2 * self.slurm_command_timeout_s {
            let why = format!(
                "{} s: write more than twice slurm_command_timeout_s ({} s): a write has to end before the lease does",
                self.lease_s, self.slurm_command_timeout_s
            );
            return Err(BadValue::new("lease_s", why));
        }
        let round = self.publish_s.max(self.look_s);
        for (key, value) in [("watchdog_after_s", self.watchdog_after_s), ("hook_valid_s", self.hook_valid_s)] {
            if value <= 2 * round {
                let why = format!(
                    "{value} s: write more than twice publish_s and look_s ({round} s): a round may be late once"
                );
                return Err(BadValue::new(key, why));
            }
        }
        if !(0.0..=1.0).contains(&self.least_change_ratio) {
            return Err(BadValue::new("least_change_ratio", "it is no share: write 0 to 1"));
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), BadValue> {
        if let Some(both) = self.hp_qos.0.iter().find(|name| self.spot_qos.0.contains_key(*name)) {
            return Err(BadValue::new("hp_qos", format!("{both} is in spot_qos, too: leave it in one of them")));
        }
        if let Some(both) = self.hp_partitions.0.iter().find(|name| self.spot_partitions.0.contains_key(*name)) {
            return Err(BadValue::new(
                "hp_partitions",
                format!("{both} is in spot_partitions, too: leave it in one of them"),
            ));
        }
        if let Some(other) = self.hard_qos.0.iter().find(|name| self.spot_qos.0.get(*name).is_none_or(Option::is_none))
        {
            return Err(BadValue::new(
                "hard_qos",
                format!("{other} is no QOS of spot_qos with hours: write QOS=HOURS there"),
            ));
        }
        Ok(())
    }

    fn check_modes(&self) -> Result<(), BadValue> {
        let twice = |key, of: &super::Guarantees| {
            let promised = of.promised();
            let pair = promised.windows(2).find(|pair| pair[0].0 == pair[1].0);
            pair.map_or(Ok(()), |pair| {
                let why = format!(
                    "{} and {} promise the same hours: one limit carries the quota of an hour",
                    pair[0].1, pair[1].1
                );
                Err(BadValue::new(key, why))
            })
        };
        if !self.mode.publishes() {
            return Ok(());
        }
        let (key, hint) = match self.nesting {
            Nesting::Qos => ("spot_qos", "QOS=HOURS"),
            Nesting::Accounts => ("spot_accounts", "ACCOUNT=HOURS"),
        };
        if self.limited().promised().is_empty() {
            return Err(BadValue::new(key, format!("mode is {} and none has hours: write {hint}", self.mode)));
        }
        twice(key, self.limited())?;
        if self.heartbeat_file.is_none() {
            return Err(BadValue::new(
                "heartbeat_file",
                "it is empty: without it the watchdog cannot see that limits age",
            ));
        }
        if self.mode == super::Mode::PublishAndHook && self.quota_file.is_none() {
            return Err(BadValue::new(
                "quota_file",
                "it is empty, and mode is publish+hook: name the file that the hook reads",
            ));
        }
        Ok(())
    }
}
