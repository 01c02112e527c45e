//! Usage rows in any order, put in order on disk: a file may hold more rows than memory does.
//!
//! Rows wait in memory until there are many; then they are sorted and written into blocks, each of which holds the hours of one
//! series that stand beside each other. So rows by hour and rows by series cost about the same, and memory holds no more than the
//! waiting rows and the places of blocks.

mod fault;

pub use fault::SpoolError;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use vocab::{AmountError, HourDemand, HourStart, MilliGpus, SeriesId};

/// Hours of a block.
const BLOCK_HOURS: usize = 128;
/// Of an hour, in thousandths of a GPU plus one, peak (zero is a gap) and end (zero is not known), and where its row stands.
const CELL_WORDS: usize = 3;
const CELL_BYTES: usize = CELL_WORDS * 8;
const BLOCK_BYTES: usize = BLOCK_HOURS * CELL_BYTES;
/// Rows that wait in memory: 70 MB.
const ROWS_WAITING: usize = 1 << 21;
const HOUR_S: i64 = 3_600;
/// Bits of a row's number; those above number the file.
const ROW_BITS: u32 = 44;

/// Demand of the hours of one series, a gap where there is no row.
type Block = Vec<Option<HourDemand>>;

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPlace {
    /// Number of the file, from 0.
    pub file: u32,
    /// Number of the row in the file.
    pub row: u64,
}

impl RowPlace {
    const fn packed(self) -> u64 {
        (self.file as u64) << ROW_BITS | self.row & ((1 << ROW_BITS) - 1)
    }

    const fn unpacked(packed: u64) -> Self {
        Self { file: (packed >> ROW_BITS) as u32, row: packed & ((1 << ROW_BITS) - 1) }
    }
}

/// Two rows of one series and hour with different amounts; the first one stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Series of both.
    pub series: SeriesId,
    /// Hour of both.
    pub hour: HourStart,
    /// Place and demand of the first one.
    pub first: (RowPlace, HourDemand),
    /// Place and demand of the second one.
    pub second: (RowPlace, HourDemand),
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    series: u32,
    /// Since 1970.
    hour: u32,
    demand: HourDemand,
    place: u64,
}

/// Hours and blocks of one series.
#[derive(Debug, Default)]
struct OfSeries {
    /// Number of each run of hours that has a block, and of the block, rising.
    blocks: Vec<(u32, u32)>,
    rows: u64,
    /// First and last hour with a row.
    span: Option<(u32, u32)>,
}

/// Rows that are being gathered, in a file without a name: it is gone with the program, however that ends.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    file: File,
    blocks: u32,
    ids: Vec<SeriesId>,
    known: HashMap<SeriesId, u32>,
    series: Vec<OfSeries>,
    waiting: Vec<Waiting>,
    waiting_most: usize,
    equal_duplicates: u64,
    conflicts: Vec<Conflict>,
}

impl Spool {
    /// An empty one, with a file in `folder`.
    ///
    /// # Errors
    /// The folder takes no file.
    pub fn new(folder: &Path) -> Result<Self, SpoolError> {
        Self::with_rows_waiting(folder, ROWS_WAITING)
    }

    fn with_rows_waiting(folder: &Path, waiting_most: usize) -> Result<Self, SpoolError> {
        let file =
            tempfile::tempfile_in(folder).map_err(|source| SpoolError::Io { folder: folder.to_owned(), source })?;
        Ok(Self {
            folder: folder.to_owned(),
            file,
            blocks: 0,
            ids: Vec::new(),
            known: HashMap::new(),
            series: Vec::new(),
            waiting: Vec::new(),
            waiting_most,
            equal_duplicates: 0,
            conflicts: Vec::new(),
        })
    }

    /// The number of a series, for [`add`](Self::add).
    pub fn number(&mut self, id: &SeriesId) -> u32 {
        if let Some(number) = self.known.get(id) {
            return *number;
        }
        let number = self.ids.len() as u32;
        self.ids.push(id.clone());
        self.known.insert(id.clone(), number);
        self.series.push(OfSeries::default());
        number
    }

    /// Keeps a row of a numbered series.
    ///
    /// # Errors
    /// The disk is full.
    pub fn add(&mut self, series: u32, hour: HourStart, demand: HourDemand, place: RowPlace) -> Result<(), SpoolError> {
        let hour = (hour.unix_s() / HOUR_S) as u32;
        self.waiting.push(Waiting { series, hour, demand, place: place.packed() });
        if self.waiting.len() >= self.waiting_most { self.settle() } else { Ok(()) }
    }

