//! Kinds of `resource.k8s.io` with the fields that we read: of v1, v1beta2 and v1beta1, whose shapes differ in two places. A device of
//! v1beta1 has its fields under `basic`, and a request of v1beta1 has those of `exactly` beside its name.

use super::slim::or_default;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Spec of a ResourceSlice: devices of one pool of a driver.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SliceSpec {
    /// Driver of the devices.
    pub driver: String,
    /// The node that has them; none of devices that name theirs, or that a network attaches.
    pub node_name: Option<String>,
    /// Pool of the devices.
    pub pool: SlicePool,
    /// Devices.
    #[serde(deserialize_with = "or_default")]
    pub devices: Vec<Device>,
    /// Counters from which devices of the pool draw.
    #[serde(deserialize_with = "or_default")]
    pub shared_counters: Vec<CounterSet>,
}

/// Pool of a slice.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlicePool {
    /// Name.
    pub name: String,
    /// Slices of an older generation do not count.
    pub generation: i64,
    /// Slices of this generation.
    pub resource_slice_count: i64,
}

/// A set of counters, such as the memory slices of one GPU.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CounterSet {
    /// Name.
    pub name: String,
    /// Amounts by counter.
    #[serde(deserialize_with = "or_default")]
    pub counters: BTreeMap<String, Amount>,
}

/// A quantity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// The quantity as text.
    pub value: String,
}

/// A device.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Name in its pool.
    pub name: String,
    /// Where v1beta1 has the rest.
    pub basic: Option<DeviceBody>,
    /// The rest.
    #[serde(flatten)]
    pub body: DeviceBody,
}

impl Device {
    /// The rest, of whichever version.
    #[must_use]
    pub const fn body(&self) -> &DeviceBody {
        match &self.basic {
            Some(body) => body,
            None => &self.body,
        }
    }
}

/// A device but for its name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceBody {
    /// The node that has it, where the slice does not say.
    pub node_name: Option<String>,
    /// Attributes: `bool`, `int`, `string` or `version` by name.
    #[serde(deserialize_with = "or_default")]
    pub attributes: BTreeMap<String, BTreeMap<String, Value>>,
    /// Capacities by name.
    #[serde(deserialize_with = "or_default")]
    pub capacity: BTreeMap<String, Capacity>,
    /// Counters that it draws from.
    #[serde(deserialize_with = "or_default")]
    pub consumes_counters: Vec<Draw>,
    /// Whether several claims may share it, by capacity.
    #[serde(deserialize_with = "or_default")]
    pub allow_multiple_allocations: bool,
    /// Taints by its driver.
    #[serde(deserialize_with = "or_default")]
    pub taints: Vec<Taint>,
}

/// A capacity of a device.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capacity {
    /// The quantity as text.
    pub value: String,
    /// How requests consume it.
    #[serde(deserialize_with = "or_default")]
    pub request_policy: Policy,
}

/// How requests consume a capacity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// Of a request that states none.
    pub default: Option<String>,
    /// Amounts that are handed out.
    pub valid_values: Option<Vec<String>>,
    /// A range of them.
    pub valid_range: Option<Range>,
}

/// A range of amounts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Range {
    /// The least.
    pub min: String,
    /// The most.
    pub max: Option<String>,
    /// Between two.
    pub step: Option<String>,
}

/// Amounts that a device draws from a set of counters.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Draw {
    /// The set.
    pub counter_set: String,
    /// Amounts by counter.
    #[serde(deserialize_with = "or_default")]
    pub counters: BTreeMap<String, Amount>,
}

/// A taint of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
    /// `None`, `NoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Spec of a DeviceTaintRule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaintRuleSpec {
    /// Devices that it taints; none where it is missing.
    pub device_selector: Option<TaintSelector>,
    /// The taint.
    pub taint: Taint,
}

/// Devices that a rule taints: all fields have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaintSelector {
    /// Driver.
    pub driver: Option<String>,
    /// Pool.
    pub pool: Option<String>,
    /// Device.
    pub device: Option<String>,
    /// Class, of v1alpha3.
    pub device_class_name: Option<String>,
}

