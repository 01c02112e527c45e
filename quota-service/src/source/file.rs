//! The file that names sources, a table for each cluster.

use command_line::read_toml;
use datasets::Calendar;
use prometheus::{Source, SourceSettings};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::ClusterName;

/// Reads and checks it. Whether the servers are there is not asked.
///
/// # Errors
/// There is no such file, a key is not known, or a value is of no use; the sentence names the place and what to write.
pub fn read(file: &Path) -> Result<Vec<Source>, String> {
    let tables: BTreeMap<String, SourceSettings> = read_toml(file).map_err(|fault| fault.to_string())?;
    let place = |cluster: &str| format!("{}, table {cluster}", file.display());
    let mut sources = Vec::with_capacity(tables.len());
    for (name, settings) in &tables {
        let cluster = ClusterName::parse(name).map_err(|fault| format!("{}: {fault}", place(name)))?;
        let source = settings.source(cluster).map_err(|fault| format!("{}, {fault}", place(name)))?;
        Calendar::parse(&source.time_zone, &source.calendar).map_err(|fault| {
            let hint = "a calendar of your own is given with datasets calendar set";
            format!("{}, time_zone or calendar: {fault}; {hint}", place(name))
        })?;
        sources.push(source);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Source>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sources.toml");
        std::fs::write(&file, text).unwrap();
        read(&file).map_err(|fault| fault.replace(&file.display().to_string(), "FILE"))
    }

    #[test]
    fn the_example_names_every_key_with_its_default() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus-sources.toml");
        let sources = read(&example).unwrap();
        assert_eq!(sources.iter().map(|source| source.cluster.as_str()).collect::<Vec<_>>(), ["earth"]);
        // Commented settings are parsed, too: they show the defaults.
        let text = std::fs::read_to_string(&example).unwrap();
        let is_key = |line: &str| line.strip_prefix("# ").is_some_and(|rest| rest.split(' ').nth(1) == Some("="));
        let all: Vec<&str> = text.lines().map(|line| if is_key(line) { &line[2..] } else { line }).collect();
        assert_eq!(read_text(&all.join("\n")).unwrap(), sources);
        assert_eq!(all.iter().filter(|line| line.contains(" = ")).count(), 16, "as many as there are settings");
    }

    #[test]
    fn a_fault_names_file_table_key_and_remedy() {
        let good = "url = \"http://p:9090\"\nhp_priority_classes = [\"high\"]\ngpu_model = \"A100\"\n";
        for (text, expected) in [
            (
                format!("[earth]\n{good}stap_s = 1"),
                "FILE, key earth: key \"stap_s\" is not known, did you mean \"step_s\"?",
            ),
            (format!("[earth]\n{good}step_s = 7"), "FILE, table earth, step_s: 7 s do not divide an hour"),
            (format!("[\"a:b\"]\n{good}"), "FILE, table a:b: the cluster \"a:b\" holds a colon"),
            (
                format!("[earth]\n{good}time_zone = \"Mars\""),
                "FILE, table earth, time_zone or calendar: \"Mars\" is not a time zone",
            ),
            (
                "[earth]\nurl = \"http://me:hush@p\"".to_owned(),
                "FILE, table earth, url: the URL holds a user or a password",
            ),
            ("[earth".to_owned(), "FILE"),
        ] {
            let refused = read_text(&text).unwrap_err();
            assert!(refused.contains(expected) && !refused.contains("hush"), "{refused}, expected {expected}");
        }
        assert!(read(Path::new("/missing/sources.toml")).unwrap_err().contains("there is no such file"));
    }
}
