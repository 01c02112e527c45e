//! The forward pass and the loss against golden/orglinear.py.

use super::config::{AttentionScaling, CalendarInput, Config, Padding};
use super::decompose;
use super::forward::Folded;
use super::samples::Batch;
use super::weights::{Shape, Weights};
use crate::descent::{crps, negative_log_likelihood};
use candle_core::{Device, Tensor};
use datasets::HourFeatures;
use serde_json::Value;
use vocab::{HorizonHours, Organization, PoolId, SeriesId};

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap() as f32],
    }
}

fn size(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn config(golden: &Value, case: &Value) -> Config {
    let reflection = case["padding"] == "reflection";
    Config {
        moving_average_hours: size(&golden["moving_average"]),
        embedding_width: size(&golden["embedding_width"]),
        attention_width: size(&golden["attention_width"]),
        padding: if reflection { Padding::Reflection } else { Padding::Edge },
        attention_scaling: if case["before_softmax"] == true {
            AttentionScaling::BeforeSoftmax
        } else {
            AttentionScaling::AfterSoftmax
        },
        calendar_input: if case["each_target"] == true {
            CalendarInput::EachTarget
        } else {
            CalendarInput::FirstTarget
        },
        ..Config::PAPER
    }
}

fn weights(case: &Value, shape: &Shape) -> Weights {
    let tensors = case["weights"].as_object().unwrap().iter().map(|(name, tensor)| {
        let dimensions: Vec<usize> = tensor["shape"].as_array().unwrap().iter().map(size).collect();
        let expected = shape.parameters().into_iter().find(|(known, ..)| known == name).unwrap().1;
        assert_eq!(dimensions, expected, "shape of {name}");
        (name.clone(), Tensor::from_vec(numbers(&tensor["values"]), dimensions, &Device::Cpu).unwrap())
    });
    Weights::new(tensors.collect())
}

fn calendars(case: &Value) -> Vec<Vec<HourFeatures>> {
    let hour = |of: &Value| {
        let [hour_of_day, weekday, day_off] = std::array::from_fn(|k| of[k].as_u64().unwrap() as u8);
        HourFeatures { hour_of_day, weekday, day_off: day_off == 1 }
    };
    let window = |hours: &Value| hours.as_array().unwrap().iter().map(hour).collect();
    case["calendar"].as_array().unwrap().iter().map(window).collect()
}

fn assert_close(ours: &Tensor, expected: &Value, what: &str) {
    let ours: Vec<f32> = ours.flatten_all().unwrap().to_vec1().unwrap();
    for (ours, expected) in ours.iter().zip(numbers(expected)) {
        assert!((ours - expected).abs() < 1e-5 * expected.abs().max(1.0), "{what}: {ours} against {expected}");
    }
}

#[test]
fn the_folded_model_computes_what_the_equations_say() {
    let golden: Value = serde_json::from_str(include_str!("../../golden/orglinear.json")).unwrap();
    let name = |series: &Value, k: usize| series[k].as_str().unwrap().to_owned();
    let series = golden["series"].as_array().unwrap().iter().map(|one| SeriesId {
        pool: PoolId::parse(&format!("{}:{}", name(one, 0), name(one, 1))).unwrap(),
        organization: Organization::parse(&name(one, 2)).unwrap(),
    });
    let series: Vec<_> = series.collect();
    let (lookback, horizon) =
        (size(&golden["lookback"]), HorizonHours::new(golden["horizon"].as_u64().unwrap()).unwrap());
    for case in golden["cases"].as_array().unwrap() {
        let config = config(&golden, case);
        let shape = Shape::new(&config, horizon, lookback, &series);
        let average = decompose::transposed(lookback, config.moving_average_hours, config.padding).unwrap();
        let folded = Folded::with_average(&weights(case, &shape), &shape, &config, &average).unwrap();
        let tensor = |key: &str, columns| Tensor::from_vec(numbers(&case[key]), (3, columns), &Device::Cpu).unwrap();
        let calendars = calendars(case);
        let batch = Batch {
            inputs: tensor("inputs", lookback),
            places: vec![0, 1, 2],
            calendars: calendars.iter().map(Vec::as_slice).collect(),
            measured: Vec::new(),
            targets: tensor("targets", horizon.steps()),
            counted: tensor("counted", horizon.steps()),
            count: 7,
        };
        let (mean, stddev) = folded.heads(&batch.inputs, &batch.places, &batch.calendars).unwrap();
        assert_close(&mean, &case["mean"], "mean");
        assert_close(&stddev, &case["stddev"], "stddev");
        assert_close(&negative_log_likelihood(&mean, &stddev, &batch).unwrap(), &case["loss"], "loss");
        assert_close(&crps(&mean, &stddev, &batch).unwrap(), &case["crps"], "crps");
    }
}