/// Spec of a DeviceClass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClassSpec {
    /// All have to match a device of the class.
    #[serde(deserialize_with = "or_default")]
    pub selectors: Vec<DeviceSelector>,
    /// The extended resource by which pods ask for its devices, too.
    pub extended_resource_name: Option<String>,
}

/// Selects devices.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DeviceSelector {
    /// By an expression.
    #[serde(deserialize_with = "or_default")]
    pub cel: Expression,
}

/// An expression of CEL.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// Text.
    pub expression: String,
}

/// Spec of a ResourceClaim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClaimSpec {
    /// Devices.
    #[serde(deserialize_with = "or_default")]
    pub devices: ClaimedDevices,
}

/// Devices that a claim asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClaimedDevices {
    /// All of them have to be met.
    #[serde(deserialize_with = "or_default")]
    pub requests: Vec<DeviceRequest>,
}

/// A request of a claim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceRequest {
    /// Name.
    pub name: String,
    /// One kind of devices.
    pub exactly: Option<ExactRequest>,
    /// Alternatives, the best first.
    #[serde(deserialize_with = "or_default")]
    pub first_available: Vec<ExactRequest>,
    /// Of v1beta1, which has it here.
    #[serde(flatten)]
    pub inline: ExactRequest,
}

/// A number of devices of a class.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExactRequest {
    /// Class; empty where this is not stated here.
    pub device_class_name: String,
    /// All have to match.
    #[serde(deserialize_with = "or_default")]
    pub selectors: Vec<DeviceSelector>,
    /// `ExactCount` or `All`.
    pub allocation_mode: Option<String>,
    /// Devices, with `ExactCount`.
    pub count: Option<u64>,
    /// Whether it looks at devices that others use.
    #[serde(deserialize_with = "or_default")]
    pub admin_access: bool,
    /// Capacity of each device.
    #[serde(deserialize_with = "or_default")]
    pub capacity: CapacityRequests,
    /// Taints that its devices may have.
    #[serde(deserialize_with = "or_default")]
    pub tolerations: Vec<Toleration>,
}

/// Taints of devices that a request tolerates.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Key; with `Exists`, none for all keys.
    pub key: Option<String>,
    /// `Exists`, or `Equal`, which is the default.
    pub operator: Option<String>,
    /// With `Equal`.
    pub value: Option<String>,
    /// None for all effects.
    pub effect: Option<String>,
}

impl Toleration {
    /// Whether it tolerates a taint.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let exists = self.operator.as_deref() == Some("Exists");
        let key = self.key.as_deref().unwrap_or_default();
        let effect = self.effect.as_deref().unwrap_or_default();
        (key == taint.key || exists && key.is_empty())
            && (exists || self.value.as_deref().unwrap_or_default() == taint.value)
            && (effect.is_empty() || effect == taint.effect)
    }
}

/// Requested capacities.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CapacityRequests {
    /// Quantities by name.
    #[serde(deserialize_with = "or_default")]
    pub requests: BTreeMap<String, String>,
}

/// Status of a ResourceClaim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    /// Devices that it has.
    pub allocation: Option<Allocation>,
}

/// Devices that a claim has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Allocation {
    /// Devices.
    #[serde(deserialize_with = "or_default")]
    pub devices: AllocatedDevices,
}

/// Devices that a claim has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AllocatedDevices {
    /// One for each device, or share of one.
    #[serde(deserialize_with = "or_default")]
    pub results: Vec<AllocatedDevice>,
}

/// A device that a claim has, or a share of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevice {
    /// The request, with `/` and its alternative where it had several.
    pub request: String,
    /// Driver.
    pub driver: String,
    /// Pool.
    pub pool: String,
    /// Device.
    pub device: String,
    /// Whether it only looks at it.
    #[serde(deserialize_with = "or_default")]
    pub admin_access: bool,
    /// Capacity that it took of a device that several share.
    #[serde(deserialize_with = "or_default")]
    pub consumed_capacity: BTreeMap<String, String>,
}

/// Spec of a ResourceClaimTemplate.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TemplateSpec {
    /// Spec of the claims that are made of it.
    #[serde(deserialize_with = "or_default")]
    pub spec: ClaimSpec,
}
