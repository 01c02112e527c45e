//! Policies by their names, or from files.

use crate::commands::SimulatorError;
use command_line::read_toml;
use placement::Policy;
use placement::shares::Weights;
use std::path::Path;
use wire::PolicyBody;

/// Checks that a list of an option names nothing twice: rows of one name cannot be distinguished, and are played in vain.
///
/// # Errors
/// It does, in words.
pub fn each_once<T: PartialEq + std::fmt::Display>(option: &str, values: &[T]) -> Result<(), String> {
    let twice = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value));
    twice.map_or(Ok(()), |(_, twice)| Err(format!("{option} names {twice} twice: name each once")))
}

/// The policy of that name, or the one in that file, which has a name of its own.
///
/// # Errors
/// There is no such policy or file, or what the file says does not go together.
pub fn named(text: &str) -> Result<(String, Policy, Weights), SimulatorError> {
    let file = Path::new(text);
    if file.extension().is_some_and(|extension| extension == "toml") {
        let body: PolicyBody = read_toml(file)?;
        let refused = |fault| SimulatorError::Policy { file: file.to_owned(), fault };
        let (policy, weights) = (body.parse("").map_err(refused)?, body.weights("").map_err(refused)?);
        return Ok((body.name, policy, weights));
    }
    let policy = Policy::parse(text).ok_or_else(|| SimulatorError::NoPolicy { name: text.to_owned() })?;
    Ok((text.to_owned(), policy, Weights::default()))
}
