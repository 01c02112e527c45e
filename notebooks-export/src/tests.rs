//! From files to files.

use crate::args::{Config, Report, ZeroHours};
use crate::metrics::Metric;
use crate::report::{Summary, make};
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use tempfile::TempDir;

const HEADER: &str =
    "issue_time,target_time,step,cluster,gpu_model,organization,model,mean,stddev,q0.5,q0.9,q0.95,actual\n";
const POOL_HEADER: &str =
    "issue_time,hours,cluster,gpu_model,model,aggregation,guarantee_rate,bound_gpus,actual_peak_gpus\n";

/// Two organizations over two hours, both zero in the second; hours of Shanghai.
const TWO: &str = "\
2024-03-01T08:00:00+08:00,2024-03-01T08:00:00+08:00,1,earth,V100,a,m,4,1,4,6,8,5
2024-03-01T08:00:00+08:00,2024-03-01T09:00:00+08:00,2,earth,V100,a,m,4,1,4,6,8,0
2024-03-01T08:00:00+08:00,2024-03-01T08:00:00+08:00,1,earth,V100,b,m,2,1,2,3,4,8
2024-03-01T08:00:00+08:00,2024-03-01T09:00:00+08:00,2,earth,V100,b,m,2,1,2,3,4,0
";

fn report(forecasts: &str, bounds: Option<&str>) -> (TempDir, Result<(Summary, Vec<Metric>), String>) {
    report_with(forecasts, bounds, &[], ZeroHours::Gap)
}

fn report_with(
    forecasts: &str,
    bounds: Option<&str>,
    capacity: &[&str],
    zero_hours: ZeroHours,
) -> (TempDir, Result<(Summary, Vec<Metric>), String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, header: &str, rows: &str| {
        let path = folder.path().join(name);
        let text = rows.strip_prefix("raw:").map_or_else(|| format!("{header}{rows}"), str::to_owned);
        std::fs::write(&path, text).unwrap();
        path
    };
    let what = Report {
        run: Vec::new(),
        forecasts: Some(file("f.csv", HEADER, forecasts)),
        pool_bounds: bounds.map(|rows| file("p.csv", POOL_HEADER, rows)),
        capacity: capacity.iter().map(|text| text.parse().unwrap()).collect(),
        time_zone: Some(chrono_tz::Asia::Shanghai),
        model: None,
        baseline: None,
        zero_hours,
        title: "A <title>".to_owned(),
        out: folder.path().join("made").join("report"),
    };
    let made = make(&what, &Config::default())
        .map_err(|fault| fault.to_string().replace(&folder.path().display().to_string(), ""));
    (folder, made)
}

fn refusal(forecasts: &str, bounds: Option<&str>) -> String {
    let (folder, made) = report(forecasts, bounds);
    assert!(!folder.path().join("made").exists(), "nothing is written before everything was checked");
    made.unwrap_err()
}

fn value(all: &[Metric], organization: &str, step: &str, metric: &str) -> Option<(f64, usize)> {
    let mut found =
        all.iter().filter(|one| one.scope.organization == organization && one.scope.step == step && one.name == metric);
    let first = found.next().map(|one| (one.value, one.rows));
    assert!(found.next().is_none(), "{organization} {step} {metric} stands there twice");
    first
}

fn frame(path: &Path) -> DataFrame {
    ParquetReader::new(File::open(path).unwrap()).finish().unwrap()
}

#[test]
fn scores_are_over_everything_by_step_and_by_series_without_recording_gaps() {
    let (_folder, made) = report(TWO, None);
    let (summary, all) = made.unwrap();
    assert_eq!((summary.rows, summary.series, summary.recording_gap_rows), (4, 2, 2));
    assert_eq!(value(&all, "", "", "mae_median"), Some((3.5, 2)), "of 1 and 6");
    assert_eq!(value(&all, "", "1", "mae_median"), Some((3.5, 2)));
    assert_eq!(value(&all, "", "2", "mae_median"), None, "a gap alone");
    assert_eq!(value(&all, "a", "", "mae_median"), Some((1.0, 1)));
    assert_eq!(value(&all, "b", "", "mae_median"), Some((6.0, 1)));
    assert_eq!(value(&all, "", "", "coverage_q90"), Some((0.5, 2)));
    let written = std::fs::read_to_string(&summary.metrics).unwrap();
    assert_eq!(written.lines().count(), 1 + all.len());
    assert_eq!(written.lines().next(), Some("model,cluster,gpu_model,organization,step,metric,value,rows"));
    assert!(written.contains("\nm,earth,V100,b,,mae_median,6,1\n"), "{written}");
}

