//! Four samples an hour, hours parted by bars: `.` is no sample, `n` NaN, `i` infinity.

use super::*;
use crate::answer::Sample;

const STEP_S: u32 = 900;

fn hour(number: i64) -> HourStart {
    // A day that is no start of a week, a month or a year.
    HourStart::from_unix_s(1_700_006_400).unwrap().plus_hours(number)
}

fn span(from: i64, until: i64) -> Span {
    Span { from: hour(from), until: hour(until) }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn samples(from: i64, picture: &str) -> Vec<Sample> {
    let places = (0..).zip(picture.split_whitespace().filter(|word| *word != "|"));
    let value = |word: &str| match word {
        "n" => f64::NAN,
        "i" => f64::INFINITY,
        word => word.parse().unwrap(),
    };
    let at_ms = |place: i64| (hour(from).unix_s() + place * i64::from(STEP_S)) * 1_000;
    places
        .filter(|(_, word)| *word != ".")
        .map(|(place, word)| Sample { at_ms: at_ms(place), value: value(word) })
        .collect()
}

/// Series of `ORGANIZATION` or `ORGANIZATION@GPU_MODEL`.
fn answer(from: i64, all: &[(&str, &str)]) -> Answer {
    let series = |(name, picture): &(&str, &str)| {
        let (organization, model) = name.split_once('@').unwrap_or((name, ""));
        let labels = labels(&[("namespace", organization), ("model", model)]);
        Series { labels, samples: samples(from, picture) }
    };
    Answer { series: all.iter().map(series).collect(), warnings: Vec::new() }
}

fn of_labels() -> Labels {
    Labels {
        organization: "namespace".to_owned(),
        gpu_model: Some("model".to_owned()),
        fixed_model: Some(GpuModel::parse("A100").unwrap()),
    }
}

fn id(name: &str) -> SeriesId {
    let (organization, model) = name.split_once('@').unwrap_or((name, "A100"));
    let pool = PoolId { cluster: ClusterName::parse("earth").unwrap(), gpu_model: GpuModel::parse(model).unwrap() };
    SeriesId { pool, organization: Organization::parse(organization).unwrap() }
}

/// One part after the other, then all of it.
fn collected(
    parts: &[(Span, Answer, Option<Answer>)],
    asked: Span,
    known: &[&str],
    later: bool,
) -> Result<Hours, DataFault> {
    let (cluster, labels) = (ClusterName::parse("earth").unwrap(), of_labels());
    let mut collector = Collector::new(&cluster, &labels, Rhythm { step_s: STEP_S, least_share: 0.5 });
    for (span, demand, presence) in parts {
        collector.take(*span, demand, presence.as_ref())?;
    }
    Ok(collector.finish(asked, &known.iter().map(|name| id(name)).collect(), later))
}

/// Each series on a line with its hours, `-` where there is no row, `5>3` where 5 fell to 3, `5>?` where nobody knows; then the gaps.
fn shown(hours: &Hours, asked: Span) -> String {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &hours.rows {
        let name = format!("{}@{}", row.series.organization, row.series.pool.gpu_model);
        let line = lines.entry(name).or_insert_with(|| vec!["-".to_owned(); asked.hours() as usize]);
        let at_end = match row.at_end {
            None => ">?".to_owned(),
            Some(at_end) if at_end == row.demand => String::new(),
            Some(at_end) => format!(">{}", at_end.as_gpus()),
        };
        line[row.hour.hours_since(asked.from) as usize] = format!("{}{at_end}", row.demand.as_gpus());
    }
    let rows = lines.iter().map(|(name, line)| format!("{name} {}", line.join(" ")));
    let gaps = hours.gaps.iter().map(|gap| {
        let model = gap.gpu_model.as_ref().map_or("all", |model| model.as_str());
        let (from, until) = (gap.span.from.hours_since(asked.from), gap.span.until.hours_since(asked.from));
        format!("gap {model} {from}..{until} {}", gap.why)
    });
    rows.chain(gaps).collect::<Vec<_>>().join("\n")
}

fn check(demand: &[(&str, &str)], known: &[&str], expected: &str) {
    let points =
        demand.first().map_or(0, |(_, picture)| picture.split_whitespace().filter(|word| *word != "|").count());
    let asked = span(0, points as i64 / 4);
    let hours = collected(&[(asked, answer(0, demand), None)], asked, known, false).unwrap();
    let expected = expected.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert_eq!(shown(&hours, asked), expected);
}

#[test]
fn an_hour_is_the_peak_of_its_samples_and_the_pool_that_of_their_sum() {
    check(
        &[("vision", "1 2 3 1 | 4 4 4 4"), ("speech", "3 1 0 0.5 | 1 1 1 9")],
        &[],
        "*@A100 4>1.5 13
         speech@A100 3>0.5 9
         vision@A100 3>1 4",
    );
}

#[test]
fn the_first_moment_of_an_hour_belongs_to_it_and_not_to_the_one_before() {
    check(&[("vision", "0 0 0 0 | 7 0 0 0 | 0 0 0 5")], &[], "*@A100 0 7>0 5\nvision@A100 0 7>0 5");
}

#[test]
fn who_is_absent_beside_others_has_no_pods_and_counts_as_zero() {
    check(
        &[("vision", "2 2 . . | . . . . | 3 3 3 3"), ("speech", "1 1 1 1 | 1 1 1 1 | 1 1 1 1")],
        &["left", "gone@H800"],
        "*@A100 3>1 1 4
         *@H800 0 0 0
         gone@H800 0 0 0
         left@A100 0 0 0
         speech@A100 1 1 1
         vision@A100 2>0 0 3",
    );
}

#[test]
fn a_time_without_any_series_is_a_gap_of_the_scraping_and_no_zero() {
    check(
        &[("vision", "2 2 2 2 | . . . . | . . . . | 3 . . . | 3 . . 4")],
        &["left"],
        "*@A100 2 - - - 4
         left@A100 0 - - - 0
         vision@A100 2 - - - 4
         gap all 1..3 no sample
         gap all 3..4 1 of 4 samples",
    );
}

#[test]
fn hours_with_too_few_samples_are_one_gap_with_the_fewest() {
    check(
        &[("vision", "2 . . . | . 1 . . | 1 1 . . | 1 . . .")],
        &[],
        "*@A100 - - 1>? -
         vision@A100 - - 1>? -
         gap all 0..2 1 of 4 samples
         gap all 3..4 1 of 4 samples",
    );
}

#[test]
fn a_value_that_is_no_number_makes_its_time_unmeasured_for_its_pool_alone() {
    check(
        &[
            ("vision", "9 n 1 1 | n n n 1 | n i 2 2"),
            ("speech", "1 8 1 1 | 1 1 1 1 | 9 9 1 1"),
            ("text@H800", "5 5 5 5 | 5 5 5 5 | 5 5 5 5"),
        ],
        &[],
        "*@A100 10>2 - 3
         *@H800 5 5 5
         speech@A100 1 - 1
         text@H800 5 5 5
         vision@A100 9>1 - 2
         gap A100 1..2 values that are not numbers",
    );
}

#[test]
fn the_end_of_an_hour_is_not_known_where_its_last_sample_is_missing_or_no_number() {
    check(
        &[("vision", "5 4 3 . | 5 4 3 n | 5 4 3 2"), ("text@H800", "6 6 6 . | 6 6 6 4 | 6 6 6 6")],
        &[],
        "*@A100 5>? 5>? 5>2
         *@H800 6>? 6>4 6
         text@H800 6>? 6>4 6
         vision@A100 5>? 5>? 5>2",
    );
}

#[test]
fn where_the_source_was_scraped_and_no_demand_answers_it_is_zero() {
    let asked = span(0, 3);
    let demand = answer(0, &[("vision", "2 2 2 2 | . . . . | . . . .")]);
    let presence = Answer {
        series: vec![Series { labels: BTreeMap::new(), samples: samples(0, "9 9 9 9 | 9 9 9 9 | 0 0 n .") }],
        warnings: Vec::new(),
    };
    let hours = collected(&[(asked, demand, Some(presence))], asked, &[], false).unwrap();
    assert_eq!(shown(&hours, asked), "*@A100 2 0 -\nvision@A100 2 0 -\ngap all 2..3 no sample");
}

#[test]
fn parts_come_to_the_same_as_the_whole_and_who_appears_later_was_at_zero_before() {
    let asked = span(0, 3);
    let first = (span(0, 1), answer(0, &[("vision", "1 2 1 1")]), None);
    let second = (span(1, 3), answer(1, &[("speech", "4 4 4 4 | 5 5 5 5")]), None);
    let hours = collected(&[first, second], asked, &[], false).unwrap();
    assert_eq!(shown(&hours, asked), "*@A100 2>1 4 5\nspeech@A100 0 4 5\nvision@A100 2>1 0 0");
}

#[test]
fn a_source_that_is_younger_than_what_is_asked_for_misses_nothing_where_that_may_be() {
    let asked = span(0, 4);
    let part = || (asked, answer(0, &[("vision", ". . . . | . . . 1 | . . . . | 1 1 1 1")]), None);
    let strict = collected(&[part()], asked, &[], false).unwrap();
    assert_eq!((strict.missing_hours, strict.begins), (3, Some(hour(1))));
    let later = collected(&[part()], asked, &[], true).unwrap();
    assert_eq!((later.missing_hours, later.begins), (2, Some(hour(1))), "its first hour is one of too few samples");
    let none = collected(&[(asked, Answer::default(), None)], asked, &["left"], true).unwrap();
    assert_eq!((none.begins, none.rows.len()), (None, 0));
}

#[test]
fn a_part_that_was_not_answered_is_a_gap_with_its_reason() {
    let (cluster, labels, asked) = (ClusterName::parse("earth").unwrap(), of_labels(), span(0, 3));
    let mut collector = Collector::new(&cluster, &labels, Rhythm { step_s: STEP_S, least_share: 0.5 });
    collector.take(span(0, 1), &answer(0, &[("vision", "1 1 1 1")]), None).unwrap();
    collector.missed(span(1, 2), &Why::Warned("a store is down".to_owned()));
    collector.missed(span(2, 3), &Why::Failed("it answers 500".to_owned()));
    let hours = collector.finish(asked, &BTreeSet::new(), false);
    let expected = "*@A100 1 - -\nvision@A100 1 - -\ngap all 1..2 partial answer: a store is down\ngap all 2..3 no answer: it answers 500";
    assert_eq!(shown(&hours, asked), expected);
    assert_eq!(hours.missing_hours, 2);
    let gap = hours.gaps[0].to_string();
    assert_eq!(gap, "2023-11-15T01:00:00Z to 2023-11-15T02:00:00Z (1 h, partial answer: a store is down)");
}

#[test]
fn an_hour_that_clocks_show_twice_or_never_is_one_of_universal_time() {
    // 2026-03-29 and 2026-10-25, 01:00 UTC: Berlin leaps from 2 to 3 o'clock, and falls back.
    for unix_s in [1_774_746_000, 1_792_890_000] {
        let from = HourStart::from_unix_s(unix_s).unwrap().plus_hours(-1);
        let asked = Span { from, until: from.plus_hours(3) };
        let sample = |place: i64| Sample { at_ms: (from.unix_s() + place * 900) * 1_000, value: (place / 4) as f64 };
        let series = Series { labels: labels(&[("namespace", "vision")]), samples: (0..12).map(sample).collect() };
        let demand = Answer { series: vec![series], warnings: Vec::new() };
        let hours = collected(&[(asked, demand, None)], asked, &[], false).unwrap();
        assert_eq!(shown(&hours, asked), "*@A100 0 1 2\nvision@A100 0 1 2");
    }
}

fn refused(labels_of: &[(&str, &str)], samples: Vec<Sample>) -> String {
    let demand = Answer { series: vec![Series { labels: labels(labels_of), samples }], warnings: Vec::new() };
    collected(&[(span(0, 1), demand, None)], span(0, 1), &[], false).unwrap_err().to_string()
}

#[test]
fn what_no_rows_can_be_made_of_is_refused_with_series_and_remedy() {
    let one = || samples(0, "1 1 1 1");
    let at = |at_s: i64| vec![Sample { at_ms: (hour(0).unix_s() + at_s) * 1_000, value: 1.0 }];
    for (fault, expected) in [
        (
            refused(&[("pod", "a")], one()),
            "series {pod=\"a\"} has no label namespace: name another label with organization_label",
        ),
        (refused(&[("namespace", "")], one()), "series {namespace=\"\"} has no label namespace"),
        (refused(&[("namespace", "*")], one()), "the organization * is reserved for the pool's own peak"),
        (refused(&[("namespace", " a")], one()), "the organization \" a\" begins or ends with a space"),
        (
            refused(&[("__name__", "gpu_seconds_total"), ("namespace", "a")], one()),
            "gpu_seconds_total is a counter, not demand",
        ),
        (
            refused(&[("namespace", "a")], samples(0, "1 -2 1 1")),
            "at 2023-11-15T00:15:00Z: -2 GPUs is negative: amounts of GPUs are 0 or more",
        ),
        (
            refused(&[("namespace", "a")], samples(0, "1 2e7 1 1")),
            "2e7 GPUs exceeds the limit of 10000000 GPUs: write GPUs",
        ),
        (refused(&[("namespace", "a")], at(-900)), "unexpected or repeated sample"),
        (refused(&[("namespace", "a")], at(3_600)), "unexpected or repeated sample"),
        (refused(&[("namespace", "a")], at(7)), "unexpected or repeated sample"),
        (refused(&[("namespace", "a")], [at(900), at(900)].concat()), "unexpected or repeated sample"),
        (refused(&[("namespace", "a")], [at(1_800), at(900)].concat()), "unexpected or repeated sample"),
    ] {
        assert!(fault.contains(expected), "{fault}, expected {expected}");
    }
}

#[test]
fn organizations_that_exceed_together_what_may_be_stated_are_refused_with_their_time() {
    let demand = answer(0, &[("vision", "6e6 6e6 1 1"), ("speech", "1 6e6 1 1")]);
    let fault = collected(&[(span(0, 1), demand, None)], span(0, 1), &[], false).unwrap_err().to_string();
    let expected = "the sum over the organizations at 2023-11-15T00:15:00Z exceeds the limit of 10000000 GPUs";
    assert!(fault.starts_with(expected), "{fault}");
}

#[test]
fn two_series_of_one_organization_are_refused_as_counted_twice() {
    let of = |instance: &str| {
        let labels = labels(&[("namespace", "a"), ("instance", instance)]);
        Series { labels, samples: samples(0, "1 1 1 1") }
    };
    let demand = Answer { series: vec![of("ksm-0"), of("ksm-1")], warnings: Vec::new() };
    let fault = collected(&[(span(0, 1), demand, None)], span(0, 1), &[], false).unwrap_err();
    assert!(fault.to_string().contains("instance=\"ksm-0\"") && fault.to_string().contains("sum by"), "{fault}");
}

#[test]
fn a_series_without_a_model_is_refused_without_a_default() {
    let cluster = ClusterName::parse("earth").unwrap();
    let labels = Labels { fixed_model: None, ..of_labels() };
    let mut collector = Collector::new(&cluster, &labels, Rhythm { step_s: STEP_S, least_share: 0.5 });
    let fault = collector.take(span(0, 1), &answer(0, &[("vision", "1 1 1 1")]), None).unwrap_err();
    assert!(fault.to_string().contains("has no GPU model (model): name it with gpu_model (--gpu-model)"), "{fault}");
}
