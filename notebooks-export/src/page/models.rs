//! Comparison of the models, overall and by step.

use super::{View, figure, legend, line_class};
use crate::analysis::ModelView;
use forecaster::scores::Scores;
use maud::{Markup, html};
use pages::{Axis, Chart, fine_gpus, percent, signed_percent};

/// A column of the table: heading, value, and whether the smallest is the best.
type Column = (&'static str, fn(&Scores) -> f64, fn(f64) -> String, bool);

const COLUMNS: [Column; 9] = [
    ("MAE", |scores| scores.mae_median_gpus, fine_gpus, true),
    ("RMSE", |scores| scores.rmse_mean_gpus, fine_gpus, true),
    ("pinball 0.9", |scores| scores.pinball_gpus[0], fine_gpus, true),
    ("pinball 0.95", |scores| scores.pinball_gpus[1], fine_gpus, true),
    ("CRPS", |scores| scores.crps_gpus, fine_gpus, true),
    ("held 0.9", |scores| scores.coverage[0], percent, false),
    ("held 0.95", |scores| scores.coverage[1], percent, false),
    ("MAQE 0.9", |scores| scores.maqe[0], thousandths, true),
    ("MAQE 0.95", |scores| scores.maqe[1], thousandths, true),
];

fn thousandths(value: f64) -> String {
    format!("{value:.3}")
}

pub fn section(view: &View<'_>) -> Markup {
    let how = "Errors and losses in GPUs, smaller is better, the best of each column in bold. Held: the share of hours at \
               or below the quantile; the promise is 90 % and 95 %. Terms are defined at the end.";
    let content = html! { (table(view)) (skills(view)) };
    super::section("models", "Comparison of models", how, &content)
}

fn table(view: &View<'_>) -> Markup {
    let best = |column: &Column| {
        let values = view.models.iter().map(|model| column.1(&model.scores));
        values.fold(f64::INFINITY, f64::min)
    };
    let bests: Vec<f64> = COLUMNS.iter().map(best).collect();
    html! {
        div class="wide" { table class="tight" {
            thead { tr { th scope="col" { "Model" } @for column in &COLUMNS { th scope="col" { (column.0) } } } }
            tbody {
                @for model in &view.models {
                    tr class=[(model.name == view.subject()).then_some("subject")] {
                        th scope="row" { (model.name) }
                        @for (column, best) in COLUMNS.iter().zip(&bests) {
                            @let value = column.1(&model.scores);
                            td { @if column.3 && value <= *best { b { (column.2(value)) } } @else { (column.2(value)) } }
                        }
                    }
                }
            }
        } }
    }
}

/// Every model against every baseline.
fn skills(view: &View<'_>) -> Markup {
    let baselines: Vec<&str> =
        view.models.iter().filter(|model| model.is_baseline).map(|model| model.name.as_str()).collect();
    if baselines.is_empty() {
        return html! { p { "No baseline among the models: no skill can be computed." } };
    }
    html! {
        h3 { "Skill: loss saved against a baseline" }
        p class="how" { "+20 % is a fifth less loss than the baseline, −20 % a fifth more. Three losses: MAE, pinball 0.9, CRPS." }
        div class="wide" { table class="tight" {
            thead {
                tr { th scope="col" rowspan="2" { "Model" } @for name in &baselines { th scope="colgroup" colspan="3" { "against " (name) } } }
                tr { @for _ in &baselines { th scope="col" { "MAE" } th scope="col" { "pinball" } th scope="col" { "CRPS" } } }
            }
            tbody { @for model in &view.models { (skill_row(model, &baselines, view)) } }
        } }
    }
}

fn skill_row(model: &ModelView, baselines: &[&str], view: &View<'_>) -> Markup {
    let value = |skill: Option<f64>| {
        let class = skill.map(|skill| if skill > 0.0 { "good" } else { "bad" });
        html! { td class=[class] { (skill.map_or_else(|| "–".to_owned(), signed_percent)) } }
    };
    html! {
        tr class=[(model.name == view.subject()).then_some("subject")] {
            th scope="row" { (model.name) }
            @for name in baselines {
                @match model.skills.iter().find(|skill| skill.baseline == *name) {
                    Some(skill) => { (value(skill.mae_median)) (value(skill.pinball_q90)) (value(skill.crps)) }
                    None => { td class="none" colspan="3" { "itself" } }
                }
            }
        }
    }
}

/// One number of the scores.
type Loss = fn(&Scores) -> f64;

/// Errors by step.
pub fn by_step(view: &View<'_>) -> Markup {
    let how = "The error normally grows with the step.";
    let losses: [(&str, Loss); 2] = [
        ("MAE of the median", |scores| scores.mae_median_gpus),
        ("pinball loss at 0.9", |scores| scores.pinball_gpus[0]),
    ];
    let names: Vec<_> = view.models.iter().enumerate().map(class_and_name).collect();
    let content = html! {
        (legend(&names))
        div class="pair" { @for (name, loss) in losses { (figure(name, &step_chart(view, name, loss))) } }
    };
    super::section("steps", "Error by step", how, &content)
}

fn class_and_name((place, model): (usize, &ModelView)) -> (String, String) {
    (line_class(place, model.is_baseline), model.name.clone())
}

fn step_chart(view: &View<'_>, name: &str, loss: Loss) -> Markup {
    let values = view.models.iter().flat_map(|model| model.by_step.iter().map(|(_, scores)| loss(scores)));
    let most = values.fold(0.0, f64::max);
    let steps = usize::from(view.material.horizon());
    let chart = Chart {
        width: 460.0,
        height: 240.0,
        x: Axis::whole("step: hours ahead", 1, steps),
        y: Axis::from_zero("GPUs", most, 5),
        says: format!("{name} by step, a line a model"),
    };
    let drawn = html! {
        @for (place, model) in view.models.iter().enumerate() {
            @let class = line_class(place, model.is_baseline);
            path class=(class) d=(chart.line(model.by_step.iter().map(|(step, scores)| (*step as f64, Some(loss(scores)))))) {}
            @for (step, scores) in &model.by_step {
                circle class=(format!("dot m{}", place % 8)) cx=(chart.x(*step as f64)) cy=(chart.y(loss(scores))) r="3" {
                    title { (model.name) ", step " (step) ": " (fine_gpus(loss(scores))) " GPUs" }
                }
            }
        }
    };
    chart.render(&drawn)
}