#[test]
fn hours_in_which_all_are_zero_are_scored_as_demand_of_zero() {
    let (_folder, made) = report_with(TWO, None, &[], ZeroHours::Demand);
    let (summary, all) = made.unwrap();
    assert_eq!(summary.recording_gap_rows, 0);
    assert_eq!(value(&all, "", "2", "mae_median"), Some((3.0, 2)), "of 4 and 2");
}

#[test]
fn one_series_at_zero_is_no_recording_gap() {
    let alone: String = TWO.split_inclusive('\n').take(2).collect();
    let (_folder, made) = report(&alone, None);
    assert_eq!(made.unwrap().0.recording_gap_rows, 0);
}

#[test]
fn the_parquet_file_holds_every_row_with_types_and_times_in_utc() {
    let (_folder, made) = report(TWO, None);
    let frame = frame(&made.unwrap().0.forecasts);
    let types: Vec<String> =
        frame.columns().iter().map(|column| format!("{}:{}", column.name(), column.dtype())).collect();
    let expected = "issue_time:datetime[ms, UTC] target_time:datetime[ms, UTC] step:u32 cluster:str gpu_model:str \
        organization:str model:str mean:f64 stddev:f64 q0.5:f64 q0.9:f64 q0.95:f64 actual:f64 recording_gap:bool";
    assert_eq!(types.join(" "), expected);
    let millis = frame.column("target_time").unwrap().datetime().unwrap().physical().get(1);
    assert_eq!(millis, Some(1_709_254_800_000), "09:00 in Shanghai is 01:00 in UTC");
    let gaps: Vec<_> = frame.column("recording_gap").unwrap().bool().unwrap().iter().collect();
    assert_eq!(gaps, [Some(false), Some(true), Some(false), Some(true)]);
}

#[test]
fn bounds_of_another_backtest_are_refused_by_their_row() {
    let own = "2024-03-01T08:00:00+08:00,2,earth,V100,m,pooled,0.9,10,4\n";
    for (from, to, expected) in [
        ("earth", "mars", "there is no forecast of pool mars:V100; the forecasts are of earth:V100"),
        (",m,", ",n,", "there is no forecast of model n; the forecasts are of m"),
        ("2024", "2023", "issue_time is 2023-03-01T00:00:00Z; the forecasts were issued from 2024-03-01T00:00:00Z to"),
        (",2,", ",4,", "hours is 4 at most, and the forecasts reach 2"),
    ] {
        let other = own.replace(from, to);
        let fault = refusal(TWO, Some(&format!("{own}{other}")));
        assert!(fault.contains(&format!("p.csv, row 3: {expected}")), "{fault}");
        assert!(fault.ends_with(": give both files of one backtest"), "{fault}");
    }
    let short = refusal(TWO, Some(&own.replace(",2,", ",1,")));
    assert!(short.contains("p.csv, row 2: hours is 1 at most, and the forecasts reach 2"), "{short}");
    let (_folder, made) = report(TWO, Some(&format!("{own}{}", own.replace(",2,", ",1,"))));
    assert!(made.is_ok(), "a promise of fewer hours beside that of all: {made:?}");
}

#[test]
fn a_report_of_a_database_that_is_not_there_creates_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.db");
    let what = Report {
        run: vec!["run-9".parse().unwrap()],
        forecasts: None,
        pool_bounds: None,
        capacity: Vec::new(),
        time_zone: None,
        model: None,
        baseline: None,
        zero_hours: ZeroHours::Gap,
        title: "A title".to_owned(),
        out: folder.path().join("report"),
    };
    let config = Config { database: format!("sqlite://{}", file.display()), ..Config::default() };
    let fault = make(&what, &config).unwrap_err().to_string();
    assert!(fault.contains("wrong.db: name the right one with --database"), "{fault}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn bounds_of_pools_are_scored_by_aggregation() {
    let bounds = "\
2024-03-01T08:00:00+08:00,2,earth,V100,orglinear-paper,pooled,0.9,10,4
2024-03-01T09:00:00+08:00,2,earth,V100,orglinear-paper,pooled,0.9,1,4
2024-03-01T08:00:00+08:00,2,earth,V100,orglinear-paper,independent,0.9,4,4
2024-03-01T09:00:00+08:00,2,earth,V100,orglinear-paper,independent,0.9,5,4
";
    let (_folder, made) = report(&two_days(), Some(bounds));
    let (_, all) = made.unwrap();
    let of = |metric: &str| value(&all, "*", "2", metric).unwrap();
    assert_eq!(of("pool_over_reserved:pooled"), (3.0, 2));
    assert_eq!(of("pool_under:pooled"), (0.5, 2));
    assert_eq!(of("pool_shortfall:pooled"), (1.5, 2));
    assert!((of("pool_pinball:pooled").0 - f64::midpoint(0.1 * 6.0, 0.9 * 3.0)).abs() < 1e-12);
    assert_eq!((of("pool_under:independent").0, of("pool_over_reserved:independent").0), (0.0, 0.5));
}

