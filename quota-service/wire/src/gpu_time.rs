//! Accounts of GPU time as they are stored: integers of thousandths of a GPU times seconds. Fields that an older program did not
//! write are zero; zero is not written.

use crate::choices::TaskClassBody;
use crate::fact::GuaranteeRecord;
use crate::fault::{FieldFault, Place, time};
use accounts::{Caused, Day, DayAccounts, GpuTime, Line, Open, Parts, Periods, PoolLine, Totals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vocab::{Organization, TaskId};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// [`Periods`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodsRecord {
    /// Their number.
    pub count: u64,
    /// GPU time that they promised.
    pub promised: u64,
    /// GPU time that they had lasted.
    pub served: u64,
}

impl PeriodsRecord {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// [`Caused`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CausedRecord {
    /// Evicted runs.
    pub evictions: u64,
    /// Those inside a guarantee.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u64,
    /// Work since the last checkpoint.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

/// [`Line`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineRecord {
    /// HP tasks.
    #[serde(skip_serializing_if = "is_zero")]
    pub hp: u64,
    /// Spot inside its guarantee.
    #[serde(skip_serializing_if = "is_zero")]
    pub guaranteed: u64,
    /// Spot at will.
    #[serde(skip_serializing_if = "is_zero")]
    pub at_will: u64,
    /// GPUs that victims still leave.
    #[serde(skip_serializing_if = "is_zero")]
    pub handover: u64,
    /// Work that evictions cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_to_evictions: u64,
    /// Work that lost nodes cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_to_nodes: u64,
    /// Kept promises.
    #[serde(skip_serializing_if = "PeriodsRecord::is_empty")]
    pub kept: PeriodsRecord,
    /// Broken promises.
    #[serde(skip_serializing_if = "PeriodsRecord::is_empty")]
    pub broken: PeriodsRecord,
    /// Promises that ended otherwise.
    #[serde(skip_serializing_if = "PeriodsRecord::is_empty")]
    pub voided: PeriodsRecord,
    /// Evictions by the organization of the HP task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub evicted_by: BTreeMap<String, CausedRecord>,
}

/// [`PoolLine`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolLineRecord {
    /// GPUs of all nodes.
    pub capacity: u64,
    /// Idle within the quota.
    pub idle_offered: u64,
    /// Idle beyond the quota.
    pub idle_reserved: u64,
    /// Idle on nodes that take no pods.
    pub drained: u64,
    /// Kept for HP beyond its demand.
    pub over_reserved: u64,
}

/// [`DayAccounts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayRecord {
    /// Seconds that were accounted for.
    pub accounted_s: u64,
    /// By organization.
    pub organizations: BTreeMap<String, LineRecord>,
    /// GPU time that no organization held.
    pub pool: PoolLineRecord,
}

/// [`Totals`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TotalsRecord {
    /// Of all organizations.
    pub line: LineRecord,
    /// GPU time that no organization held.
    pub pool: PoolLineRecord,
}

/// [`Open`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRecord {
    /// The organization.
    pub organization: String,
    /// The class.
    pub class: TaskClassBody,
    /// Thousandths of a GPU that it keeps.
    pub core_milli: u64,
    /// Thousandths of a GPU that it is lent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lent_milli: u64,
    /// From when on its time is not in the sums.
    pub since_unix_s: i64,
    /// When its GPUs are free.
    pub starts_unix_s: i64,
    /// Its promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<GuaranteeRecord>,
}

/// [`Parts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountsRecord {
    /// When the accounts began.
    pub begun_unix_s: Option<i64>,
    /// Up to when the sums are complete.
    pub now_unix_s: Option<i64>,
    /// Tasks that run.
    pub open: BTreeMap<String, OpenRecord>,
    /// The present day.
    pub today: DayRecord,
    /// Days that are over and not stored yet, by their number since 1970-01-01.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub final_days: BTreeMap<i64, DayRecord>,
    /// Sums of all days that are over.
    pub before: TotalsRecord,
}

const fn spent(milli_gpu_s: u64) -> GpuTime {
    GpuTime::from_milli_gpu_s(milli_gpu_s)
}

impl From<&Periods> for PeriodsRecord {
    fn from(periods: &Periods) -> Self {
        let [promised, served] = [periods.promised, periods.served].map(GpuTime::milli_gpu_s);
        Self { count: periods.count, promised, served }
    }
}

impl From<&PeriodsRecord> for Periods {
    fn from(record: &PeriodsRecord) -> Self {
        Self { count: record.count, promised: spent(record.promised), served: spent(record.served) }
    }
}

impl From<&Line> for LineRecord {
    fn from(line: &Line) -> Self {
        let caused = |(by, caused): (&Organization, &Caused)| {
            let Caused { evictions, broken, lost } = *caused;
            (by.to_string(), CausedRecord { evictions, broken, lost: lost.milli_gpu_s() })
        };
        Self {
            hp: line.hp.milli_gpu_s(),
            guaranteed: line.guaranteed.milli_gpu_s(),
            at_will: line.at_will.milli_gpu_s(),
            handover: line.handover.milli_gpu_s(),
            lost_to_evictions: line.lost_to_evictions.milli_gpu_s(),
            lost_to_nodes: line.lost_to_nodes.milli_gpu_s(),
            kept: (&line.kept).into(),
            broken: (&line.broken).into(),
            voided: (&line.voided).into(),
            evicted_by: line.evicted_by.iter().map(caused).collect(),
        }
    }
}

