//! Reservations in a replay: windows that are sold ahead, and the HP jobs that come in them.

use crate::world::{Job, World};
use datasets::Calendar;
use placement::fleet::{Gang, GpuRequest, PodRequest};
use placement::pool::{Pool, Request};
use placement::windows::Windows;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vocab::{Organization, PoolId, Reservation, ReservedWindow, TaskClass, TaskId, UnixSeconds};
use wire::ReservationRequest;

/// Why a file of reservations is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReservationsFault {
    #[error("{}: {fault}: name a file that can be read", file.display())]
    Read { file: PathBuf, fault: std::io::Error },
    #[error("{}: {detail}: write a JSON list of what POST /v1/reservations takes", file.display())]
    Form { file: PathBuf, detail: String },
    #[error("{}: reservation {number}: {detail}", file.display())]
    Reservation { file: PathBuf, number: usize, detail: String },
    #[error("--reservations: the trace has no pool {pool}: there are {pools}")]
    NoPool { pool: PoolId, pools: String },
}

/// Use of reserved GPUs by spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backfill {
    /// All of them, until each window begins.
    Edge,
    /// Nothing at any time.
    Nothing,
    /// Nobody knows of the windows.
    Unannounced,
}

impl Backfill {
    /// Reads the value of the flag.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "none" => Self::Nothing,
            "unannounced" => Self::Unannounced,
            _ => Self::Edge,
        }
    }
}

/// The reservations of a file.
///
/// # Errors
/// The file cannot be read, or one of them is refused.
pub fn read(file: &Path, calendar: &Calendar) -> Result<Vec<Reservation>, ReservationsFault> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|fault| ReservationsFault::Read { file: file.to_owned(), fault })?;
    let form = |fault: serde_json::Error| ReservationsFault::Form { file: file.to_owned(), detail: fault.to_string() };
    let requests: Vec<ReservationRequest> = wire::from_json(&text).map_err(form)?;
    let one = |(number, request): (usize, ReservationRequest)| {
        let refused = |detail: String| ReservationsFault::Reservation { file: file.to_owned(), number, detail };
        let reservation = request.parse().map_err(|fault| refused(fault.to_string()))?;
        datasets::reservations::check(&reservation, calendar.zone()).map_err(|fault| refused(fault.to_string()))?;
        Ok(reservation)
    };
    (1..).zip(requests).map(one).collect()
}

impl World {
    /// Sells windows ahead. While jobs of the trace come, HP jobs of whole nodes fill each window from its begin to its end.
    ///
    /// # Errors
    /// The trace does not have the pool of one of them.
    pub fn reserve(
        &mut self,
        reservations: &[Reservation],
        backfill: Backfill,
        calendar: &Calendar,
    ) -> Result<(), ReservationsFault> {
        let (Some(first), Some(last)) = (self.jobs.first(), self.jobs.last()) else { return Ok(()) };
        let (begin, end) = (first.request.submitted, last.request.submitted);
        for (number, reservation) in reservations.iter().enumerate() {
            let pool = self.pools.iter().position(|(id, _)| *id == reservation.pool);
            let pool = pool.ok_or_else(|| self.no_pool(&reservation.pool))?;
            let windows = datasets::reservations::windows(reservation, calendar.zone(), begin, end);
            let windows: Vec<_> = windows.into_iter().filter(|window| begin <= window.from).collect();
            for (of, window) in windows.iter().enumerate() {
                self.fill(pool, window, &format!("reserved-{number}-{of}"));
            }
            self.windows.extend(windows.into_iter().map(|window| (pool, window)));
        }
        match backfill {
            Backfill::Edge => {}
            Backfill::Nothing => self.keep_always(begin, end),
            Backfill::Unannounced => self.windows.clear(),
        }
        self.sort_jobs();
        Ok(())
    }

