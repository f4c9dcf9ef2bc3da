//! Compiles C and C++ programs against the header and the library that this test run built.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The compilers' warnings are errors.
pub(crate) const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"];

/// The language of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C99,
    C11,
    Cpp17,
}

impl Language {
    fn compiler(self) -> &'static str {
        match self {
            Self::C99 | Self::C11 => "cc",
            Self::Cpp17 => "c++",
        }
    }

    fn standard(self) -> &'static str {
        match self {
            Self::C99 => "-std=c99",
            Self::C11 => "-std=c11",
            Self::Cpp17 => "-std=c++17",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::C99 | Self::C11 => "c",
            Self::Cpp17 => "cpp",
        }
    }
}

/// The folder of this crate.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A library that this test run built: cargo leaves both beside the test.
pub(crate) fn library(name: &str) -> PathBuf {
    let deps = std::env::current_exe().expect("a test has a path");
    let path = deps.parent().expect("it is in a folder").join(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Compiles `tests/c/NAME` with these further flags and links it with the static library.
pub(crate) fn compile(name: &str, language: Language, flags: &[&str]) -> PathBuf {
    let source = folder().join("tests/c").join(name).with_extension(language.extension());
    let tag: String =
        flags.iter().flat_map(|flag| flag.chars()).filter(char::is_ascii_alphanumeric).collect();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}{tag}", language.standard()));
    let mut command = Command::new(language.compiler());
    command.arg(language.standard()).args(STRICT).args(flags).arg("-I").arg(folder().join("include"));
    command.arg(&source).arg(library("libtokenmeter_ffi.a"));
    command.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    run(&mut command);
    program
}

/// An empty folder of this name.
pub(crate) fn temporary(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).expect("it is ours");
    }
    fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// Runs a command with no input and returns what it printed; it must succeed.
pub(crate) fn run(command: &mut Command) -> String {
    command.stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}: apt-get install gcc g++ valgrind binutils installs it")
    });
    succeeded(command, output)
}

/// Runs a command with this input and returns what it printed; it must succeed.
pub(crate) fn run_with(command: &mut Command, input: Vec<u8>) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let printed = succeeded(command, child.wait_with_output().expect("it was started"));
    writer.join().expect("no panic").expect("all input was read");
    printed
}

/// Checks that a command succeeded, and returns what it printed.
pub(crate) fn succeeded(command: &Command, output: Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{error}", output.status);
    out.into_owned()
}
