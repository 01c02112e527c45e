//! Units, images and pages name what is there.

use super::{alerts, file, text};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use tests::{program_names, program_path, workspace_root};

fn units(ending: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(file("systemd")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.to_str().unwrap().to_owned());
    let mut units: Vec<_> = names.filter(|name| name.ends_with(ending)).collect();
    units.sort_unstable();
    assert!(!units.is_empty(), "there are no units {ending}");
    units.into_iter().map(|name| (name.clone(), text(&format!("systemd/{name}")))).collect()
}

#[test]
fn every_alert_has_a_section_of_the_runbook_and_every_section_an_alert() {
    let (rules, page) = (text("prometheus/alerts.yml"), text("README.md"));
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, alerts(), "the sections follow the rules");
    for alert in alerts() {
        let link = format!("runbook_url: deploy/README.md#{}\n", alert.to_lowercase());
        assert!(rules.contains(&link), "{alert} does not lead to its section");
    }
}

#[test]
fn units_run_existing_programs_as_an_unprivileged_user() {
    let programs: BTreeSet<String> = program_names().into_iter().collect();
    for (name, unit) in units(".service") {
        let has = |line: &str| unit.lines().any(|other| other == line);
        for line in ["User=headroom", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="] {
            assert!(has(line), "{name} has no {line}");
        }
        let prevented =
            unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap_or_default();
        let prevented: BTreeSet<&str> = prevented.split(' ').collect();
        assert!(
            prevented.contains("2") && prevented.contains("4"),
            "{name} starts again on wrong usage or bad settings"
        );
        let ours = unit.split("/usr/local/bin/").skip(1);
        let names: Vec<&str> = ours.filter_map(|rest| rest.split([' ', '\n']).next()).collect();
        assert!(!names.is_empty(), "{name} runs no program of ours");
        for program in names {
            assert!(programs.contains(program), "{name} runs {program}, which there is not");
        }
    }
    for (name, _) in units(".timer") {
        assert!(file(&format!("systemd/{}", name.replace(".timer", ".service"))).exists(), "{name} starts nothing");
    }
}

/// Runs the commands of a unit (`ExecStart`, then `ExecStartPost`) as systemd does, but for its folders: `state` in place of `/var/lib`, the
/// programs of this build, and a settings file that may be missing. The exit code of the first that fails and its stderr, else 0.
fn ran_unit(unit: &str, instance: &str, state: &Path, settings: &Path) -> (i32, String) {
    let programs = format!("{}/", program_path("datasets").parent().unwrap().display());
    for key in ["ExecStart=", "ExecStartPost="] {
        for line in unit.lines().filter_map(|line| line.strip_prefix(key)) {
            let line = line.replace("%%", "\0").replace("%S", state.to_str().unwrap()).replace("%i", instance);
            let line = line.replace('\0', "%").replace("/usr/local/bin/", &programs);
            let line = line
                .replace("/etc/headroom/headroom.toml", settings.to_str().unwrap())
                .replace("*.backup", "'*.backup'");
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &line]).stdin(Stdio::null()).current_dir(state).env_remove("DATABASE_URL");
            let ran = command.output().unwrap();
            if !ran.status.success() {
                return (ran.status.code().unwrap_or(-1), String::from_utf8_lossy(&ran.stderr).into_owned());
            }
        }
    }
    (0, String::new())
}

#[test]
fn the_command_of_every_unit_is_accepted_and_those_that_end_do_their_work() {
    let folder = tempfile::tempdir().unwrap();
    let (state, settings) = (folder.path(), folder.path().join("headroom.toml"));
    for (name, unit) in units(".service") {
        let (code, stderr) = ran_unit(&unit, "8081", state, &state.join("missing.toml"));
        assert_eq!(code, 4, "{name} without its settings: {stderr}");
    }
    for name in ["headroom", "headroom-backups", "headroom-incoming"] {
        std::fs::create_dir(state.join(name)).unwrap();
    }
    std::fs::write(&settings, format!("database = \"sqlite://{}/headroom/headroom.db\"\n", state.display())).unwrap();
    let usage = "hour,cluster,gpu_model,organization,demand_gpus\n2026-11-22T00:00:00Z,earth,V100,a,4\n";
    std::fs::write(state.join("headroom-incoming/earth.csv"), usage).unwrap();
    for name in ["headroom-ingest@.service", "headroom-backup.service", "headroom-retain.service"] {
        let (code, stderr) = ran_unit(&text(&format!("systemd/{name}")), "earth", state, &settings);
        assert_eq!(code, 0, "{name}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(state.join("headroom-backups")).unwrap().count(), 1);
}

#[test]
fn one_of_several_services_differs_from_a_single_one_by_its_port_alone() {
    let lines = |name: &str| -> Vec<String> {
        let unit = text(name);
        unit.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let (one, several) = (lines("systemd/headroom.service"), lines("systemd/headroom@.service"));
    let differs: Vec<&String> = several.iter().filter(|line| !one.contains(line)).collect();
    assert!(differs.iter().all(|line| line.contains("%i")), "{differs:?}");
    let missing = one.iter().filter(|line| !several.contains(line)).count();
    assert!(missing <= 2, "description and command are all that may be missing: {missing}");
}

#[test]
fn settings_of_containers_and_units_are_settings() {
    let example = text("headroom.toml");
    let keys = example.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(" = ")).map(|(key, _)| key);
    let known: BTreeSet<String> = keys.map(|key| format!("HEADROOM_{}", key.to_uppercase())).collect();
    let files = ["compose.yml", "README.md", "Containerfile", "systemd/headroom.service", "systemd/headroom@.service"];
    for name in files {
        let text = text(name);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words.filter(|word| word.starts_with("HEADROOM_")) {
            assert!(known.contains(word), "{name}: {word} is no setting");
        }
    }
}

#[test]
fn the_image_has_every_program_and_the_page_of_upgrades_every_migration() {
    let image = text("Containerfile");
    for program in program_names() {
        assert!(image.contains(&program), "{program} is not in the image");
    }
    let page = text("UPGRADES.md");
    for entry in std::fs::read_dir(workspace_root().join("datasets/store/migrations/postgres")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let number: u32 = name.split('_').next().unwrap().parse().unwrap();
        assert!(page.contains(&format!("\n| {number} | ")), "UPGRADES.md does not tell of migration {name}");
    }
}
