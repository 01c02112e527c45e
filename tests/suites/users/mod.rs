//! The clients of people and programs against a running service: the Python package, and the program `headroom`.

mod command;
mod mcp;
mod python;
mod reservations;
mod shares;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tests::workspace_root;

/// Set where a machine without the packages of tests/python/requirements.txt is a fault of the machine.
const REQUIRED: &str = "HEADROOM_PYTHON_REQUIRED";
/// A Python with these packages.
const PYTHON: &str = "HEADROOM_PYTHON";

/// The Python package.
fn package() -> PathBuf {
    workspace_root().join("quota-service/client/python")
}

/// The Python with the packages; `None` where there is none, with a line.
fn python() -> Option<String> {
    let python = std::env::var(PYTHON).ok().filter(|path| !path.is_empty());
    if python.is_none() {
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {PYTHON} is not");
        println!("not run, since {PYTHON} is not set: a test of the Python package");
    }
    python
}

/// Runs a command in the folder of the package, which it leaves as it was.
fn ran(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(package()).stdin(Stdio::null());
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", package().join("src"));
    command.output().unwrap_or_else(|fault| panic!("{program}: {fault}"))
}

fn assert_ok(output: &Output) {
    let printed = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
}
