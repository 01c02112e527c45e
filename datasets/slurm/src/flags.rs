//! Command-line flags that say which jobs are spot and whose they are, the same for every program that reads records.

use crate::error::RecordsError;
use crate::rules::{Accounts, Rules};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Flags of a program that reads records of Slurm: its rules.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RulesFlags {
    /// QOS of spot jobs, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub spot_qos: Vec<String>,
    /// Partitions of spot jobs, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub spot_partitions: Vec<String>,
    /// QOS of HP jobs [default: every job that is not spot is HP]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hp_qos: Vec<String>,
    /// Partitions of HP jobs, beside --hp-qos
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub hp_partitions: Vec<String>,
    /// Accounts and their parents, as `sacctmgr -nP show account withassoc format=account,parentname` prints them: an
    /// organization is then the parent at --account-level
    #[arg(long, value_name = "FILE")]
    pub accounts: Option<PathBuf>,
    /// Level of the organizations below the account root [default: 1 with --accounts, else the account itself]
    #[arg(long, value_name = "LEVEL", requires = "accounts", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub account_level: Option<u32>,
}

impl RulesFlags {
    /// The flags that were given.
    #[must_use]
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--spot-qos", !self.spot_qos.is_empty()),
            ("--spot-partitions", !self.spot_partitions.is_empty()),
            ("--hp-qos", !self.hp_qos.is_empty()),
            ("--hp-partitions", !self.hp_partitions.is_empty()),
            ("--accounts", self.accounts.is_some()),
            ("--account-level", self.account_level.is_some()),
        ];
        all.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }

    /// The rules that sort jobs.
    ///
    /// # Errors
    /// The file of accounts cannot be read, or is no list of accounts.
    pub fn rules(&self) -> Result<Rules, RecordsError> {
        let names = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        let accounts = match &self.accounts {
            None => Accounts::default(),
            Some(file) => {
                let place = || file.display().to_string();
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|source| RecordsError::Io { place: place(), source })?;
                let read = Accounts::parse(&text, self.account_level.unwrap_or(1));
                read.map_err(|fault| RecordsError::Accounts { place: place(), fault })?
            }
        };
        Ok(Rules {
            spot_qos: names(&self.spot_qos),
            spot_partitions: names(&self.spot_partitions),
            hp_qos: names(&self.hp_qos),
            hp_partitions: names(&self.hp_partitions),
            accounts,
        })
    }
}