    /// In place of its windows, each organization has the most GPUs of them at all times.
    fn keep_always(&mut self, begin: UnixSeconds, end: UnixSeconds) {
        let mut of_each: BTreeMap<(usize, Organization), Windows> = BTreeMap::new();
        for (pool, window) in self.windows.drain(..) {
            of_each.entry((pool, window.organization.clone())).or_default().all.push(window);
        }
        let always = |((pool, organization), windows): ((usize, Organization), Windows)| {
            (pool, ReservedWindow { from: begin, to: end, organization, gpus: windows.within(begin, end).gpus })
        };
        self.windows = of_each.into_iter().map(always).collect();
    }

    fn no_pool(&self, pool: &PoolId) -> ReservationsFault {
        let pools: Vec<String> = self.pools.iter().map(|(id, _)| id.to_string()).collect();
        ReservationsFault::NoPool { pool: pool.clone(), pools: pools.join(", ") }
    }

    /// HP jobs of a whole node each, and one of the rest.
    fn fill(&mut self, pool: usize, window: &ReservedWindow, name: &str) {
        let most = self.pools[pool].1.iter().map(|node| node.gpus).max().unwrap_or(1).min(u32::from(GpuRequest::MOST));
        let mut left = u32::try_from(window.gpus.milli() / 1_000).unwrap_or(u32::MAX);
        let mut number = 0;
        while left > 0 {
            let gpus = left.min(most);
            left -= gpus;
            number += 1;
            let Ok(task) = TaskId::parse(&format!("{name}-{number}")) else { return };
            let pod = PodRequest::new(GpuRequest::Whole(gpus as u16), 0, 0);
            let gang = Gang { task: task.clone(), class: TaskClass::Hp, pod, pods: 1 };
            let organization = window.organization.clone();
            let request = Request { gang, organization, submitted: window.from, hours: None, elastic: None };
            self.jobs.push(Job { request, duration_s: window.to.since_s(window.from) });
            self.pool_of.push(pool as u32);
            self.reserved.insert(task);
        }
    }

    fn sort_jobs(&mut self) {
        let mut both: Vec<(Job, u32)> = self.jobs.drain(..).zip(self.pool_of.drain(..)).collect();
        both.sort_by(|(one, _), (other, _)| {
            (one.request.submitted, &one.request.gang.task).cmp(&(other.request.submitted, &other.request.gang.task))
        });
        (self.jobs, self.pool_of) = both.into_iter().unzip();
    }

    /// Tells each pool its windows.
    pub fn tell_windows(&self, pools: &mut [Pool]) {
        for (number, pool) in pools.iter_mut().enumerate() {
            let of_pool = self.windows.iter().filter(|(of, _)| *of == number);
            pool.set_windows(of_pool.map(|(_, window)| window.clone()).collect());
        }
    }

    /// When windows change what a pool decides, with its place in `pools`.
    pub fn window_changes(&self, notice_s: i64) -> impl Iterator<Item = (usize, UnixSeconds)> {
        self.windows.iter().flat_map(move |(pool, window)| [(*pool, window.from.plus_s(-notice_s)), (*pool, window.to)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"cluster":"trace","gpu_model":"V100","organization":"lab","gpus":8,"from":"2026-03-02T09:00:00Z","to":"2026-03-02T10:00:00Z","repeats":{"days":["MO"]}}"#;

    fn refused(text: &str) -> String {
        let file = std::env::temp_dir().join(format!("headroom-reservations-{}.json", text.len()));
        std::fs::write(&file, text).unwrap();
        let read = read(&file, &Calendar::parse("UTC", "weekdays").unwrap());
        std::fs::remove_file(&file).unwrap();
        read.map_or_else(|fault| fault.to_string(), |read| format!("{} read", read.len()))
    }

    #[test]
    fn a_file_of_reservations_is_read_and_a_bad_one_named_by_its_number() {
        assert_eq!(refused(&format!("[{ONE}]")), "1 read");
        let tuesday = ONE.replace("MO", "TU");
        let fault = refused(&format!("[{ONE},{tuesday}]"));
        assert!(fault.contains("reservation 2: /repeats/days: "), "{fault}");
        assert!(refused(ONE).contains("write a JSON list of what POST /v1/reservations takes"));
    }
}
