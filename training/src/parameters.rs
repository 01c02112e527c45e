//! The parameters of a run, as they are kept with it.

use crate::error::TrainingError;
use command_line::unread;
use datasets::Calendar;
use forecaster::blend::Settings;
use forecaster::orglinear::Config;
use forecaster::{ModelKind, ModelSpec};
use serde_json::{Value, json};
use std::path::Path;

/// The settings of a training: those of the file that `--settings` names, else the default ones.
///
/// # Errors
/// The file cannot be read or holds something else, or none of the models has such settings.
pub fn chosen(file: Option<&Path>, models: &[ModelKind]) -> Result<Settings, TrainingError> {
    let Some(file) = file else { return Ok(Settings::DEFAULT) };
    match models {
        [model, ..] if models.iter().all(|model| model.recipe().is_none()) => {
            Err(TrainingError::SettingsOfOther { model: *model })
        }
        _ => read(file),
    }
}

/// Settings of a blend from a file, as `train tune --out` writes them; what it does not name stays as it is by default.
///
/// # Errors
/// The file cannot be read, or holds something else.
fn read(file: &Path) -> Result<Settings, TrainingError> {
    let text = std::fs::read_to_string(file)
        .map_err(|fault| TrainingError::SettingsUnread { file: file.to_owned(), why: unread(&fault) })?;
    let refused = |why: String| TrainingError::SettingsFile { file: file.to_owned(), why };
    let settings: Settings = serde_json::from_str(&text).map_err(|fault| refused(fault.to_string()))?;
    settings.check().map_err(|fault| refused(fault.to_string()))?;
    Ok(settings)
}

/// Everything that decided what the fit gave, besides the data and the seed.
pub fn describe(spec: &ModelSpec, settings: &Settings, calendar: &Calendar) -> Value {
    let mut parameters = json!({
        "lookback_hours": spec.lookback_hours,
        "horizon_hours": spec.horizon.get(),
        "calendar": calendar.name(),
        "time_zone": calendar.zone().name(),
    });
    if let (Some(config), Some(object)) = (spec.kind.orglinear(), parameters.as_object_mut()) {
        object.insert("orglinear".to_owned(), orglinear(&config));
    }
    if let (Some(_), Some(object)) = (spec.kind.recipe(), parameters.as_object_mut()) {
        object.insert("settings".to_owned(), json!(settings));
    }
    parameters
}

fn orglinear(config: &Config) -> Value {
    json!({
        "moving_average_hours": config.moving_average_hours,
        "padding": format!("{:?}", config.padding),
        "attention_scaling": format!("{:?}", config.attention_scaling),
        "calendar_input": format!("{:?}", config.calendar_input),
        "input_scaling": format!("{:?}", config.input_scaling),
        "zero_targets": format!("{:?}", config.zero_targets),
        "embedding_width": config.embedding_width,
        "attention_width": config.attention_width,
        "epochs": config.epochs,
        "patience_epochs": config.patience_epochs,
        "epoch_choice": format!("{:?}", config.epoch_choice),
        "batch_issues": config.batch_issues,
        "epoch_batches": config.epoch_batches,
        "learning_rate": config.learning_rate,
        "halving_epochs": config.halving_epochs,
    })
}