#[test]
fn a_bad_row_of_forecasts_is_refused_with_file_row_and_what_to_do() {
    let with = |from: &str, to: &str| refusal(&TWO.replacen(from, to, 1), None);
    for (from, to, expected) in [
        (",1,earth", ",0,earth", "/f.csv, row 2: column step: \"0\" is not a whole number of hours from 1 to 168"),
        (",4,1,4,6,8,5", ",nan,1,4,6,8,5", "/f.csv, row 2: column mean: \"nan\" is not a finite number"),
        (",4,1,4,6,8,5", ",4,-1,4,6,8,5", "column stddev: -1 is negative"),
        (",4,1,4,6,8,5", ",4,1,7,6,8,5", "row 2: quantiles cross: q0.5 is 7, q0.9 6, q0.95 8"),
        (",2,earth", ",1,earth", "/f.csv, row 3: target_time is 2024-03-01T01:00:00Z, and step 1 of issue_time"),
        (",V100,a,m,", ",V100,a,,", "row 2: column model is empty: name it"),
        (",V100,a,m,4,1,4,6,8,5", ",V100,a,m,4,1,4,6,8", "row 2: 12 fields, but the header has 13"),
        (",V100,a,m,4,1,4,6,8,5", ",V100,a,\"m,4,1,4,6,8,5", "row 2: a field spans 4 lines: close its quote"),
        (",V100,a,m,4,1,4,6,8,5", ",V100,a,m\",4,1,4,6,8,5", "row 2: a quote stands within a field: put quotes around"),
        ("T08:00:00+08:00,2024", "T08:30:00+08:00,2024", "row 2: column issue_time: \"2024-03-01T08:30:00+08:00\""),
    ] {
        let refused = with(from, to);
        assert!(refused.contains(expected), "{refused}");
    }
    let renamed = refusal(&format!("raw:{}{TWO}", HEADER.replace("stddev", "sd")), None);
    assert!(
        renamed.starts_with("/f.csv, row 1: column stddev is missing; the header must hold issue_time,"),
        "{renamed}"
    );
    assert_eq!(refusal("", None), "/f.csv: no rows");
}

#[test]
fn what_cannot_be_compared_is_refused_rather_than_averaged() {
    let first = TWO.lines().next().unwrap();
    let doubled = refusal(&format!("{TWO}{first}\n"), None);
    assert!(doubled.contains("row 6: model m: the forecast of earth:V100:a"), "{doubled}");
    assert!(doubled.contains("occurs twice, first in row 2: keep one"), "{doubled}");
    let other = refusal(&format!("{TWO}{}\n", first.replace(",m,", ",n,")), None);
    assert!(other.contains("model m has 4 rows and model n 1: compare models over the same hours"), "{other}");
    let contradicted = TWO.replace(",m,", ",n,").replacen(",8,5\n", ",8,6\n", 1);
    let contradicted = refusal(&format!("{TWO}{contradicted}"), None);
    assert!(
        contradicted.contains("row 6: actual of earth:V100:a at 2024-03-01T00:00:00Z is 6 here and 5"),
        "{contradicted}"
    );
    let empty = refusal(&TWO.replace(",5\n", ",0\n").replace(",8\n", ",0\n"), None);
    assert!(empty.contains("all 4 rows are in recording gaps"), "{empty}");
}

