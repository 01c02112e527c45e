//! The inputs that fuzzing has kept, and seeded mutations of them, on every target: the search itself is `make fuzz`.

use fuzz_targets::{TARGETS, Target, mutate};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tests::workspace_root;

/// Mutations of each target's inputs, shared out among them.
const MUTATIONS: usize = 3_000;

fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = workspace_root().join("tests/fuzz/corpus").join(target);
    let listed = fs::read_dir(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    let mut files: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn run(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let kept = std::env::temp_dir().join(format!("fuzz-{name}-{}", std::process::id()));
        fs::write(&kept, input).unwrap();
        panic!(
            "the target {name} failed on the bytes in {}: fix it, and add them to tests/fuzz/corpus",
            kept.display()
        );
    }
}

#[test]
fn every_target_keeps_its_promises_on_earlier_findings_and_their_mutations() {
    for (name, target) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        for (_, input) in &inputs {
            run(name, target, input);
        }
        let each = MUTATIONS.div_ceil(inputs.len());
        for (_, input) in &inputs {
            (0..each as u64).for_each(|seed| run(name, target, &mutate(input, seed)));
        }
        println!("{name}: {} inputs and {} mutations of them", inputs.len(), each * inputs.len());
    }
}

#[test]
fn the_inputs_are_few_and_small_and_every_folder_is_that_of_a_target() {
    let corpus = workspace_root().join("tests/fuzz/corpus");
    let folders = fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut folders: Vec<String> = folders.collect();
    folders.sort();
    assert_eq!(folders, TARGETS.map(|(name, _)| name), "a target without inputs, or inputs of no target");
    let all: Vec<usize> = TARGETS.iter().flat_map(|(name, _)| inputs(name)).map(|(_, bytes)| bytes.len()).collect();
    assert!(all.len() <= 160 && all.iter().sum::<usize>() <= 400 * 1_024, "{} inputs", all.len());
    assert!(all.iter().all(|bytes| *bytes <= 16 * 1_024));
}
