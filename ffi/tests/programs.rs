//! Programs in C and C++ that use the library well and badly, plain, under sanitizers and under valgrind.

use std::process::Command;

use crate::toolchain::Language::{self, C11, C99, Cpp17};
use crate::toolchain::{STRICT, compile, folder, run};

/// Finds misused memory, undefined behaviour and leaks.
pub(crate) const SANITIZE: [&str; 3] =
    ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

fn run_program(name: &str, language: Language, flags: &[&str], args: &[&str]) {
    let program = compile(name, language, flags);
    let printed = run(Command::new(&program).args(args).env("UBSAN_OPTIONS", "print_stacktrace=1"));
    assert!(printed.contains("ok"), "{name} printed {printed:?}");
}

/// Random calls: more in a long run.
fn random_calls() -> &'static str {
    if chance::is_long() { "1000000" } else { "20000" }
}

fn header_alone(compiler: &str, standard: &str, language: &str) {
    let header = folder().join("include/tokenmeter.h");
    let mut command = Command::new(compiler);
    run(command.args([standard, "-fsyntax-only", "-x", language]).args(STRICT).arg(header));
}

#[test]
fn header_compiles_alone_as_c99() {
    header_alone("cc", "-std=c99", "c");
}

#[test]
#[ignore = "needs g++"]
fn header_compiles_alone_as_cpp17() {
    header_alone("c++", "-std=c++17", "c++");
}

#[test]
fn every_misuse_is_a_status() {
    run_program("misuse", C99, &[], &[]);
    run_program("misuse", C11, &SANITIZE, &[]);
}

#[test]
fn threads_count_each_exchange_once() {
    run_program("threads", C11, &[], &[]);
    run_program("threads", C11, &SANITIZE, &["40"]);
}

#[test]
fn ending_threads_may_fail() {
    run_program("exits", C11, &[], &[]);
}

#[test]
fn engine_tokens_are_in_a_record_or_nowhere() {
    run_program("counts", C11, &SANITIZE, &[]);
}

#[test]
fn edits_are_counted_once_and_end() {
    run_program("edits", C11, &SANITIZE, &[]);
}

#[cfg(not(feature = "exporters"))]
#[test]
fn library_without_exporters_starts_none() {
    run_program("exporters", C11, &["-D_GNU_SOURCE"], &["absent"]);
}

#[test]
fn tokens_name_tenants_once_keys_are_known() {
    run_program("tokens", C11, &SANITIZE, &[]);
}

#[test]
fn no_spelling_of_a_head_hides_an_exchange() {
    run_program("heads", C11, &SANITIZE, &[]);
}

#[test]
fn forked_processes_have_their_own_ids() {
    run_program("fork", C11, &[], &[]);
}

#[test]
fn random_calls_do_not_crash() {
    for seed in ["1", "2", "3"] {
        run_program("random", C11, &SANITIZE, &[seed, random_calls()]);
    }
}

#[test]
#[ignore = "needs g++"]
fn wrapper_frees_and_throws() {
    run_program("wrapper", Cpp17, &[], &[]);
    run_program("wrapper", Cpp17, &SANITIZE, &[]);
}

/// A sanitizer that finds nothing may not be there: it has to find this.
#[test]
fn sanitizer_finds_a_use_after_free() {
    let program = compile("broken", C11, &SANITIZE);
    let output = Command::new(program).output().expect("it was compiled");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("heap-use-after-free"), "{error}");
}

#[test]
#[ignore = "needs valgrind and g++"]
fn valgrind_finds_no_error_and_no_leak() {
    for (name, language, args) in [
        ("misuse", C11, &[][..]),
        ("threads", C11, &["3"]),
        ("random", C11, &["9", "2000"]),
        ("exits", C11, &[]),
        ("counts", C11, &[]),
        ("edits", C11, &[]),
        ("heads", C11, &[]),
        ("tokens", C11, &[]),
        ("wrapper", Cpp17, &[]),
    ] {
        let program = compile(name, language, &[]);
        let mut command = Command::new("valgrind");
        command.args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        run(command.arg(program).args(args));
    }
}