#[test]
fn a_bad_bound_is_refused_with_file_row_and_what_to_do() {
    let row = |rate: &str, bound: &str, hour: &str| {
        format!("2024-03-01T{hour}:00:00+08:00,2,earth,V100,m,pooled,{rate},{bound},4\n")
    };
    let rates = refusal(TWO, Some(&format!("{}{}", row("0.9", "5", "08"), row("0.95", "5", "09"))));
    assert!(rates.starts_with("/p.csv, row 3: guarantee_rate is 0.95 here and 0.9 in row 2"), "{rates}");
    let unfit = refusal(TWO, Some(&row("1.5", "5", "08")));
    assert!(unfit.starts_with("/p.csv, row 2: column guarantee_rate: "), "{unfit}");
    let negative = refusal(TWO, Some(&row("0.9", "-5", "08")));
    assert!(negative.starts_with("/p.csv, row 2: column bound_gpus: -5 is negative"), "{negative}");
    let doubled = refusal(TWO, Some(&row("0.9", "5", "08").repeat(2)));
    assert!(
        doubled.starts_with("/p.csv, row 3: model m with pooled: the bound of earth:V100 over 2h issued"),
        "{doubled}"
    );
}

/// Three models over two days of two organizations; organization b jumps to 40 GPUs at 03:00 of the second day.
fn two_days() -> String {
    let mut rows = String::new();
    for model in ["orglinear-paper", "last-value", "seasonal-24h"] {
        let miss = if model == "orglinear-paper" { 1.0 } else { 2.0 };
        for (organization, level) in [("a", 20.0), ("b", 10.0)] {
            for hour in 0..47 {
                for step in 0..2 {
                    let jumped = if organization == "b" && hour + step == 27 { 30.0 } else { 0.0 };
                    let at = |hour: i64| format!("2024-03-{:02}T{:02}:00:00+08:00", 1 + hour / 24, hour % 24);
                    let (issue, target, middle) = (at(hour), at(hour + step), level + miss);
                    let quantiles = format!("{middle},2,{middle},{},{}", middle + 3.0, middle + 4.0);
                    let actual = level + jumped;
                    rows.extend([issue, target, (step + 1).to_string()].map(|field| field + ","));
                    rows += "earth,V100,";
                    rows.extend([organization, model, &quantiles].map(|field| format!("{field},")));
                    rows.extend([actual.to_string(), "\n".to_owned()]);
                }
            }
        }
    }
    rows
}

const BOUNDS: &str = "\
2024-03-01T08:00:00+08:00,2,earth,V100,orglinear-paper,pooled,0.9,35,31
2024-03-01T09:00:00+08:00,2,earth,V100,orglinear-paper,pooled,0.9,90,80
2024-03-02T02:00:00+08:00,2,earth,V100,orglinear-paper,pooled,0.9,36,60
";

fn page_of(made: Result<(Summary, Vec<Metric>), String>) -> String {
    std::fs::read_to_string(made.unwrap().0.page).unwrap()
}

#[test]
fn the_page_says_in_words_what_the_pictures_show() {
    let (_folder, made) = report(&two_days(), Some(BOUNDS));
    let page = page_of(made);
    for expected in [
        "<title>A &lt;title&gt;</title>",
        "Fri 1 Mar 2024, 00:00 to Sat 2 Mar 2024, 23:00",
        "orglinear-paper has a mean error of 1.30 GPUs per hour and organization (MAE of the median), 2.28 by last-value: 43 % less",
        "Pool earth:V100, promise of 2 h at 90.0 %: no bound kept the promise; pooled came closest with 66.7 % of 3.",
        "The worst hour was Sat 2 Mar, 03:00: an error of 30.0 GPUs over all organizations, when demand rose by 30.0 from the hour before.",
        "Demand went from 30.0 to 60.0 (+30.0). b went from 10.0 to 40.0, 11.0 expected, above the 0.95 quantile of 15.0.",
        "<td class=\"none\" colspan=\"3\">itself</td>",
    ] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
}

#[test]
fn the_page_reports_the_mixture_where_another_bound_did_better_in_hindsight() {
    let rows = |aggregation: &str, bound: u8| {
        let row = |hour: u8| {
            format!("2024-03-01T0{hour}:00:00+08:00,2,earth,V100,orglinear-paper,{aggregation},0.9,{bound},4\n")
        };
        row(8) + &row(9)
    };
    let (_folder, made) = report(&two_days(), Some(&[rows("independent", 4), rows("mixture", 5)].concat()));
    let page = page_of(made);
    let expected = "promise of 2 h at 90.0 %: the mixture bound held at 100.0 % of 2 issue times, with an idle reserve of 1.00 GPUs.";
    assert!(page.contains(expected), "{page}");
}

