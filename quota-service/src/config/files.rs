//! What settings name: certificates, secrets, and tables in files.

use super::Config;
use crate::engine::Webhook;
use crate::source;
use command_line::BadValue;
use datasets::read::{Powered, power};
use placement::power::PowerTable;
use prometheus::Source;
use serving::tls::{Files, Tls};
use std::path::{Path, PathBuf};

impl Config {
    /// The certificates of the service, where it has some.
    ///
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub fn tls(&self) -> Result<Option<Tls>, String> {
        match (self.tls_certificate_file.is_empty(), self.tls_key_file.is_empty()) {
            (true, true) if self.tls_client_ca_file.is_empty() => return Ok(None),
            (false, false) => {}
            (_, true) => return Err("set tls_key_file, too".to_owned()),
            (true, _) => return Err("set tls_certificate_file, too".to_owned()),
        }
        let client_ca = (!self.tls_client_ca_file.is_empty()).then(|| PathBuf::from(&self.tls_client_ca_file));
        let (certificate, key) = (PathBuf::from(&self.tls_certificate_file), PathBuf::from(&self.tls_key_file));
        Tls::read(Files { certificate, key, client_ca }).map(Some)
    }

    /// The secret is read where it is used, so that `config show` needs no right to it.
    pub(super) fn check_webhook(&self) -> Result<(), BadValue> {
        if self.webhook_url.is_empty() {
            return Ok(());
        }
        Webhook::new(&self.webhook_url, &[0; 32]).map(drop).map_err(|why| BadValue::new("webhook_url", why))
    }

    /// Where events go, if anywhere.
    ///
    /// # Errors
    /// The secret cannot be read, or is too short.
    pub fn webhook(&self) -> Result<Option<Webhook>, String> {
        if self.webhook_url.is_empty() {
            return Ok(None);
        }
        let file = &self.webhook_secret_file;
        if file.is_empty() {
            return Err("events are signed: name a file with a secret".to_owned());
        }
        let secret = std::fs::read_to_string(file).map_err(|fault| format!("{file}: {fault}"))?;
        let ca_file = (!self.webhook_authorities_file.is_empty()).then(|| Path::new(&self.webhook_authorities_file));
        Webhook::new(&self.webhook_url, secret.trim().as_bytes())?.trusting(ca_file).map(Some)
    }

    /// Where usage is read out of Prometheus.
    ///
    /// # Errors
    /// The file cannot be read, or a source of it is of no use.
    pub fn sources(&self) -> Result<Vec<Source>, String> {
        if self.prometheus_file.is_empty() { Ok(Vec::new()) } else { source::read(Path::new(&self.prometheus_file)) }
    }

    /// What nodes draw: the models that are known, and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a row is bad.
    pub fn power(&self) -> Result<PowerTable, String> {
        let mut table = PowerTable::default();
        if self.power_file.is_empty() {
            return Ok(table);
        }
        for row in power(Path::new(&self.power_file)).map_err(|fault| fault.to_string())? {
            let set = match row.of {
                Powered::Gpu(model) => table.set_gpu(&model, row.idle_w, row.full_w),
                Powered::Cpu { cores } => table.set_cpu(row.idle_w, row.full_w, cores),
            };
            set.map_err(|fault| format!("{}: {fault}", self.power_file))?;
        }
        Ok(table)
    }
}
