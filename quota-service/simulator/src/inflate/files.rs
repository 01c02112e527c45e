//! The files of a comparison: inflate.csv, curves.csv and inflate.html.

use super::Filled;
use super::curve::Figures;
use super::page::page;
use super::trace::Trace;
use crate::args::Inflate;
use crate::commands::SimulatorError;
use crate::files::text;
use crate::spread::Spread;
use std::fmt::Write as _;
use std::path::Path;

/// Writes the files, each whole or not at all.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(folder: &Path, all: &[Filled], trace: &Trace, what: &Inflate) -> Result<(), SimulatorError> {
    let fault = |fault| SimulatorError::Write { file: folder.to_owned(), fault };
    std::fs::create_dir_all(folder).map_err(fault)?;
    text(folder, "inflate.csv", &figures(all))?;
    text(folder, "curves.csv", &curves(all))?;
    text(folder, "inflate.html", &page(all, trace, what))
}

/// One line a policy, figure and percent.
fn figures(all: &[Filled]) -> String {
    let mut lines = "policy,figure,at_percent,mean,sd\n".to_owned();
    for Filled { policy, figures, .. } in all {
        let Figures { grar_at, eopc_kw_at, failed_pods, cpu_s } = figures;
        let mut line = |figure: &str, at: &str, Spread { mean, sd }: &Spread| {
            let _ = writeln!(lines, "{policy},{figure},{at},{mean},{sd}");
        };
        for (at, spread) in grar_at {
            line("grar", at, spread);
        }
        for (at, spread) in eopc_kw_at {
            line("eopc_kw", at, spread);
        }
        line("failed_pods", "", failed_pods);
        line("cpu_s", "", cpu_s);
    }
    lines
}

fn curves(all: &[Filled]) -> String {
    let mut lines = "policy,requested_percent,grar_mean,grar_sd,eopc_kw_mean,eopc_kw_sd\n".to_owned();
    for Filled { policy, curves, .. } in all {
        for (percent, (grar, eopc)) in curves.grar.iter().zip(&curves.eopc_kw).enumerate() {
            let _ = writeln!(lines, "{policy},{percent},{},{},{},{}", grar.mean, grar.sd, eopc.mean, eopc.sd);
        }
    }
    lines
}