#[test]
fn bounds_of_a_part_of_the_issue_times_say_of_which() {
    let (_folder, made) = report(&two_days(), Some(BOUNDS));
    let (summary, _) = made.unwrap();
    let [part] = &summary.partial_bounds[..] else { panic!("{:?}", summary.partial_bounds) };
    assert_eq!((part.issue_times, part.forecast_issue_times, part.hours), (3, 47, 2));
    assert_eq!(
        part.sentence(|issue| issue.to_string()),
        "Pool earth:V100, promise of 2 h: the bounds are of 3 of the 47 issue times of the forecasts, from 2024-03-01T00:00:00Z to \
         2024-03-01T18:00:00Z, and their figures say nothing of the others."
    );
    let page = std::fs::read_to_string(&summary.page).unwrap();
    let shown = "the bounds are of 3 of the 47 issue times of the forecasts, from Fri 1 Mar, 08:00 to Sat 2 Mar, 02:00";
    assert_eq!(page.matches(shown).count(), 2, "in short, and above the pool: {page}");
    let (_folder, whole) = report(TWO, Some("2024-03-01T08:00:00+08:00,2,earth,V100,m,pooled,0.9,10,4\n"));
    let (summary, _) = whole.unwrap();
    assert_eq!(summary.partial_bounds, []);
    assert!(!std::fs::read_to_string(summary.page).unwrap().contains("the bounds are of"));
}

#[test]
fn each_aggregation_has_a_colour_a_dash_and_a_named_strip_of_its_own() {
    let all = ["sum-of-bounds", "independent", "pooled", "conformal", "mixture"];
    let bounds = all.map(|aggregation| BOUNDS.replace("pooled", aggregation)).concat();
    let (_folder, made) = report(&two_days(), Some(&bounds));
    let page = page_of(made);
    let style = |rule: &str| {
        let from = page.find(&format!("{rule} {{")).unwrap_or_else(|| panic!("{rule} has no style"));
        page[from..].split_once('}').unwrap().0.replacen(rule, "", 1)
    };
    let drawn = |class: String| page.matches(&format!("class=\"{class}\"")).count();
    let (mut strokes, mut fills) = (BTreeSet::new(), BTreeSet::new());
    for (place, name) in all.iter().enumerate() {
        strokes.insert(style(&format!(".line.b{place}")));
        fills.insert(style(&format!(".broken.b{place}")));
        assert_eq!((drawn(format!("line b{place}")), drawn(format!("broken b{place}"))), (2, 1), "{name}");
        assert!(page.contains(&format!(">{name}</text>")), "the strip of {name} has a name");
    }
    assert_eq!((strokes.len(), fills.len()), (all.len(), all.len()));
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    let (_folder, made) = report(&two_days(), Some(BOUNDS));
    let page = page_of(made);
    for foreign in ["http://", "https://", "<script", "<link", "@import", "url(", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
}

#[test]
fn skill_is_what_is_saved_of_a_baselines_loss() {
    let (_folder, made) = report(&two_days(), None);
    let (_, all) = made.unwrap();
    let of = |model: &str, name: &str| {
        let found = all.iter().find(|one| one.scope.model == model && one.name == name);
        found.map(|one| one.value)
    };
    let (own, other) = (of("orglinear-paper", "mae_median").unwrap(), of("last-value", "mae_median").unwrap());
    assert_eq!(of("orglinear-paper", "skill_mae_median:last-value"), Some(1.0 - own / other));
    assert_eq!(of("seasonal-24h", "skill_mae_median:last-value"), Some(0.0), "both miss alike");
    assert_eq!(of("last-value", "skill_mae_median:last-value"), None, "not against itself");
}

#[test]
fn bounds_and_peaks_are_cut_at_the_capacity() {
    let (_folder, made) = report_with(&two_days(), Some(BOUNDS), &["earth:V100=60"], ZeroHours::Demand);
    let (summary, all) = made.unwrap();
    assert_eq!(value(&all, "*", "2", "pool_over_reserved:pooled"), Some((4.0 / 3.0, 3)), "35 over 31, 60 over 60");
    let page = std::fs::read_to_string(summary.page).unwrap();
    assert!(page.contains("line capacity"));
    let (_folder, other) = report_with(&two_days(), None, &["earth:A100=60"], ZeroHours::Demand);
    assert_eq!(
        other.unwrap_err(),
        "--capacity earth:A100=60: the bounds are of earth:V100; write --capacity POOL=GPUS for each"
    );
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let made = || {
        let (_folder, made) = report(&two_days(), Some(BOUNDS));
        let summary = made.unwrap().0;
        [summary.page, summary.notebook, summary.metrics, summary.forecasts].map(|file| std::fs::read(file).unwrap())
    };
    assert!(made() == made());
}
