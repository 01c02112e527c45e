//! A history on disk, series after series, for trainings of more series than fit in memory.

use crate::error::TrainingError;
use crate::usage::Usage;
use datasets::{Calendar, Falls, Panel, PanelBuilder};
use forecaster::{History, HistoryFault};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use store::Cluster;
use vocab::{ClusterName, HourDemand, HourStart, MilliGpus, PoolId, SeriesId};

/// An hour of a series: thousandths of a GPU plus one; zero is a gap.
const BYTES_PER_PEAK: usize = 8;
const GAP: u64 = 0;
/// After all peaks of a series: how far each hour had fallen by its end, in GPUs.
const BYTES_PER_FALL: usize = 4;
const BYTES_PER_HOUR: usize = BYTES_PER_PEAK + BYTES_PER_FALL;

/// The demand of a cluster in a file without a name: it is gone with the program, however that ends.
#[derive(Debug)]
pub struct Spool {
    cluster: ClusterName,
    calendar: Calendar,
    start: HourStart,
    hours: usize,
    /// In the order of the file.
    ids: Vec<SeriesId>,
    file: File,
    series_per_part: usize,
}

/// Writes series as the rows come.
struct Writing {
    start: HourStart,
    hours: usize,
    ids: Vec<SeriesId>,
    one: Vec<(u64, f32)>,
    bytes: Vec<u8>,
    to: BufWriter<File>,
    fault: Option<std::io::Error>,
}

impl Writing {
    fn row(&mut self, series: &SeriesId, hour: HourStart, demand: HourDemand) {
        if self.ids.last() != Some(series) {
            self.flush();
            self.ids.push(series.clone());
            self.one = vec![(GAP, 0.0); self.hours];
        }
        let place = usize::try_from(hour.hours_since(self.start)).ok();
        if let Some(slot) = place.and_then(|place| self.one.get_mut(place)) {
            *slot = (demand.peak.milli() + 1, demand.fallen_gpus() as f32);
        }
    }

    fn flush(&mut self) {
        let peaks = self.one.iter().flat_map(|(peak, _)| peak.to_le_bytes());
        let falls = self.one.iter().flat_map(|(_, fallen_gpus)| fallen_gpus.to_le_bytes());
        self.bytes.clear();
        self.bytes.extend(peaks.chain(falls));
        if let Err(fault) = self.to.write_all(&self.bytes) {
            self.fault.get_or_insert(fault);
        }
    }
}

impl Spool {
    /// Copies the usage of a cluster in the hours from `start` to before `end` into a file in the folder for temporary files.
    /// Parts have so many series that each takes about `part_bytes` in memory.
    ///
    /// # Errors
    /// The database does not answer, or the disk is full.
    pub async fn fill(
        usage: Usage<'_>,
        cluster: &Cluster,
        calendar: Calendar,
        [start, end]: [HourStart; 2],
        part_bytes: usize,
    ) -> Result<Self, TrainingError> {
        let folder = std::env::temp_dir();
        let of_disk = |fault: std::io::Error| TrainingError::Spool { folder: folder.clone(), why: fault.to_string() };
        let file = tempfile::tempfile_in(&folder).map_err(of_disk)?;
        let hours = usize::try_from(end.hours_since(start)).unwrap_or(0);
        let mut writing = Writing {
            start,
            hours,
            ids: Vec::new(),
            one: Vec::new(),
            bytes: Vec::new(),
            to: BufWriter::new(file),
            fault: None,
        };
        let sink = &mut |series: &SeriesId, hour: HourStart, demand: HourDemand| writing.row(series, hour, demand);
        usage.load(&cluster.name, [start, end], sink).await?;
        writing.flush();
        let Writing { ids, to, fault, .. } = writing;
        fault.map_or(Ok(()), Err).map_err(of_disk)?;
        let file = to.into_inner().map_err(|fault| of_disk(fault.into_error()))?;
        // Demand, marks, and the bytes that they are read from.
        let of_series = hours * (8 + 1 + BYTES_PER_HOUR);
        let series_per_part = (part_bytes / of_series.max(1)).max(1);
        Ok(Self { cluster: cluster.name.clone(), calendar, start, hours, ids, file, series_per_part })
    }

    /// First hour.
    #[must_use]
    pub const fn start(&self) -> HourStart {
        self.start
    }

    /// The hour after the last one.
    #[must_use]
    pub fn end(&self) -> HourStart {
        self.start.plus_hours(self.hours as i64)
    }

    /// Pools with a series.
    #[must_use]
    pub fn pools(&self) -> BTreeSet<PoolId> {
        self.ids.iter().map(|id| id.pool.clone()).collect()
    }

    /// All series in the hours from `from` on, and the digest of the whole history as
    /// [`history::sha256`](crate::history::sha256) has it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn recent(&self, from: HourStart) -> Result<(Panel, [u8; 32]), HistoryFault> {
        let (mut recent, mut hash): (Option<Panel>, Sha256) = (None, Sha256::new());
        let mut peaks = Vec::new();
        hash.update(self.start.unix_s().to_le_bytes());
        self.each(&mut |panel| {
            panel.series().iter().for_each(|series| crate::history::digest(series, panel.hours(), &mut hash));
            peaks.extend(panel.pool_peaks().iter().cloned());
            let part = panel.since(from);
            match &mut recent {
                Some(all) => all.append(part),
                None => recent = Some(part),
            }
        })?;
        for series in &peaks {
            crate::history::digest(series, self.hours, &mut hash);
        }
        let recent = recent.ok_or_else(|| HistoryFault { why: format!("cluster {} has no usage", self.cluster) })?;
        Ok((recent, hash.finalize().into()))
    }

    fn part(&self, ids: &[SeriesId], from: &mut impl Read) -> std::io::Result<Panel> {
        let mut builder = PanelBuilder::new(self.cluster.clone(), self.calendar.clone(), self.start, self.end());
        let mut bytes = vec![0; self.hours * BYTES_PER_HOUR];
        for id in ids {
            from.read_exact(&mut bytes)?;
            let (peaks, falls) = bytes.split_at(self.hours * BYTES_PER_PEAK);
            let hours = || peaks.as_chunks().0.iter().map(|hour| u64::from_le_bytes(*hour));
            let gpus =
                hours().map(|hour| MilliGpus::from_milli(hour.saturating_sub(1)).map_or(0.0, MilliGpus::as_gpus));
            let (demand_gpus, measured) = (gpus.collect(), hours().map(|hour| hour != GAP).collect());
            let falls = falls.as_chunks().0.iter().map(|fall| f32::from_le_bytes(*fall));
            let falls: Falls = (0..).zip(falls).filter(|(_, fallen_gpus)| *fallen_gpus > 0.0).collect();
            builder.push_series(id.clone(), demand_gpus, measured, falls).map_err(std::io::Error::other)?;
        }
        builder.finish_measured().map_err(std::io::Error::other)
    }
}

impl History for Spool {
    fn each(&self, visit: &mut dyn FnMut(&Panel)) -> Result<(), HistoryFault> {
        let read = |visit: &mut dyn FnMut(&Panel)| -> std::io::Result<()> {
            let mut file = &self.file;
            file.rewind()?;
            let mut from = BufReader::with_capacity(1 << 20, file);
            for ids in self.ids.chunks(self.series_per_part) {
                visit(&self.part(ids, &mut from)?);
            }
            Ok(())
        };
        read(visit).map_err(|fault| HistoryFault { why: fault.to_string() })
    }
}