    /// Whether two rows contradict each other, as far as is known.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// Writes the waiting rows into their blocks.
    fn settle(&mut self) -> Result<(), SpoolError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|row| (row.series, row.hour, row.place));
        let run = |row: &Waiting| (row.series, row.hour / BLOCK_HOURS as u32);
        let mut bytes = [0; BLOCK_BYTES];
        for rows in waiting.chunk_by(|one, other| run(one) == run(other)) {
            let (series, run) = run(&rows[0]);
            let blocks = &self.series[series as usize].blocks;
            let found = blocks.binary_search_by_key(&run, |(run, _)| *run);
            let block = match found {
                Ok(place) => blocks[place].1,
                Err(_) => self.blocks,
            };
            match found {
                Ok(_) => self.read(block, &mut bytes)?,
                Err(_) => bytes.fill(0),
            }
            rows.iter().try_for_each(|row| self.put(row, &mut bytes))?;
            self.write(block, &bytes)?;
            if let Err(place) = found {
                self.series[series as usize].blocks.insert(place, (run, block));
                self.blocks += 1;
            }
        }
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    /// Puts a row into its block.
    fn put(&mut self, row: &Waiting, bytes: &mut [u8; BLOCK_BYTES]) -> Result<(), SpoolError> {
        let cells = bytes.as_chunks_mut::<8>().0;
        let first = CELL_WORDS * (row.hour as usize % BLOCK_HOURS);
        let cell = &mut cells[first..first + CELL_WORDS];
        if let Some(known) = demand_of(cell)? {
            if let Some(both) = known.joined(row.demand) {
                self.equal_duplicates += 1;
                put_demand(both, cell);
            } else {
                let of_cell = RowPlace::unpacked(u64::from_le_bytes(cell[CELL_WORDS - 1]));
                let (series, hour) = (self.ids[row.series as usize].clone(), hour_of(row.hour));
                let (first, second) = ((of_cell, known), (RowPlace::unpacked(row.place), row.demand));
                self.conflicts.push(Conflict { series, hour, first, second });
            }
        } else {
            put_demand(row.demand, cell);
            cell[CELL_WORDS - 1] = row.place.to_le_bytes();
            let of_series = &mut self.series[row.series as usize];
            of_series.rows += 1;
            let (first, last) = of_series.span.unwrap_or((row.hour, row.hour));
            of_series.span = Some((first.min(row.hour), last.max(row.hour)));
        }
        Ok(())
    }

    fn read(&self, block: u32, bytes: &mut [u8; BLOCK_BYTES]) -> Result<(), SpoolError> {
        let mut file = &self.file;
        let read = file.seek(SeekFrom::Start(u64::from(block) * BLOCK_BYTES as u64));
        read.and_then(|_| file.read_exact(bytes)).map_err(|source| self.fault(source))
    }

    fn write(&self, block: u32, bytes: &[u8; BLOCK_BYTES]) -> Result<(), SpoolError> {
        let mut file = &self.file;
        let written = file.seek(SeekFrom::Start(u64::from(block) * BLOCK_BYTES as u64));
        written.and_then(|_| file.write_all(bytes)).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: std::io::Error) -> SpoolError {
        SpoolError::Io { folder: self.folder.clone(), source }
    }

    /// All rows, in order.
    ///
    /// # Errors
    /// The disk is full.
    pub fn finish(mut self) -> Result<Spooled, SpoolError> {
        self.settle()?;
        (self.waiting, self.known) = (Vec::new(), HashMap::new());
        self.conflicts.sort_by_key(|conflict| conflict.second.0);
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        order.retain(|number| self.series[*number as usize].rows > 0);
        order.sort_unstable_by_key(|number| &self.ids[*number as usize]);
        Ok(Spooled { spool: self, order })
    }
}

/// The demand in a cell; `None` in a gap.
fn demand_of(cell: &[[u8; 8]]) -> Result<Option<HourDemand>, AmountError> {
    let amount = |word: usize| match u64::from_le_bytes(cell[word]) {
        0 => Ok(None),
        stored => MilliGpus::from_milli(stored - 1).map(Some),
    };
    let at_end = amount(1)?;
    Ok(amount(0)?.map(|peak| HourDemand { peak, at_end }))
}

fn put_demand(demand: HourDemand, cell: &mut [[u8; 8]]) {
    let stored = |amount: Option<MilliGpus>| amount.map_or(0, |amount| amount.milli() + 1).to_le_bytes();
    cell[0] = stored(Some(demand.peak));
    cell[1] = stored(demand.at_end);
}

fn hour_of(hour: u32) -> HourStart {
    HourStart::from_unix_s(i64::from(hour) * HOUR_S).expect("it was an hour")
}

