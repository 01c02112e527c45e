//! The Python package: its types, its tests, the operator's path through it, and its wheel.

use super::{assert_ok, package, python, ran};
use crate::deploy::served::{CLUSTER, GPU_MODEL, prepare};
use std::process::{Command, Stdio};
use tests::{Listening, workspace_root};

#[test]
fn the_package_has_the_types_of_the_openapi_document() {
    let Some(python) = python() else { return };
    let prepared = prepare();
    let service = prepared.serve();
    let document = format!("http://{}/openapi.json", service.address);
    assert_ok(&ran(&python, &["generate.py", &document, "--check"]));
}

#[test]
fn the_package_passes_its_own_tests() {
    let Some(python) = python() else { return };
    assert_ok(&ran(&python, &["-m", "unittest", "discover", "--start-directory", "tests"]));
}

#[test]
fn the_package_is_typed_strictly_for_both_checkers() {
    let Some(python) = python() else { return };
    let cache = tempfile::tempdir().unwrap();
    assert_ok(&ran(&python, &["-m", "mypy", "--cache-dir", cache.path().to_str().unwrap()]));
    assert_ok(&ran(&python, &["-m", "pyright", "--pythonpath", &python]));
}

#[test]
fn an_operator_does_everything_through_the_package() {
    let Some(python) = python() else { return };
    let prepared = prepare();
    let tokens = [prepared.token("read"), prepared.token("admin")];
    let prices = prepared.folder.path().join("prices.toml");
    std::fs::write(&prices, "currency = \"EUR\"\n[default]\nhp = 2.5\nat_will = 0.5\nguaranteed = 1\n").unwrap();
    let variables = [("HEADROOM_PRICES_FILE", prices.to_str().unwrap()), ("HEADROOM_REPORT_REFRESH_S", "1")];
    let arguments = ["--listen", "127.0.0.1:0", "--json", "--database", &prepared.database];
    let service = Listening::of("quota-service", &arguments, &variables);
    let api = format!("http://{}", service.address);
    let script = workspace_root().join("tests/python/walk.py");
    let arguments = [script.to_str().unwrap(), &api, &tokens[0], &tokens[1], CLUSTER, GPU_MODEL];
    assert_ok(&ran(&python, &arguments));
}

#[test]
fn a_wheel_installs_into_a_clean_environment_and_brings_its_types() {
    let Some(python) = python() else { return };
    let prepared = prepare();
    let service = prepared.serve();
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (source, wheels, clean) = (package(), of("wheels"), of("clean"));
    let build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", &wheels];
    assert_ok(&ran(&python, &[&build[..], &[source.to_str().unwrap()]].concat()));
    assert_ok(&ran(&python, &["-m", "venv", &clean]));
    let clean = format!("{clean}/bin/python");
    let wheel = std::fs::read_dir(&wheels).unwrap().next().expect("a wheel").unwrap().path();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel.to_str().unwrap()];
    let outside = |arguments: &[&str]| {
        let mut command = Command::new(&clean);
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap()
    };
    assert_ok(&outside(&install));
    let script = format!(
        "import headroom, pathlib\n\
         client = headroom.Headroom('http://{}')\n\
         quota = client.quota('{CLUSTER}', '{GPU_MODEL}', hours=4)\n\
         assert quota.stage == 'fresh' and headroom.is_valid(quota), quota\n\
         assert (pathlib.Path(headroom.__file__).parent / 'py.typed').exists()\n",
        service.address
    );
    assert_ok(&outside(&["-c", &script]));
}
