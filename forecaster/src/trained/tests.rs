//! A training in parts gives what one in memory gives.

use super::*;
use crate::blend::Settings;
use crate::checkpoint;
use crate::rows::{History, HistoryFault, Source};
use datasets::{Calendar, PanelBuilder};
use vocab::{ClusterName, Organization};

const HOURS: u32 = 500;

fn calendar() -> Calendar {
    Calendar::parse("UTC", Calendar::WEEKDAYS).unwrap()
}

/// Organizations of two pools, with gaps, of which one pauses and the last one begins late; `keep` chooses among them.
fn panel(cluster: &str, keep: impl Fn(usize) -> bool) -> Panel {
    let start = HourStart::from_unix_s(1_588_291_200).unwrap();
    let end = start.plus_hours(i64::from(HOURS));
    let mut builder = PanelBuilder::new(ClusterName::parse(cluster).unwrap(), calendar(), start, end);
    for place in (0..6_usize).filter(|place| keep(*place)) {
        let pool = PoolId::parse(&format!("{cluster}:{}", if place < 4 { "A100" } else { "V100" })).unwrap();
        let id = SeriesId { pool, organization: Organization::parse(&format!("org{place}")).unwrap() };
        let size = [4.0, 8.0, 32.0, 100.0, 16.0, 2.0][place];
        let demand = (0..HOURS).map(|hour| {
            let noise = f64::from((hour * 7 + place as u32 * 3) % 5) * size / 40.0;
            match hour % 24 {
                _ if place == 3 && (100..148).contains(&hour) => 0.0,
                9..17 => size * 2.0 + noise,
                _ => size + noise,
            }
        });
        let first = if place == 5 { 200 } else { 0 };
        let measured = (0..HOURS).map(|hour| hour >= first && !(place == 2 && hour % 97 == 0)).collect();
        builder.push_series(id, demand.collect(), measured, Vec::new()).unwrap();
    }
    builder.finish().unwrap()
}

/// The parts of a panel.
struct Parts(Vec<Panel>);

impl History for Parts {
    fn each(&self, visit: &mut dyn FnMut(&Panel)) -> Result<(), HistoryFault> {
        self.0.iter().for_each(visit);
        Ok(())
    }
}

fn settings() -> Settings {
    let mut settings = Settings::DEFAULT;
    settings.growth.rounds = 8;
    settings.growth.members = 1;
    (settings.lesson.members, settings.lesson.epochs) = (1, 2);
    settings
}

fn spec(kind: ModelKind) -> ModelSpec {
    ModelSpec { kind, horizon: HorizonHours::new(3).unwrap(), lookback_hours: 168, seed: 1 }
}

fn streamed(
    whole: &Panel,
    history: &dyn History,
    others: &[&dyn History],
    kind: ModelKind,
) -> (Vec<u8>, Validation, usize) {
    let spec = spec(kind);
    let split = split(whole, whole.end(), &spec).unwrap();
    let recent = whole.since(recent_from(whole.start(), split.validation, &spec));
    let source = Source { history, others, split, spec, settings: settings() };
    let what = Streamed { source, recent: &recent, start: whole.start() };
    let mut hours = 0;
    let sink: IssuedSink<'_> = &mut |pools, _, issued| {
        hours += usize::from(pools.len() == 2 && issued.forecasts.len() == 6);
        Ok(())
    };
    let (trained, validation) = train_streamed(&what, GuaranteeRate::GFS, Switch::Auto, sink).unwrap();
    (checkpoint::save(&trained, "1").unwrap(), validation, hours)
}

#[test]
fn a_training_in_parts_gives_the_same_bytes_as_one_in_memory() {
    let whole = panel("earth", |_| true);
    let parts = Parts([0..2, 2..5, 5..6].map(|places| panel("earth", |place| places.contains(&place))).into());
    let fit = Fit {
        panel: &whole,
        split: split(&whole, whole.end(), &spec(ModelKind::OrgLinear)).unwrap(),
        spec: spec(ModelKind::OrgLinear),
        settings: settings(),
    };
    let (trained, validation) = train(&fit, GuaranteeRate::GFS, Switch::Auto, &mut |_| ()).unwrap();
    let (bytes, ours, hours) = streamed(&whole, &parts, &[], ModelKind::OrgLinear);
    assert_eq!(bytes, checkpoint::save(&trained, "1").unwrap());
    let restored = checkpoint::load(&bytes).unwrap();
    let returned = whole.series().iter().map(|one| restored.has_returned(one.id()));
    assert_eq!(returned.collect::<Vec<_>>(), [false, false, false, true, false, false]);
    assert_eq!(hours, validation.issued.len());
    assert_eq!(Validation { issued: validation.issued.clone(), ..ours }, validation);
}

#[test]
fn rows_of_other_clusters_change_the_model_and_their_order_and_cut_do_not_matter_to_its_series() {
    let whole = panel("earth", |_| true);
    let (mars, halves) =
        (panel("mars", |_| true), Parts(vec![panel("mars", |place| place < 3), panel("mars", |place| place >= 3)]));
    let (alone, ..) = streamed(&whole, &whole, &[], ModelKind::Trees);
    let (joined, validation, _) = streamed(&whole, &whole, &[&mars], ModelKind::Trees);
    let (again, ..) = streamed(&whole, &whole, &[&halves], ModelKind::Trees);
    assert_ne!(alone, joined);
    assert_eq!(joined, again);
    assert!(validation.scores.rows > 0);
}

#[test]
fn a_model_that_needs_all_series_at_once_is_refused_with_what_to_do() {
    let whole = panel("earth", |_| true);
    let spec = spec(ModelKind::AutoEts);
    let split = split(&whole, whole.end(), &spec).unwrap();
    let source = Source { history: &whole, others: &[], split, spec, settings: settings() };
    let what = Streamed { source, recent: &whole, start: whole.start() };
    let fault = train_streamed(&what, GuaranteeRate::GFS, Switch::Off, &mut |_, _, _| Ok(())).unwrap_err();
    assert!(fault.to_string().contains("give it more --memory"), "{fault}");
}