/// Receives the rows of a series.
pub type SeriesSink<'a> = &'a mut dyn FnMut(&SeriesId, HourStart, HourDemand);

/// Rows in order.
#[derive(Debug)]
pub struct Spooled {
    spool: Spool,
    /// Numbers of the series with a row, by id.
    order: Vec<u32>,
}

/// Facts of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpooledSeries<'a> {
    /// The series.
    pub id: &'a SeriesId,
    /// Its rows, each hour once.
    pub rows: u64,
    /// Its first and last hour with a row.
    pub span: (HourStart, HourStart),
}

impl Spooled {
    /// The series with a row, by id.
    pub fn series(&self) -> impl Iterator<Item = SpooledSeries<'_>> {
        let of = |number: &u32| {
            let known = &self.spool.series[*number as usize];
            let (first, last) = known.span.unwrap_or_default();
            let span = (hour_of(first), hour_of(last));
            SpooledSeries { id: &self.spool.ids[*number as usize], rows: known.rows, span }
        };
        self.order.iter().map(of)
    }

    /// Rows that repeat an earlier one.
    #[must_use]
    pub const fn equal_duplicates(&self) -> u64 {
        self.spool.equal_duplicates
    }

    /// Rows that contradict an earlier one and were left out, in the order of the files.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.spool.conflicts
    }

    /// Passes the rows of the series that are `wanted` on, series by series, hours rising.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn each_series(&self, wanted: impl Fn(&SeriesId) -> bool, sink: SeriesSink<'_>) -> Result<(), SpoolError> {
        for number in &self.order {
            let id = &self.spool.ids[*number as usize];
            if !wanted(id) {
                continue;
            }
            for (run, block) in &self.spool.series[*number as usize].blocks {
                let first = run * BLOCK_HOURS as u32;
                for (hour, cell) in (first..).zip(self.amounts(*block)?) {
                    if let Some(demand) = cell {
                        sink(id, hour_of(hour), demand);
                    }
                }
            }
        }
        Ok(())
    }

    /// All rows, hour by hour, series by id.
    #[must_use]
    pub fn hours(&self) -> Hours<'_> {
        let blocks = self.order.iter().flat_map(|number| &self.spool.series[*number as usize].blocks);
        let mut runs: Vec<u32> = blocks.map(|(run, _)| *run).collect();
        runs.sort_unstable();
        runs.dedup();
        Hours { spooled: self, runs: runs.into_iter(), run: 0, of_run: Vec::new(), place: BLOCK_HOURS }
    }

    /// The blocks of a run of hours, with their series.
    fn of_run(&self, run: u32) -> Result<Vec<(&SeriesId, Block)>, SpoolError> {
        let mut of_run = Vec::with_capacity(self.order.len());
        for number in &self.order {
            let blocks = &self.spool.series[*number as usize].blocks;
            if let Ok(place) = blocks.binary_search_by_key(&run, |(run, _)| *run) {
                of_run.push((&self.spool.ids[*number as usize], self.amounts(blocks[place].1)?));
            }
        }
        Ok(of_run)
    }

    /// The amounts of a block.
    fn amounts(&self, block: u32) -> Result<Block, SpoolError> {
        let mut bytes = [0; BLOCK_BYTES];
        self.spool.read(block, &mut bytes)?;
        bytes.as_chunks::<8>().0.chunks(CELL_WORDS).map(|cell| Ok(demand_of(cell)?)).collect()
    }
}

/// The rows of one hour, by series.
pub type HourRows<'a> = (HourStart, Vec<(&'a SeriesId, HourDemand)>);

/// Rows hour by hour. Holds one block of each series.
#[derive(Debug)]
pub struct Hours<'a> {
    spooled: &'a Spooled,
    runs: std::vec::IntoIter<u32>,
    run: u32,
    of_run: Vec<(&'a SeriesId, Block)>,
    /// Of the next hour in its run.
    place: usize,
}

impl<'a> Iterator for Hours<'a> {
    type Item = Result<HourRows<'a>, SpoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.place == BLOCK_HOURS {
                self.run = self.runs.next()?;
                match self.spooled.of_run(self.run) {
                    Ok(of_run) => (self.of_run, self.place) = (of_run, 0),
                    Err(fault) => return Some(Err(fault)),
                }
            }
            let place = self.place;
            self.place += 1;
            let rows: Vec<_> = self.of_run.iter().filter_map(|(id, amounts)| Some((*id, amounts[place]?))).collect();
            if !rows.is_empty() {
                return Some(Ok((hour_of(self.run * BLOCK_HOURS as u32 + place as u32), rows)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
