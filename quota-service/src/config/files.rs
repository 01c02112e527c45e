//! Files of the settings: certificates, secrets and tables.

use super::{Config, FilePath, WebhookFormat};
use crate::engine::Webhook;
use crate::source;
use command_line::BadValue;
use datasets::read::{Powered, power};
use placement::power::PowerTable;
use prometheus::Source;
use serving::tls::{Files, Tls};
use std::path::Path;

impl Config {
    /// The certificates of the service, where it has some.
    ///
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub fn tls(&self) -> Result<Option<Tls>, String> {
        match (self.tls_certificate_file.get(), self.tls_key_file.get()) {
            (Some(certificate), Some(key)) => {
                let client_ca = self.tls_client_ca_file.get().map(Path::to_path_buf);
                let tls = Tls::read(Files { certificate: certificate.into(), key: key.into(), client_ca });
                tls.map(Some).map_err(|fault| self.of_tls_file(&fault))
            }
            (None, Some(_)) => Err("tls_key_file: set tls_certificate_file, too".to_owned()),
            (Some(_), None) => Err("tls_certificate_file: set tls_key_file, too".to_owned()),
            (None, None) if self.tls_client_ca_file.is_none() => Ok(None),
            (None, None) => Err("tls_client_ca_file: set tls_certificate_file and tls_key_file, too".to_owned()),
        }
    }

    /// A fault of a file of TLS, with the key of its setting.
    fn of_tls_file(&self, fault: &str) -> String {
        let files = [
            ("tls_client_ca_file", &self.tls_client_ca_file),
            ("tls_key_file", &self.tls_key_file),
            ("tls_certificate_file", &self.tls_certificate_file),
        ];
        let named = |(_, file): &&(&str, &FilePath)| !file.is_none() && fault.starts_with(&format!("{file}: "));
        format!("{}: {fault}", files.iter().find(named).map_or("tls_certificate_file", |(key, _)| *key))
    }

    /// The secret is read where it is used, so that `config show` needs no right to it.
    pub(super) fn check_webhook(&self) -> Result<(), BadValue> {
        if self.webhook_url.get().is_none() {
            return Ok(());
        }
        Webhook::unsigned(self.webhook_url.as_str()).map(drop).map_err(|why| BadValue::new("webhook_url", why))
    }

    /// Where events go, if anywhere.
    ///
    /// # Errors
    /// The secret cannot be read, or is too short.
    pub fn webhook(&self) -> Result<Option<Webhook>, String> {
        let of_secret = |fault: String| format!("webhook_secret_file: {fault}");
        let ca_file = self.webhook_authorities_file.get();
        if self.webhook_url.get().is_none() {
            return match (self.webhook_secret_file.is_none(), ca_file) {
                (true, None) => Ok(None),
                (false, _) => Err(of_secret("set webhook_url, too, or leave it out".to_owned())),
                (true, Some(_)) => Err("webhook_authorities_file: set webhook_url, too, or leave it out".to_owned()),
            };
        }
        let url = self.webhook_url.as_str();
        let webhook = match self.webhook_secret_file.get() {
            Some(file) => {
                let secret = std::fs::read_to_string(file);
                let secret = secret.map_err(|fault| of_secret(format!("{}: {fault}", file.display())))?;
                Webhook::new(url, secret.trim().as_bytes())
            }
            None if self.webhook_format == WebhookFormat::Json => {
                Err("it is not set: events are signed, name a file with a secret".to_owned())
            }
            None => Webhook::unsigned(url),
        };
        let webhook = webhook.map_err(of_secret)?.sending(self.webhook_format, self.webhook_kinds.clone());
        webhook.trusting(ca_file).map(Some).map_err(|fault| format!("webhook_authorities_file: {fault}"))
    }

    /// Where usage is read out of Prometheus.
    ///
    /// # Errors
    /// The file cannot be read, or a source of it is of no use.
    pub fn sources(&self) -> Result<Vec<Source>, String> {
        self.prometheus_file.get().map_or_else(|| Ok(Vec::new()), source::read)
    }

    /// Power of nodes: the built-in models, and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a row is bad.
    pub fn power(&self) -> Result<PowerTable, String> {
        let mut table = PowerTable::default();
        let Some(file) = self.power_file.get() else { return Ok(table) };
        for row in power(file).map_err(|fault| fault.to_string())? {
            let set = match row.of {
                Powered::Gpu(model) => table.set_gpu(&model, row.idle_w, row.full_w),
                Powered::Cpu { cores } => table.set_cpu(row.idle_w, row.full_w, cores),
            };
            set.map_err(|fault| format!("{}: {fault}", self.power_file))?;
        }
        Ok(table)
    }
}
