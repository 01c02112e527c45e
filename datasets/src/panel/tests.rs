use super::*;
use vocab::{MilliGpus, Organization, PoolId};

/// Rows from a picture: one line an organization, one column an hour, `.` where there is no row, `5>3` where a peak of 5 fell to 3.
pub(crate) fn rows(picture: &str) -> Vec<UsageRow> {
    let pool = PoolId::parse("earth:V100").unwrap();
    let mut rows = Vec::new();
    for line in picture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, values) = line.split_once(' ').unwrap();
        let series = SeriesId { pool: pool.clone(), organization: Organization::parse(name).unwrap() };
        for (hour, value) in values.split_whitespace().enumerate() {
            if value != "." {
                let hour = HourStart::from_unix_s(hour as i64 * 3_600).unwrap();
                let (peak, at_end) = value.split_once('>').map_or((value, None), |(peak, at_end)| (peak, Some(at_end)));
                let gpus = |text: &str| MilliGpus::parse(text).unwrap();
                rows.push(HourDemand { peak: gpus(peak), at_end: at_end.map(gpus) }.row(series.clone(), hour));
            }
        }
    }
    rows
}

fn panel(picture: &str) -> Panel {
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    PanelBuilder::from_rows(ClusterName::parse("earth").unwrap(), calendar, &rows(picture)).unwrap()
}

#[test]
fn a_gap_is_filled_from_the_past_only_and_stays_marked() {
    let panel = panel("a . 3 . . 5\nb 1 1 1 1 1");
    assert_eq!(panel.series()[0].demand_gpus(), [0.0, 3.0, 3.0, 3.0, 5.0]);
    assert_eq!(panel.series()[0].measured(), [false, true, false, false, true]);
    assert_eq!(panel.series()[0].first_measured(), Some(1));
}

#[test]
fn an_hour_in_which_all_are_zero_was_measured_and_one_without_rows_is_a_recording_gap() {
    let panel = panel("a 3 0 . 0\nb 2 0 . 1\n* 4 0 . 1");
    assert_eq!(panel.recording_gap(), [false, false, true, false]);
    assert_eq!(panel.series()[0].demand_gpus(), [3.0, 0.0, 0.0, 0.0]);
    assert_eq!(panel.series()[0].measured(), [true, true, false, true]);
    assert_eq!(panel.pool_peaks()[0].demand_gpus(), [4.0, 0.0, 0.0, 1.0]);
    assert_eq!(panel.series().len(), 2, "the pool's own peak is no organization");
}

#[test]
fn the_pools_own_peak_is_measured_where_no_organization_has_a_row() {
    let panel = panel("a 3 . 1\n* 3 0 1");
    assert_eq!(panel.recording_gap(), [false, true, false]);
    assert_eq!(panel.pool_peaks()[0].measured(), [true; 3]);
}

#[test]
fn the_same_hour_twice_and_a_foreign_series_are_refused() {
    let mut twice = rows("a 1");
    twice.extend(rows("a 2"));
    let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let earth = ClusterName::parse("earth").unwrap();
    assert!(matches!(PanelBuilder::from_rows(earth, calendar.clone(), &twice), Err(PanelError::Twice { .. })));
    let mars = ClusterName::parse("mars").unwrap();
    assert!(matches!(PanelBuilder::from_rows(mars, calendar, &twice), Err(PanelError::OtherCluster { .. })));
}

#[test]
fn a_panel_that_grows_hour_by_hour_is_the_one_that_is_built_at_once() {
    let pictures = [
        "a 3>1 0 0 2\nb 2 0 1 .\n* 4 0 1 2>0",
        "a 3 0 1 4>3.5",
        "a 3 . 0 2 1\nb . . 2 0 .\nc . . . 0 7",
        "a 0 2 0\n* 1 2 0",
    ];
    for picture in pictures {
        let (whole, rows) = (panel(picture), rows(picture));
        let hours = |hour: i64| -> Vec<(SeriesId, HourDemand)> {
            let at = rows.iter().filter(|row| row.hour.unix_s() == hour * 3_600);
            at.map(|row| (row.series.clone(), row.hour_demand())).collect()
        };
        let calendar = Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
        let first: Vec<UsageRow> = rows.iter().filter(|row| row.hour.unix_s() == 0).cloned().collect();
        let mut grown = PanelBuilder::from_rows(ClusterName::parse("earth").unwrap(), calendar, &first).unwrap();
        (1..whole.hours() as i64).for_each(|hour| grown.push_hour(&hours(hour)).unwrap());
        assert_eq!(grown, whole, "{picture}");
    }
}

#[test]
fn the_end_of_an_hour_is_known_where_it_was_stated() {
    let panel = panel("a 3>1 4 . 5>5 7>6.5");
    let of = &panel.series()[0];
    assert_eq!((0..5).map(|hour| of.fallen_gpus(hour)).collect::<Vec<_>>(), [2.0, 0.0, 0.0, 0.0, 0.5]);
    assert_eq!(*of.falls(), [(0, 2.0), (4, 0.5)]);
}

#[test]
fn the_newest_hour_may_be_one_of_zeros() {
    assert_eq!(panel("a 3 2 0\nb 2 0 0").newest_measured().unwrap().unix_s(), 7_200);
}

#[test]
fn the_peak_of_a_pool_without_organizations_is_measured() {
    let calendar = || Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap();
    let rows = rows("* 0 0 .");
    let refused = PanelBuilder::from_rows(rows[0].series.pool.cluster.clone(), calendar(), &rows).unwrap_err();
    assert!(matches!(refused, PanelError::Empty { .. }), "there is nothing to learn from");
    let (first, pool) = (rows[0].hour, &rows[0].series.pool);
    let mut builder = PanelBuilder::new(pool.cluster.clone(), calendar(), first, first.plus_hours(3));
    for row in &rows {
        builder.push(&row.series, row.hour, row.demand.as_gpus()).unwrap();
    }
    let panel = builder.finish_measured().unwrap();
    assert!(panel.series().is_empty());
    let newest = Some(first.plus_hours(1));
    assert_eq!((panel.newest_measured(), panel.newest_measured_of(pool)), (newest, newest));
}
