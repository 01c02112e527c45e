use super::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use vocab::{Organization, PoolId};

fn series(name: &str) -> SeriesId {
    let (pool, organization) = name.rsplit_once(':').unwrap();
    SeriesId { pool: PoolId::parse(pool).unwrap(), organization: Organization::parse(organization).unwrap() }
}

fn hour(number: i64) -> HourStart {
    HourStart::from_unix_s((480_000 + number) * 3_600).unwrap()
}

fn gpus(milli: u64) -> MilliGpus {
    MilliGpus::from_milli(milli).unwrap()
}

/// Rows of an even number of thousandths have an end, a quarter of the peak.
fn demand(milli: u64) -> HourDemand {
    HourDemand { peak: gpus(milli), at_end: milli.is_multiple_of(2).then(|| gpus(milli / 4)) }
}

/// Gathers rows of series, hour and amount, so many of which wait in memory.
fn spooled(rows: &[(&str, i64, u64)], waiting: usize) -> Spooled {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::with_rows_waiting(folder.path(), waiting).unwrap();
    for (row, (name, at, milli)) in rows.iter().enumerate() {
        let number = spool.number(&series(name));
        spool.add(number, hour(*at), demand(*milli), RowPlace { file: 3, row: row as u64 }).unwrap();
    }
    spool.finish().unwrap()
}

#[test]
fn rows_in_any_order_come_back_by_series_and_by_hour() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let names = ["a:V100:x", "a:V100:*", "b:A100:y", "a:A100:z"];
    let mut rows: Vec<(&str, i64, u64)> =
        names.iter().flat_map(|name| (0..700).map(move |at| (*name, at, 0))).collect();
    for row in &mut rows {
        row.2 = rng.random_range(0..100_000);
    }
    rows.shuffle(&mut rng);
    rows.truncate(2_000);
    let expected: BTreeMap<(SeriesId, HourStart), HourDemand> =
        rows.iter().map(|(name, at, milli)| ((series(name), hour(*at)), demand(*milli))).collect();
    for waiting in [1, 7, 500, 10_000] {
        let spooled = spooled(&rows, waiting);
        let mut by_series = Vec::new();
        spooled.each_series(|_| true, &mut |id, hour, demand| by_series.push(((id.clone(), hour), demand))).unwrap();
        assert_eq!(by_series, expected.clone().into_iter().collect::<Vec<_>>());
        let of_hour = |one: Result<HourRows<'_>, SpoolError>| {
            let (hour, rows) = one.unwrap();
            rows.into_iter().map(move |(id, demand)| ((hour, id.clone()), demand)).collect::<Vec<_>>()
        };
        let by_hour: Vec<_> = spooled.hours().flat_map(of_hour).collect();
        let turned: BTreeMap<_, _> = expected.iter().map(|((id, hour), gpus)| ((*hour, id.clone()), *gpus)).collect();
        assert_eq!(by_hour, turned.into_iter().collect::<Vec<_>>());
        assert_eq!(spooled.series().map(|one| one.rows).sum::<u64>(), expected.len() as u64);
        assert_eq!((spooled.equal_duplicates(), spooled.conflicts()), (0, &[][..]));
    }
}

#[test]
fn repeated_rows_are_counted_and_contradictions_are_named_with_both_places() {
    let rows =
        [("a:V100:x", 1, 500), ("a:V100:y", 1, 500), ("a:V100:x", 1, 500), ("a:V100:x", 1, 700), ("a:V100:y", 900, 1)];
    for waiting in [1, 2, 100] {
        let spooled = spooled(&rows, waiting);
        assert_eq!(spooled.equal_duplicates(), 1);
        let at = |row: u64, milli: u64| (RowPlace { file: 3, row }, demand(milli));
        let conflict = Conflict { series: series("a:V100:x"), hour: hour(1), first: at(0, 500), second: at(3, 700) };
        assert_eq!(spooled.conflicts(), [conflict]);
        let spans: Vec<_> = spooled.series().map(|one| (one.rows, one.span)).collect();
        assert_eq!(spans, [(1, (hour(1), hour(1))), (2, (hour(1), hour(900)))]);
    }
}

#[test]
fn an_equal_row_may_know_the_end_of_the_hour_and_another_end_is_a_contradiction() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::new(folder.path()).unwrap();
    let number = spool.number(&series("a:V100:x"));
    for (row, at_end) in (0..).zip([None, Some(2), None, Some(3)]) {
        let demand = HourDemand { peak: gpus(5), at_end: at_end.map(gpus) };
        spool.add(number, hour(1), demand, RowPlace { file: 0, row }).unwrap();
    }
    let spooled = spool.finish().unwrap();
    let mut kept = Vec::new();
    spooled.each_series(|_| true, &mut |_, _, demand| kept.push(demand)).unwrap();
    assert_eq!(kept, [HourDemand { peak: gpus(5), at_end: Some(gpus(2)) }]);
    assert_eq!(spooled.equal_duplicates(), 2);
    let both = spooled.conflicts().iter().map(|one| (one.first.1.at_end, one.second.1.at_end)).collect::<Vec<_>>();
    assert_eq!(both, [(Some(gpus(2)), Some(gpus(3)))]);
}

#[test]
fn a_folder_that_takes_no_file_is_named() {
    let fault = Spool::new(Path::new("/no/such/folder")).unwrap_err().to_string();
    assert!(fault.starts_with("a temporary file in /no/such/folder: ") && fault.ends_with("in TMPDIR"), "{fault}");
}
