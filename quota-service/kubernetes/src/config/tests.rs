//! Settings: reading back, and refusals.

use super::*;
use command_line::Config as _;
use std::fmt::Display;
use std::str::FromStr;

/// Text of a value after it is read, or the reason of its refusal.
fn read<T: FromStr<Err: Display> + Display>(text: &str) -> String {
    text.parse::<T>().map_or_else(|fault| format!("refused: {fault}"), |value| value.to_string())
}

/// Settings with one key changed, as they are deserialized from a file.
fn with(key: &str, value: impl Into<serde_json::Value>) -> Result<Config, String> {
    let mut settings = serde_json::to_value(Config::default()).unwrap();
    settings[key] = value.into();
    serde_json::from_value(settings).map_err(|fault| fault.to_string())
}

#[test]
fn a_setting_that_is_text_reads_back_as_it_was_written() {
    for (_, name) in KueueMode::ALL {
        assert_eq!(read::<KueueMode>(name), name);
    }
    assert_eq!(read::<HeadroomUrl>("https://headroom:8443/"), "https://headroom:8443");
    assert_eq!(["", "/etc/x.pem"].map(read::<FilePath>), ["", "/etc/x.pem"]);
    assert_eq!(["text", "json"].map(read::<LogFormat>), ["text", "json"]);
    assert_eq!(read::<LogFilter>("kubernetes=debug"), "kubernetes=debug");
    assert_eq!(["", "earth"].map(read::<Optional<ClusterName>>), ["", "earth"]);
    assert_eq!(["nvidia.com/gpu", "gpu"].map(read::<QualifiedName>), ["nvidia.com/gpu", "gpu"]);
    assert_eq!(read::<Flavors>("b=H800, a=A100"), "a=A100,b=H800");
    assert_eq!(read::<DeviceClasses>("mig.nvidia.com, a100.example.com=A100"), "a100.example.com=A100,mig.nvidia.com");
    assert_eq!(read::<Shares>("x=0.5,y=0.25"), "x=0.5,y=0.25");
    assert_eq!(read::<SpotClasses>(" spot, batch ,"), "batch,spot");
    assert_eq!([" b, a ,", ""].map(read::<AtWillClasses>), ["a,b", ""]);
    let written = serde_json::to_value(Config::default()).unwrap();
    assert_eq!(serde_json::from_value::<Config>(written).unwrap(), Config::default());
}

#[test]
fn a_wrong_setting_is_refused_and_never_replaced_by_a_default() {
    for (key, value, why) in [
        ("kueue", "always", "\"always\": write one of off, capacity-provider, cluster-queue, auto"),
        ("kueue", "", "write one of off"),
        ("headroom_url", "headroom:8080", "write http://HOST:PORT"),
        ("cluster", "a:b", "a colon"),
        ("gpu_resource", "", "it is empty: write a name such as nvidia.com/gpu"),
        ("gpu_model_label", "nvidia.com/gpu product", "write NAME or DOMAIN/NAME"),
        ("organization_label", "a/b/c", "write NAME or DOMAIN/NAME"),
        ("default_gpu_model", " A100", "begins or ends with a space"),
        ("spot_priority_classes", " , ", "names no priority class"),
        ("device_classes", "gpu.nvidia.com=", "write CLASS or CLASS=GPU_MODEL"),
        ("device_classes", "GPU", "write lower-case letters"),
        ("device_classes", "a=A100,a", "the class is listed twice"),
        ("notice_ray_url", "{cluster}:8265", "such as http://{cluster}-head-svc.{namespace}.svc:8265"),
        ("notice_webhook_url", "hooks.example", "write http://HOST:PORT"),
        ("flavors", "a100", "write FLAVOR=GPU_MODEL"),
        ("flavors", "a=A100,b=A100", "another flavor has this GPU model"),
        ("flavors", "=A100", "write lower-case letters"),
        ("resource_quota_shares", "x=2", "write NAMESPACE=SHARE"),
        ("resource_quota_shares", "x=0.7,y=0.7", "add up to 1.4; the limit is 1"),
        ("lease_name", "Headroom", "write lower-case letters, digits, '-' and '.'"),
        ("lease_namespace", "", "write lower-case letters, digits, '-' and '.'"),
        ("log_format", "xml", "\"xml\": write text or json"),
    ] {
        let refused = with(key, value).expect_err("the value is wrong");
        assert!(refused.contains(why), "{key} = {value:?}: {refused}");
    }
    for key in ["quota_hours", "default_guarantee_hours"] {
        assert!(with(key, 169).unwrap_err().contains("169"), "{key}");
    }
    assert!(with("quota_hours", 0).is_err());
    assert_eq!(with("default_guarantee_hours", 0).unwrap().default_guarantee_hours, GuaranteeHours(None));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |config: Config| config.check().expect_err("the settings contradict each other");
    assert_eq!(refused(Config { kueue: KueueMode::Auto, ..Config::default() }).key, "flavors");
    assert_eq!(refused(Config { resource_quota: true, ..Config::default() }).key, "resource_quota_shares");
    let apart = |classes: &str, flavors: &str, kueue| Config {
        at_will_priority_classes: classes.parse().unwrap(),
        at_will_flavors: flavors.parse().unwrap(),
        flavors: "a=A100".parse().unwrap(),
        kueue,
        ..Config::default()
    };
    assert!(apart("batch,free", "b=A100", KueueMode::CapacityProvider).check().is_ok());
    assert_eq!(refused(apart("spot", "", KueueMode::Off)).key, "at_will_priority_classes");
    for wrong in [
        apart("", "b=A100", KueueMode::CapacityProvider),
        apart("free", "b=A100", KueueMode::ClusterQueue),
        apart("free", "a=A100", KueueMode::CapacityProvider),
    ] {
        assert_eq!(refused(wrong).key, "at_will_flavors");
    }
    assert_eq!(refused(Config { renew_s: 20, ..Config::default() }).key, "renew_s");
    assert_eq!(refused(Config { watchdog_after_s: 30, ..Config::default() }).key, "watchdog_after_s");
    assert!(Config::default().check().is_ok());
}
