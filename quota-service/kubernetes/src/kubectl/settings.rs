//! Settings of the plugin. What they leave open, an extension of the kubeconfig's context may state.

use crate::config::{
    AtWillClasses, Config, DeviceClasses, FilePath, GuaranteeHours, HeadroomUrl, Optional, QualifiedName, SpotClasses,
};
use command_line::BadValue;
use kube::config::Kubeconfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vocab::{ClusterName, GpuModel};

/// Name of the extension.
const EXTENSION: &str = "headroom.dev";
/// Place of its settings, for people.
pub(super) const ORIGIN: &str = "kubeconfig: extension headroom.dev";

/// Settings of the plugin. Those of pods have to be as the connector has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// Path of a kubeconfig; empty for `KUBECONFIG`, then ~/.kube/config.
    pub kubeconfig: FilePath,
    /// Context of the kubeconfig; empty for its current one.
    pub context: String,
    /// Namespace of pods; empty for that of the context.
    pub namespace: String,
    /// Headroom's name of this cluster.
    pub cluster: Optional<ClusterName>,
    /// URL of quota-service.
    pub headroom_url: HeadroomUrl,
    /// File with the token for Headroom. Empty for none.
    pub headroom_token_file: FilePath,
    /// Authority (PEM) of Headroom's certificate; empty for the authorities that the machine trusts.
    pub headroom_ca_file: FilePath,
    /// Name of the resource that counts GPUs.
    pub gpu_resource: QualifiedName,
    /// Label of nodes with their GPU model.
    pub gpu_model_label: QualifiedName,
    /// GPU model of pods that select none.
    pub default_gpu_model: Optional<GpuModel>,
    /// Device classes whose devices are GPUs.
    pub device_classes: DeviceClasses,
    /// Priority classes of spot pods.
    pub spot_priority_classes: SpotClasses,
    /// Priority classes of pods at will.
    pub at_will_priority_classes: AtWillClasses,
    /// Guarantee of spot pods that name none, in hours; 0 for none.
    pub default_guarantee_hours: GuaranteeHours,
}

impl Default for PluginConfig {
    fn default() -> Self {
        let connector = Config::default();
        Self {
            kubeconfig: connector.kubeconfig,
            context: connector.context,
            namespace: String::new(),
            cluster: connector.cluster,
            headroom_url: connector.headroom_url,
            headroom_token_file: connector.headroom_token_file,
            headroom_ca_file: connector.headroom_ca_file,
            gpu_resource: connector.gpu_resource,
            gpu_model_label: connector.gpu_model_label,
            default_gpu_model: connector.default_gpu_model,
            device_classes: connector.device_classes,
            spot_priority_classes: connector.spot_priority_classes,
            at_will_priority_classes: connector.at_will_priority_classes,
            default_guarantee_hours: connector.default_guarantee_hours,
        }
    }
}

impl command_line::Config for PluginConfig {
    fn check(&self) -> Result<(), BadValue> {
        Ok(())
    }
}

/// Settings that the extension may have.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Extension {
    url: Option<HeadroomUrl>,
    cluster: Option<Optional<ClusterName>>,
    token_file: Option<FilePath>,
    ca_file: Option<FilePath>,
    gpu_resource: Option<QualifiedName>,
    gpu_model_label: Option<QualifiedName>,
    default_gpu_model: Option<Optional<GpuModel>>,
    device_classes: Option<DeviceClasses>,
    spot_priority_classes: Option<SpotClasses>,
    at_will_priority_classes: Option<AtWillClasses>,
    default_guarantee_hours: Option<GuaranteeHours>,
}

/// Keys of the extension, for an error that names them.
const KEYS: &str = "url, cluster, tokenFile, caFile, gpuResource, gpuModelLabel, defaultGpuModel, deviceClasses, spotPriorityClasses, \
    atWillPriorityClasses, defaultGuaranteeHours";