fn organization(name: &str) -> Result<Organization, FieldFault> {
    Place("").name("organization", name, Organization::parse)
}

impl TryFrom<&LineRecord> for Line {
    type Error = FieldFault;

    fn try_from(record: &LineRecord) -> Result<Self, FieldFault> {
        let caused = |(by, caused): (&String, &CausedRecord)| {
            let CausedRecord { evictions, broken, lost } = *caused;
            Ok((organization(by)?, Caused { evictions, broken, lost: spent(lost) }))
        };
        Ok(Self {
            hp: spent(record.hp),
            guaranteed: spent(record.guaranteed),
            at_will: spent(record.at_will),
            handover: spent(record.handover),
            lost_to_evictions: spent(record.lost_to_evictions),
            lost_to_nodes: spent(record.lost_to_nodes),
            kept: (&record.kept).into(),
            broken: (&record.broken).into(),
            voided: (&record.voided).into(),
            evicted_by: record.evicted_by.iter().map(caused).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&PoolLine> for PoolLineRecord {
    fn from(line: &PoolLine) -> Self {
        Self {
            capacity: line.capacity.milli_gpu_s(),
            idle_offered: line.idle_offered.milli_gpu_s(),
            idle_reserved: line.idle_reserved.milli_gpu_s(),
            drained: line.drained.milli_gpu_s(),
            over_reserved: line.over_reserved.milli_gpu_s(),
        }
    }
}

impl From<&PoolLineRecord> for PoolLine {
    fn from(record: &PoolLineRecord) -> Self {
        Self {
            capacity: spent(record.capacity),
            idle_offered: spent(record.idle_offered),
            idle_reserved: spent(record.idle_reserved),
            drained: spent(record.drained),
            over_reserved: spent(record.over_reserved),
        }
    }
}

impl From<&DayAccounts> for DayRecord {
    fn from(day: &DayAccounts) -> Self {
        let line = |(name, line): (&Organization, &Line)| (name.to_string(), line.into());
        Self {
            accounted_s: day.accounted_s,
            organizations: day.organizations.iter().map(line).collect(),
            pool: (&day.pool).into(),
        }
    }
}

impl TryFrom<&DayRecord> for DayAccounts {
    type Error = FieldFault;

    fn try_from(record: &DayRecord) -> Result<Self, FieldFault> {
        let line = |(name, line): (&String, &LineRecord)| Ok((organization(name)?, Line::try_from(line)?));
        Ok(Self {
            accounted_s: record.accounted_s,
            organizations: record.organizations.iter().map(line).collect::<Result<_, FieldFault>>()?,
            pool: (&record.pool).into(),
        })
    }
}

impl From<&Open> for OpenRecord {
    fn from(open: &Open) -> Self {
        Self {
            organization: open.organization.to_string(),
            class: open.class.into(),
            core_milli: open.core_milli,
            lent_milli: open.lent_milli,
            since_unix_s: open.since.get(),
            starts_unix_s: open.starts.get(),
            guarantee: open.guarantee.map(Into::into),
        }
    }
}

impl TryFrom<&OpenRecord> for Open {
    type Error = FieldFault;

    fn try_from(record: &OpenRecord) -> Result<Self, FieldFault> {
        Ok(Self {
            organization: organization(&record.organization)?,
            class: record.class.into(),
            core_milli: record.core_milli,
            lent_milli: record.lent_milli,
            since: time("/since_unix_s", record.since_unix_s)?,
            starts: time("/starts_unix_s", record.starts_unix_s)?,
            guarantee: record.guarantee.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<&Parts> for AccountsRecord {
    fn from(parts: &Parts) -> Self {
        Self {
            begun_unix_s: parts.begun.map(vocab::UnixSeconds::get),
            now_unix_s: parts.now.map(vocab::UnixSeconds::get),
            open: parts.open.iter().map(|(task, open)| (task.to_string(), open.into())).collect(),
            today: (&parts.today).into(),
            final_days: parts.final_days.iter().map(|(day, of)| (day.number(), of.into())).collect(),
            before: TotalsRecord { line: (&parts.before.line).into(), pool: (&parts.before.pool).into() },
        }
    }
}

impl TryFrom<&AccountsRecord> for Parts {
    type Error = FieldFault;

    fn try_from(record: &AccountsRecord) -> Result<Self, FieldFault> {
        let open = |(task, open): (&String, &OpenRecord)| {
            Ok((Place("/open").name("task", task, TaskId::parse)?, Open::try_from(open)?))
        };
        let day = |(number, day): (&i64, &DayRecord)| Ok((Day::from_number(*number), DayAccounts::try_from(day)?));
        Ok(Self {
            begun: record.begun_unix_s.map(|at| time("/begun_unix_s", at)).transpose()?,
            now: record.now_unix_s.map(|at| time("/now_unix_s", at)).transpose()?,
            open: record.open.iter().map(open).collect::<Result<_, FieldFault>>()?,
            today: (&record.today).try_into()?,
            final_days: record.final_days.iter().map(day).collect::<Result<_, FieldFault>>()?,
            before: Totals { line: (&record.before.line).try_into()?, pool: (&record.before.pool).into() },
        })
    }
}
