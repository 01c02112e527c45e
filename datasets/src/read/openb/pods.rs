//! `openb_pod_list_*.csv`: all eleven columns (default, cpu*, gpushare*, gpuspec*), the first five (multigpu*), or no memory
//! (nomem*).

use super::Listed;
use crate::read::names::Names;
use crate::read::table::{Extra, Row, Table};
use crate::read::{ReadError, RowFault};
use std::collections::BTreeSet;
use std::path::Path;
use vocab::{GpuModel, MilliGpus, NameError, TaskId};

const COLUMNS: [&str; 4] = ["name", "cpu_milli", "num_gpu", "gpu_milli"];
const OPTIONAL: [&str; 7] =
    ["memory_mib", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"];
/// Thousandths of a whole GPU.
const WHOLE: u64 = MilliGpus::PER_GPU;
/// CPUs, memory and GPUs above this are a mistake in their unit.
const MOST: u64 = u32::MAX as u64;
/// Some 30,000 years.
const SECONDS_MOST: u64 = 1_000_000_000_000;

/// GPUs that a pod asks for. No pod shares several GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuAsk {
    None,
    /// A part of one GPU: less than a whole, more than nothing.
    Share(MilliGpus),
    /// Whole GPUs, at least one.
    Whole(u32),
}

impl GpuAsk {
    /// From `num_gpu` and `gpu_milli`, the thousandths of each of them.
    fn of(num_gpu: u64, gpu_milli: u64) -> Result<Self, RowFault> {
        let fault = RowFault::GpuAsk { num_gpu, gpu_milli };
        match (num_gpu, gpu_milli) {
            (0, 0) => Ok(Self::None),
            (1, 1..WHOLE) => MilliGpus::from_milli(gpu_milli).map(Self::Share).map_err(|_| fault),
            (1.., WHOLE) => u32::try_from(num_gpu).map(Self::Whole).map_err(|_| fault),
            _ => Err(fault),
        }
    }

    /// Over all GPUs of the pod.
    #[must_use]
    pub const fn gpus(self) -> MilliGpus {
        match self {
            Self::None => MilliGpus::ZERO,
            Self::Share(part) => part,
            Self::Whole(gpus) => MilliGpus::from_gpus(gpus),
        }
    }
}

/// How the cluster treats a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// LS.
    LatencySensitive,
    /// BE.
    BestEffort,
    Burstable,
    Guaranteed,
}

impl Qos {
    fn parse(row: &Row<'_>) -> Result<Option<Self>, RowFault> {
        row.given("qos")
            .map(|text| match text {
                "LS" => Ok(Self::LatencySensitive),
                "BE" => Ok(Self::BestEffort),
                "Burstable" => Ok(Self::Burstable),
                "Guaranteed" => Ok(Self::Guaranteed),
                _ => Err(RowFault::Choice {
                    column: "qos",
                    text: text.to_owned(),
                    known: "LS, BE, Burstable, Guaranteed",
                }),
            })
            .transpose()
    }
}

/// The last state of a pod that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// In the published files these, and no others, were never scheduled.
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl PodPhase {
    fn parse(row: &Row<'_>) -> Result<Option<Self>, RowFault> {
        let known = "Pending, Running, Succeeded, Failed";
        row.given("pod_phase")
            .map(|text| match text {
                "Pending" => Ok(Self::Pending),
                "Running" => Ok(Self::Running),
                "Succeeded" => Ok(Self::Succeeded),
                "Failed" => Ok(Self::Failed),
                _ => Err(RowFault::Choice { column: "pod_phase", text: text.to_owned(), known }),
            })
            .transpose()
    }
}

/// A pod of the trace. What a variant does not have is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenbPod {
    /// Name of the pod.
    pub id: TaskId,
    /// Thousandths of a CPU.
    pub cpu_milli: u64,
    /// Requested memory in MiB.
    pub memory_mib: Option<u64>,
    /// Requested GPUs.
    pub gpus: GpuAsk,
    /// GPU models that it may run on; empty: any. The files name some twice.
    pub models: BTreeSet<GpuModel>,
    /// Quality of service, if stated.
    pub qos: Option<Qos>,
    /// Last phase, if stated.
    pub phase: Option<PodPhase>,
    /// Seconds from the start of the trace.
    pub created_s: Option<u64>,
    /// Time of scheduling, in seconds of the trace.
    pub scheduled_s: Option<u64>,
    /// Time of deletion, in seconds of the trace.
    pub deleted_s: Option<u64>,
}

/// Reads a list of pods: `name,cpu_milli,num_gpu,gpu_milli` and any of the other published columns, in any order. A pod
/// that stands there twice is counted once.
///
/// # Errors
/// The file cannot be read, its header lacks a column or has one that is not known, it has no rows, or a row is bad.
pub fn pods(file: &Path) -> Result<Listed<OpenbPod>, ReadError> {
    let (mut items, mut names) = (Vec::new(), Names::default());
    Table::open(file, &COLUMNS, Extra::Among(&OPTIONAL))?.each_good(|row| {
        let pod = parse(row)?;
        if names.is_new("name", pod.id.as_str(), row)? {
            items.push(pod);
        }
        Ok(())
    })?;
    if items.is_empty() {
        return Err(ReadError::NoRows { file: file.to_owned() });
    }
    Ok(Listed { items, equal_duplicates: names.equal_duplicates })
}

fn parse(row: &Row<'_>) -> Result<OpenbPod, RowFault> {
    let [created_s, scheduled_s, deleted_s] = times(row)?;
    Ok(OpenbPod {
        id: row.name("name", TaskId::parse)?,
        cpu_milli: row.within("cpu_milli", 0, MOST)?,
        memory_mib: row.optional("memory_mib", MOST)?,
        gpus: GpuAsk::of(row.within("num_gpu", 0, MOST)?, row.within("gpu_milli", 0, WHOLE)?)?,
        models: models(row)?,
        qos: Qos::parse(row)?,
        phase: PodPhase::parse(row)?,
        created_s,
        scheduled_s,
        deleted_s,
    })
}

/// `T4|V100M32`: the models that are acceptable.
fn models(row: &Row<'_>) -> Result<BTreeSet<GpuModel>, RowFault> {
    let fault = |fault: NameError| RowFault::Name { column: "gpu_spec".to_owned(), fault };
    row.given("gpu_spec")
        .into_iter()
        .flat_map(|text| text.split('|'))
        .map(|one| GpuModel::parse(one).map_err(fault))
        .collect()
}

/// Created, scheduled, deleted: those that are known come in this order.
fn times(row: &Row<'_>) -> Result<[Option<u64>; 3], RowFault> {
    const IN_ORDER: [&str; 3] = ["creation_time", "scheduled_time", "deletion_time"];
    let mut times = [None; 3];
    let mut before: Option<(&'static str, u64)> = None;
    for (time, column) in times.iter_mut().zip(IN_ORDER) {
        *time = row.optional(column, SECONDS_MOST)?;
        let Some(at_s) = *time else { continue };
        if let Some((earlier, earlier_s)) = before.filter(|(_, earlier_s)| *earlier_s > at_s) {
            return Err(RowFault::TimesSwapped { earlier, earlier_s, later: column, later_s: at_s });
        }
        before = Some((column, at_s));
    }
    Ok(times)
}