/// Takes the extension's value of a setting that is not set, and notes its key where the extension states it.
fn fill<T>(
    (key, own): (&'static str, &mut T),
    set: &BTreeSet<&str>,
    stated: Option<T>,
    stated_keys: &mut Vec<&'static str>,
) {
    let Some(stated) = stated else { return };
    stated_keys.push(key);
    if !set.contains(key) {
        *own = stated;
    }
}

impl PluginConfig {
    /// As [`with_extension`](Self::with_extension), of the kubeconfig that it names. Without one there is no extension; who needs the API
    /// says so.
    ///
    /// # Errors
    /// The extension has another form.
    pub fn extended(self, set: &BTreeSet<&str>) -> Result<(Self, Vec<&'static str>), String> {
        match self.kubeconfig.get().map_or_else(Kubeconfig::read, Kubeconfig::read_from) {
            Ok(read) => self.with_extension(&read, set),
            Err(_) => Ok((self, Vec::new())),
        }
    }

    /// Settings but those of `set` take the extension's value. Answers the keys that it states, too.
    ///
    /// # Errors
    /// The extension has another form.
    pub fn with_extension(
        mut self,
        read: &Kubeconfig,
        set: &BTreeSet<&str>,
    ) -> Result<(Self, Vec<&'static str>), String> {
        let mut keys = Vec::new();
        let current = Some(&self.context).filter(|name| !name.is_empty()).or(read.current_context.as_ref());
        let context = read.contexts.iter().find(|one| Some(&one.name) == current).and_then(|one| one.context.as_ref());
        let all = context.and_then(|context| context.extensions.as_ref()).into_iter().flatten();
        let Some(found) = all.into_iter().find(|one| one.name == EXTENSION) else { return Ok((self, keys)) };
        let stated: Extension =
            serde_json::from_value(found.extension.clone()).map_err(|fault| format!("{fault}: write {KEYS}"))?;
        macro_rules! fill {
            ($($own:ident: $stated:ident),*) => {
                $(fill((stringify!($own), &mut self.$own), set, stated.$stated, &mut keys);)*
            };
        }
        fill!(
            headroom_url: url,
            cluster: cluster,
            headroom_token_file: token_file,
            headroom_ca_file: ca_file,
            gpu_resource: gpu_resource,
            gpu_model_label: gpu_model_label,
            default_gpu_model: default_gpu_model,
            device_classes: device_classes,
            spot_priority_classes: spot_priority_classes,
            at_will_priority_classes: at_will_priority_classes,
            default_guarantee_hours: default_guarantee_hours
        );
        Ok((self, keys))
    }

    /// As settings of the connector, whose code reads pods and asks Headroom.
    #[must_use]
    pub fn connector(&self) -> Config {
        Config {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            headroom_url: self.headroom_url.clone(),
            headroom_token_file: self.headroom_token_file.clone(),
            headroom_ca_file: self.headroom_ca_file.clone(),
            gpu_resource: self.gpu_resource.clone(),
            gpu_model_label: self.gpu_model_label.clone(),
            default_gpu_model: self.default_gpu_model.clone(),
            device_classes: self.device_classes.clone(),
            spot_priority_classes: self.spot_priority_classes.clone(),
            at_will_priority_classes: self.at_will_priority_classes.clone(),
            default_guarantee_hours: self.default_guarantee_hours,
            ..Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(extension: &str) -> Kubeconfig {
        let text = format!(
            "current-context: a\ncontexts:\n- name: a\n  context:\n    cluster: c\n    user: u\n    extensions:\n    - name: headroom.dev\n      extension: {extension}\n"
        );
        Kubeconfig::from_yaml(&text).unwrap()
    }

    #[test]
    fn the_context_says_where_headroom_is_unless_a_setting_does() {
        let read = kubeconfig("{url: 'https://headroom.example:8443', cluster: earth, tokenFile: /etc/token}");
        let (found, _) = PluginConfig::default().with_extension(&read, &BTreeSet::new()).unwrap();
        assert_eq!(found.headroom_url.to_string(), "https://headroom.example:8443");
        assert_eq!(
            (found.cluster.to_string(), found.headroom_token_file.to_string()),
            ("earth".into(), "/etc/token".into())
        );
        let own = PluginConfig { cluster: "mars".parse().unwrap(), ..PluginConfig::default() };
        assert_eq!(own.with_extension(&read, &BTreeSet::from(["cluster"])).unwrap().0.cluster.to_string(), "mars");
        let other = PluginConfig { context: "b".into(), ..PluginConfig::default() };
        assert_eq!(
            other.clone().with_extension(&read, &BTreeSet::new()).unwrap(),
            (other, Vec::new()),
            "another context"
        );
    }

    #[test]
    fn the_context_says_how_the_connector_reads_pods_unless_a_setting_does() {
        let read = kubeconfig(
            "{spotPriorityClasses: 'spot,batch', atWillPriorityClasses: scrap, gpuResource: amd.com/gpu, gpuModelLabel: amd.com/model, \
             defaultGpuModel: MI300X, deviceClasses: gpu.example.com, defaultGuaranteeHours: 2}",
        );
        let connector = PluginConfig::default().with_extension(&read, &BTreeSet::new()).unwrap().0.connector();
        let names = connector.spot_classes().into_iter().collect::<Vec<_>>();
        assert_eq!(names, ["batch", "scrap", "spot"]);
        let resource = (connector.gpu_resource.to_string(), connector.gpu_model_label.to_string());
        assert_eq!(resource, ("amd.com/gpu".to_owned(), "amd.com/model".to_owned()));
        assert_eq!(connector.default_gpu_model.to_string(), "MI300X");
        assert!(connector.device_classes.0.contains_key("gpu.example.com"));
        assert_eq!(connector.default_guarantee_hours.0.map(vocab::HorizonHours::get), Some(2));
        let own = PluginConfig { spot_priority_classes: "cheap".parse().unwrap(), ..PluginConfig::default() };
        let names = own
            .with_extension(&read, &BTreeSet::from(["spot_priority_classes"]))
            .unwrap()
            .0
            .spot_priority_classes
            .names()
            .clone();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cheap"]);
    }

    #[test]
    fn an_extension_with_a_wrong_key_is_refused_with_the_right_ones() {
        let refused = PluginConfig::default().with_extension(&kubeconfig("{uri: x}"), &BTreeSet::new()).unwrap_err();
        assert!(
            refused.contains("uri") && refused.contains("write url, cluster, tokenFile, caFile, gpuResource"),
            "{refused}"
        );
    }
}
