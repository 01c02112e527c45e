//! report.ipynb: the scores once more, from the Parquet file, for those who want to go on from there. Format 4.5 of
//! Jupyter's notebooks.

use crate::error::ExportError;
use crate::output;
use chrono_tz::Tz;
use serde_json::{Value, json};
use std::path::Path;

/// Writes the notebook; it reads `forecasts.parquet` and `metrics.csv` beside it.
pub fn write(title: &str, subject: &str, zone: Tz, file: &Path) -> Result<(), ExportError> {
    let text =
        serde_json::to_string_pretty(&notebook(title, subject, zone)).expect("string keys and no infinite number");
    output::text(file, &format!("{text}\n"))
}

/// The notebook. The same words give the same bytes.
pub fn notebook(title: &str, subject: &str, zone: Tz) -> Value {
    let subject = serde_json::to_string(subject).expect("a string is JSON");
    let cells = [
        markdown(
            "about",
            &format!(
                "# {title}\n\nThe scores of `report.html` computed again from `forecasts.parquet`, and a start for your own \
                 questions. Needs pandas with pyarrow, scipy and matplotlib."
            ),
        ),
        code("read", &READ.replace("ZONE = \"UTC\"", &format!("ZONE = \"{zone}\""))),
        markdown("definitions", DEFINITIONS),
        code("scores", SCORES),
        markdown("check-text", "The same numbers as in `metrics.csv`, which Headroom wrote:"),
        code("check", CHECK),
        markdown("bands-text", "## Demand and its forecast"),
        code("bands", &BANDS.replace("SUBJECT", &subject)),
        markdown("calibration-text", "## Calibration: a quantile at p should hold in a share p of the hours"),
        code("calibration", CALIBRATION),
        markdown("steps-text", "## Error by step and by hour of the week"),
        code("steps", STEPS),
        markdown("since-text", SINCE_TEXT),
        code("since", SINCE),
    ];
    json!({
        "cells": cells,
        "metadata": {
            "kernelspec": { "display_name": "Python 3", "language": "python", "name": "python3" },
            "language_info": { "name": "python" },
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

fn markdown(id: &str, text: &str) -> Value {
    json!({ "cell_type": "markdown", "id": id, "metadata": {}, "source": lines(text) })
}

fn code(id: &str, text: &str) -> Value {
    let source = lines(text);
    json!({ "cell_type": "code", "execution_count": null, "id": id, "metadata": {}, "outputs": [], "source": source })
}

/// As notebooks keep text: a string a line.
fn lines(text: &str) -> Vec<&str> {
    text.trim_end().split_inclusive('\n').collect()
}

const READ: &str = r#"import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
from scipy.stats import norm

ZONE = "UTC"  # hours of the day and of the week below are of this zone
forecasts = pd.read_parquet("forecasts.parquet")
scored = forecasts[~forecasts["recording_gap"]].copy()
series = ["cluster", "gpu_model", "organization"]
print(f"{len(forecasts)} forecasts, {len(forecasts) - len(scored)} of them in recording gaps and not scored")
forecasts.head()
"#;

const DEFINITIONS: &str = "## Scores\n\n\
    - **MAE**: mean of |median − demand|; **RMSE**: root of the mean of (mean − demand)²\n\
    - **pinball at p**: max(p · (demand − quantile), (p − 1) · (demand − quantile)), averaged\n\
    - **held at p** (coverage): share of hours with demand ≤ quantile at p\n\
    - **MAQE at p**: mean over series of max(0, p − share at or below the quantile, share below − p); the GFS paper does \
    not define it in full, this is Headroom's choice\n\
    - **CRPS**: that of the Gaussian with the forecast's mean and deviation (Gneiting and Raftery 2007, eq. 21)\n\
    - **skill**: 1 − loss / loss of the baseline\n\nAll in GPUs, over all series, issue times and steps.";

const SCORES: &str = r#"TOLERANCE = 1e-6


def pinball(actual, quantile, p):
    error = actual - quantile
    return np.maximum(p * error, (p - 1) * error)


def crps(actual, mean, stddev):
    stddev = np.maximum(stddev, 1e-3)
    z = (actual - mean) / stddev
    return stddev * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def maqe(rows, column, p):
    held = (rows["actual"] <= rows[column] + TOLERANCE).groupby([rows[name] for name in series]).mean()
    below = (rows["actual"] < rows[column] - TOLERANCE).groupby([rows[name] for name in series]).mean()
    return np.maximum(0, np.maximum(p - held, below - p)).mean()


def scores(rows):
    actual = rows["actual"]
    return pd.Series({
        "mae_median": (rows["q0.5"] - actual).abs().mean(),
        "rmse_mean": np.sqrt(((rows["mean"] - actual) ** 2).mean()),
        "pinball_q90": pinball(actual, rows["q0.9"], 0.9).mean(),
        "pinball_q95": pinball(actual, rows["q0.95"], 0.95).mean(),
        "crps": crps(actual, rows["mean"], rows["stddev"]).mean(),
        "coverage_q90": (actual <= rows["q0.9"] + TOLERANCE).mean(),
        "coverage_q95": (actual <= rows["q0.95"] + TOLERANCE).mean(),
        "maqe_q90": maqe(rows, "q0.9", 0.9),
        "maqe_q95": maqe(rows, "q0.95", 0.95),
    })


models = list(dict.fromkeys(scored["model"]))
table = pd.DataFrame({model: scores(scored[scored["model"] == model]) for model in models}).T
table.round(3)
"#;

const CHECK: &str = r#"# An organization may be named NA.
metrics = pd.read_csv("metrics.csv", dtype={"step": str, "organization": str}, keep_default_na=False, na_values=[""])
overall = metrics[metrics["organization"].isna() & metrics["step"].isna()]
written = overall.pivot(index="model", columns="metric", values="value").loc[table.index, table.columns]
difference = ((table - written).abs() / written.abs().clip(lower=1e-9)).max().max()
print(f"largest relative difference: {difference:.1e}")
assert difference < 1e-6, "the notebook and metrics.csv disagree"
"#;

const BANDS: &str = r#"subject = SUBJECT
ahead = forecasts["step"].max()
own = forecasts[(forecasts["model"] == subject) & (forecasts["step"] == ahead)]
largest = own.groupby(series, observed=True)["actual"].mean().nlargest(4).index
figure, axes = plt.subplots(len(largest), 1, figsize=(11, 2.6 * len(largest)), squeeze=False)
for axis, name in zip(axes[:, 0], largest):
    rows = own.set_index(series).sort_index().loc[[name]].sort_values("target_time")
    time = rows["target_time"].dt.tz_convert(ZONE)
    low = (rows["mean"] + norm.ppf(0.1) * rows["stddev"]).clip(lower=0)
    axis.fill_between(time, low, rows["q0.9"], step="post", alpha=0.4, label="0.1 to 0.9")
    axis.fill_between(time, rows["q0.9"], rows["q0.95"], step="post", alpha=0.2, label="0.9 to 0.95")
    axis.step(time, rows["q0.5"], where="post", lw=1, label="median")
    axis.step(time, rows["actual"], where="post", lw=1, color="black", label="demand")
    axis.set_title(f"{' '.join(name)}, {ahead} h ahead", loc="left")
    axis.set_ylabel("GPUs")
axes[0, 0].legend(ncols=4, fontsize="small")
figure.tight_layout()
"#;

const CALIBRATION: &str = r#"levels = np.arange(0.05, 1, 0.05)
figure, axis = plt.subplots(figsize=(5, 5))
for model in models:
    rows = scored[scored["model"] == model]
    shares = []
    for level in levels:
        above = rows["actual"] - (rows["mean"] + norm.ppf(level) * rows["stddev"])
        shares.append(np.where(above.abs() <= TOLERANCE, level, above < 0).mean())
    axis.plot(levels, shares, marker=".", label=model)
axis.plot([0, 1], [0, 1], "k--", lw=1)
axis.set_xlabel("promised level")
axis.set_ylabel("share of hours below")
axis.legend(fontsize="small")
figure.tight_layout()
"#;

const STEPS: &str = r#"error = (scored["q0.5"] - scored["actual"]).abs()
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6))
error.groupby([scored["model"], scored["step"]]).mean().unstack(0)[models].plot(ax=left, marker="o", ylabel="MAE, GPUs")
left.set_xticks(sorted(scored["step"].unique()))
own = scored["model"] == subject
time = scored.loc[own, "target_time"].dt.tz_convert(ZONE)
week = error[own].groupby([time.dt.day_of_week, time.dt.hour]).mean().unstack()
image = right.imshow(week, aspect="auto", cmap="Blues", vmin=0)
right.set_yticks(range(len(week)), [["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][day] for day in week.index])
right.set_title(f"MAE of {subject} by hour of the week ({ZONE})", loc="left")
figure.colorbar(image, label="GPUs")
figure.tight_layout()
"#;

const SINCE_TEXT: &str = "## Since then\n\n\
    Demand as a running service has it, where `HEADROOM_API` is its URL and Headroom's package for Python is installed \
    (`pip install quota-service/client/python[frames]` in its repository).";

const SINCE: &str = r#"import os

api = os.environ.get("HEADROOM_API")
if api is None:
    print("HEADROOM_API is not set: no service is asked")
else:
    from headroom import Headroom, frames

    cluster, gpu_model, _ = largest[0]
    with Headroom(api, token_file=os.environ.get("HEADROOM_API_TOKEN_FILE")) as client:
        since = frames.demand(client.pool(cluster, gpu_model).demand(hours=168))
    since.tz_convert(ZONE).plot(figsize=(11, 3), drawstyle="steps-post", ylabel="GPUs", title=f"{cluster} {gpu_model}")
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notebook_fits_the_schema_of_its_format() {
        // nbformat.v4.5.schema.json of the package nbformat 5.10 (BSD-3-Clause).
        let schema: Value = serde_json::from_str(include_str!("../fixtures/nbformat.v4.5.schema.json")).unwrap();
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("nbformat.json", schema).unwrap();
        let schema = compiler.compile("nbformat.json", &mut schemas).unwrap();
        let made = notebook("A \"title\"", "orglinear-paper", Tz::UTC);
        schemas.validate(&made, schema).unwrap();
        let mut broken = made;
        broken["cells"][0]["outputs"] = json!([]);
        assert!(schemas.validate(&broken, schema).is_err(), "the schema can refuse");
    }

    #[test]
    fn the_name_of_a_model_cannot_break_out_of_its_string() {
        let made = notebook("t", "a\"; import os", Tz::UTC).to_string();
        assert!(made.contains(r#"subject = \"a\\\"; import os\""#), "{made}");
    }
}
