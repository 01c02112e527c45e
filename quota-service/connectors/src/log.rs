//! The log of a program, on stderr.

use crate::values::LogFormat;
use command_line::colours;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Starts the log.
///
/// # Errors
/// A log was started before.
pub fn start(filter: EnvFilter, format: LogFormat) -> Result<(), String> {
    let is_json = format == LogFormat::Json;
    // A line that stderr does not take is lost; reporting it there would end the program.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let lines = lines.with_ansi(colours() && !is_json);
    let lines = if is_json {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        lines.boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().map_err(|fault| fault.to_string())
}
