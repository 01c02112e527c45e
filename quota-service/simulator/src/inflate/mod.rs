//! `simulate inflate`: a fleet is filled with pods of a trace until nothing fits, under each policy and for each seed; how much
//! of what they ask for is placed, and what the fleet draws meanwhile (the experiment of the FGD and PWR papers).

mod curve;
mod files;
mod page;
mod run;
mod trace;

use crate::args::{Config, Inflate};
use crate::commands::SimulatorError;
use crate::power::PowerFault;
use command_line::{Progress, print_json, print_text, say, table};
use curve::{Curves, Figures};
use std::collections::BTreeMap;
use trace::Trace;

/// Why a fleet cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum InflateError {
    #[error(transparent)]
    Read(#[from] datasets::ReadError),
    #[error("a node is refused: {0}")]
    Node(#[from] placement::fleet::NodeError),
    #[error(transparent)]
    Name(#[from] vocab::NameError),
    #[error("{}: no node has a GPU", file.display())]
    NoGpus { file: std::path::PathBuf },
    #[error("{}: {have} GPU models are more than the {most} that a fleet may have", file.display())]
    TooManyModels { file: std::path::PathBuf, have: usize, most: u8 },
    #[error("{}: no pod asks for a GPU, so that requests would never reach the capacity", file.display())]
    NoRequests { file: std::path::PathBuf },
    #[error(transparent)]
    Power(#[from] PowerFault),
}

/// The runs of a policy.
pub struct Filled {
    pub policy: String,
    pub curves: Curves,
    pub figures: Figures,
}

/// `simulate inflate`.
///
/// # Errors
/// A list cannot be read, a policy is none, what a GPU model draws is not known, or the folder cannot be written.
pub fn inflate(what: &Inflate, config: &Config, json: bool) -> Result<(), SimulatorError> {
    // A wrong name is refused before anything runs.
    let policies = what.policies.iter().map(|id| crate::policies::named(id)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = policies.iter().map(|(name, ..)| name.as_str()).collect();
    crate::policies::each_once("--policies", &names).map_err(SimulatorError::Value)?;
    let trace = Trace::read(what)?;
    let progress = Progress::new("inflate", policies.len() as u64 * what.seeds);
    let (mut all, mut done) = (Vec::new(), 0);
    for (id, policy, _) in policies {
        let mut runs = Vec::new();
        for seed in (0..what.seeds).map(|number| config.seed.wrapping_add(number)) {
            progress.step(done, format!("{id}, seed {seed}"));
            runs.push(run::fill(&trace, &policy.seeded(seed), seed)?);
            done += 1;
        }
        all.push(Filled { policy: id, figures: Figures::of(&runs), curves: Curves::of(&runs) });
    }
    progress.done();
    if let Some(folder) = &what.out {
        files::write(folder, &all, &trace, what)?;
    }
    show(&all, json);
    Ok(())
}

fn show(all: &[Filled], json: bool) {
    if json {
        let figures: BTreeMap<&str, &Figures> = all.iter().map(|one| (one.policy.as_str(), &one.figures)).collect();
        print_json(&figures);
        return;
    }
    let grar = |one: &Filled, at: &str| one.figures.grar_at[at].text(4);
    let eopc = |one: &Filled, at: &str| one.figures.eopc_kw_at[at].text(1);
    let row = |one: &Filled| {
        vec![
            one.policy.clone(),
            one.figures.failed_pods.text(0),
            grar(one, "95"),
            grar(one, "100"),
            grar(one, "130"),
            eopc(one, "20"),
            eopc(one, "50"),
            eopc(one, "80"),
            eopc(one, "90"),
            one.figures.cpu_s.text(2),
        ]
    };
    let header = ["policy", "failed", "GRAR@95", "GRAR@100", "GRAR@130", "kW@20", "kW@50", "kW@80", "kW@90", "CPU s"];
    print_text(&table(&header, &all.iter().map(row).collect::<Vec<_>>()));
    say("means ± deviations over seeds; @: when pods have asked for so many percent of all GPUs");
}
