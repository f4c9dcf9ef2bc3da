//! The tests of the Python packages, with the library that this test run built.

use std::process::Command;

use crate::toolchain::{folder, library, run};

fn run_unit_tests(package: &str) {
    let packages = folder().join("python");
    let own = packages.join(package);
    let path = std::env::join_paths([own.join("src"), packages.join("tokenmeter/src"), own.join("tests")])
        .expect("no folder has a colon");
    let mut command = Command::new("python3");
    command.args(["-m", "unittest", "discover", "--start-directory"]).arg(own.join("tests"));
    command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    run(command.env("TOKENMETER_LIBRARY", library("libtokenmeter_ffi.so")));
}

#[test]
#[ignore = "needs python3"]
fn package_fits_header_and_library() {
    run_unit_tests("tokenmeter");
}

#[test]
#[ignore = "needs python3"]
fn vllm_plugin_counts_what_a_stand_in_generates() {
    run_unit_tests("tokenmeter-vllm");
}

#[test]
#[ignore = "needs python3"]
fn sglang_plugin_counts_what_a_stand_in_generates() {
    run_unit_tests("tokenmeter-sglang");
}
