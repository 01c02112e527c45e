//! Limits, guarantees and places of facts.

use super::{GuaranteeRecord, LimitRecord, PlaceRecord};
use crate::fault::{FieldFault, Place, time};
use placement::Limit;
use placement::fleet::{GpuPlace, GpuRequest, Guarantee, numbers};
use vocab::{HorizonHours, MilliGpus, NodeId};

impl From<&Limit> for LimitRecord {
    fn from(limit: &Limit) -> Self {
        Self { hours: u64::from(limit.hours.get()), quota_milli: limit.quota.milli() }
    }
}

impl TryFrom<&LimitRecord> for Limit {
    type Error = FieldFault;

    fn try_from(record: &LimitRecord) -> Result<Self, FieldFault> {
        let quota = MilliGpus::from_milli(record.quota_milli);
        let quota = quota.map_err(|fault| FieldFault::new("/quota_milli", fault))?;
        Ok(Self { hours: Place("").hours("hours", record.hours)?, quota })
    }
}

impl From<Guarantee> for GuaranteeRecord {
    fn from(guarantee: Guarantee) -> Self {
        Self { hours: u64::from(guarantee.hours.get()), until_unix_s: guarantee.until.get() }
    }
}

impl TryFrom<GuaranteeRecord> for Guarantee {
    type Error = FieldFault;

    fn try_from(record: GuaranteeRecord) -> Result<Self, FieldFault> {
        let hours = HorizonHours::new(record.hours).map_err(|fault| FieldFault::new("/guarantee/hours", fault))?;
        Ok(Self { hours, until: time("/guarantee/until_unix_s", record.until_unix_s)? })
    }
}

impl From<&(NodeId, GpuPlace)> for PlaceRecord {
    fn from((node, gpus): &(NodeId, GpuPlace)) -> Self {
        let node = node.to_string();
        match gpus {
            GpuPlace::Share { gpu, milli } => Self { node, gpus: vec![*gpu], share_milli: Some(*milli) },
            GpuPlace::Whole { mask } => {
                Self { node, gpus: numbers(*mask).map(|number| number as u8).collect(), share_milli: None }
            }
        }
    }
}

impl TryFrom<&PlaceRecord> for (NodeId, GpuPlace) {
    type Error = FieldFault;

    fn try_from(record: &PlaceRecord) -> Result<Self, FieldFault> {
        let place = Place("/places");
        let node = place.name("node", &record.node, NodeId::parse)?;
        let refused = || place.fault("gpus", "GPUs are numbered from 0 to 63, and a share is of one");
        if record.gpus.iter().any(|gpu| u16::from(*gpu) >= GpuRequest::MOST) {
            return Err(refused());
        }
        let gpus = match (record.share_milli, record.gpus.as_slice()) {
            (Some(milli @ 1..1_000), [gpu]) => GpuPlace::Share { gpu: *gpu, milli },
            (Some(_), _) => return Err(refused()),
            (None, gpus) => GpuPlace::Whole { mask: gpus.iter().fold(0, |mask, gpu| mask | 1 << gpu) },
        };
        Ok((node, gpus))
    }
}
