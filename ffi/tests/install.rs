//! The installed library: its files, its links, and programs that find it by pkg-config and by CMake.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::Transcript;
use serde_json::Value;

use crate::prefix::{install, prefix, with_prefix};
use crate::symbols::exported;
use crate::toolchain::{folder, run, run_with, temporary};

/// The paths of all files and links below a folder, links with their target.
pub(crate) fn tree(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.strip_prefix(root).expect("it is below the root").display().to_string();
            match fs::read_link(&path) {
                Ok(target) => drop(found.insert(format!("{name} -> {}", target.display()))),
                Err(_) if path.is_dir() => open.push(path),
                Err(_) => drop(found.insert(name)),
            }
        }
    }
    found
}

/// The soname that the ABI of this version has.
fn soname() -> String {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let version = if major == "0" { format!("0.{minor}") } else { major.to_owned() };
    format!("libtokenmeter.so.{version}")
}

pub(crate) fn soname_of(library: &Path) -> String {
    let printed = run(Command::new("readelf").arg("--dynamic").arg(library));
    let line = printed.lines().find(|line| line.contains("(SONAME)")).expect("it has a soname");
    let (_, name) = line.split_once('[').expect("readelf puts names in brackets");
    name.trim_end_matches(']').to_owned()
}

fn example(name: &str) -> PathBuf {
    folder().with_file_name("examples").join("embed").join(name)
}

/// The command in the comment at the top of an example that begins with `compiler`.
pub(crate) fn command_of(name: &str, compiler: &str) -> String {
    let source = fs::read_to_string(example(name)).expect("there is such an example");
    let comment = source.lines().map_while(|line| line.strip_prefix("//"));
    let commands: Vec<_> = comment.map(str::trim).filter(|line| line.starts_with(compiler)).collect();
    let [command] = commands[..] else { panic!("{name} has {commands:?}") };
    command.to_owned()
}

/// Runs a shell command in a folder that holds a copy of the example.
pub(crate) fn build_example(name: &str, folder: &Path, command: &str) {
    for file in [name, "metering.hpp"] {
        fs::copy(example(file), folder.join(file)).expect("the example can be copied");
    }
    let mut shell = Command::new("sh");
    run(with_prefix(shell.args(["-c", command]).current_dir(folder), prefix()));
}

/// A recorded stream, and the tokens that its `record.txt` has.
pub(crate) struct Stream {
    pub transcript: Transcript,
    pub input: String,
    pub output: String,
}

pub(crate) fn stream(name: &str) -> Stream {
    let transcript = Transcript::named(name);
    let record = fs::read_to_string(transcript.folder.join("record.txt")).expect("it has a record");
    let value = |key: &str| {
        let line = record.lines().find_map(|line| line.strip_prefix(key)).expect("the record has tokens");
        line.trim_end_matches(" reported").to_owned()
    };
    Stream { input: value("input: "), output: value("output: "), transcript }
}

/// The record that the example prints of a recorded stream has the tokens of the stream's record.
fn counts_a_recorded_stream(program: &Path) {
    let stream = stream("vllm-0.32.0/chat-stream-long");
    let request = String::from_utf8(stream.transcript.request.clone()).expect("a request is text");
    let mut command = Command::new(program);
    with_prefix(command.arg(request), prefix());
    let printed = run_with(&mut command, stream.transcript.body.clone());
    let record: Value = serde_json::from_str(&printed).expect("a record is JSON");
    assert_eq!(record["input_tokens"].to_string(), stream.input, "{printed}");
    assert_eq!(record["output_tokens"].to_string(), stream.output, "{printed}");
    assert_eq!(record["output_provenance"], "reported", "{printed}");
}

fn needed_libraries(program: &Path) -> String {
    run(Command::new("readelf").arg("--dynamic").arg(program))
}

#[test]
fn files_have_the_documented_names() {
    let version = env!("CARGO_PKG_VERSION");
    let shared = format!("lib/libtokenmeter.so.{version}");
    let soname = soname();
    let expected = [
        shared.clone(),
        format!("lib/{soname} -> libtokenmeter.so.{version}"),
        format!("lib/libtokenmeter.so -> libtokenmeter.so.{version}"),
        "lib/libtokenmeter.a".to_owned(),
        "lib/pkgconfig/tokenmeter.pc".to_owned(),
        "lib/cmake/tokenmeter/tokenmeterConfig.cmake".to_owned(),
        "lib/cmake/tokenmeter/tokenmeterConfigVersion.cmake".to_owned(),
        "include/tokenmeter.h".to_owned(),
        "include/tokenmeter.hpp".to_owned(),
    ];
    assert_eq!(tree(prefix()), BTreeSet::from(expected));
    assert_eq!(soname_of(&prefix().join(shared)), soname);
}

#[test]
fn destdir_is_before_the_prefix_and_not_in_the_files() {
    let destination = temporary("destination");
    run(install().arg("/opt/meter").env("DESTDIR", &destination));
    assert_eq!(tree(&destination.join("opt/meter")), tree(prefix()));
    let pc =
        fs::read_to_string(destination.join("opt/meter/lib/pkgconfig/tokenmeter.pc")).expect("it is there");
    assert!(pc.starts_with("prefix=/opt/meter\n"), "{pc}");
}

#[test]
#[ignore = "needs pkg-config"]
fn record_example_counts_a_recorded_stream() {
    let folder = temporary("record");
    let command = command_of("record.c", "cc ");
    build_example("record.c", &folder, &command);
    let program = folder.join("record");
    assert!(needed_libraries(&program).contains(&soname()), "it is linked with the shared library");
    counts_a_recorded_stream(&program);

    let (shared, archive) =
        ("--cflags --libs tokenmeter)", "$(pkg-config --variable=libdir tokenmeter)/libtokenmeter.a");
    let with_archive = command.replace(shared, &format!("--cflags tokenmeter) {archive} -lpthread -ldl -lm"));
    let all_static = command.replace("cc ", "cc -static ").replace("pkg-config ", "pkg-config --static ");
    for command in [with_archive, all_static] {
        build_example("record.c", &folder, &command);
        assert!(!needed_libraries(&program).contains("tokenmeter"), "{command} links the static library");
        counts_a_recorded_stream(&program);
    }
}

#[test]
#[ignore = "needs cargo-c and pkg-config"]
fn cargo_c_installs_the_same_files() {
    let other = temporary("cargo-c");
    // A folder of its own: in the tests' folder, the next `cargo test` would build all again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("cargo-c");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder()).args(["cinstall", "--locked", "--debug", "--libdir", "lib", "--prefix"]);
    run(cargo.arg(&other).arg("--target-dir").arg(target));
    let mut expected = tree(prefix());
    expected.retain(|path| !path.contains("/cmake/"));
    assert_eq!(tree(&other), expected);
    let shared = format!("lib/libtokenmeter.so.{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(soname_of(&other.join(&shared)), soname());
    assert_eq!(exported(&other.join(&shared)), exported(&prefix().join(&shared)));
    for header in ["include/tokenmeter.h", "include/tokenmeter.hpp"] {
        let read = |prefix: &Path| fs::read(prefix.join(header)).expect("it was installed");
        assert!(read(&other) == read(prefix()), "{header} differs");
    }
    let flags = |prefix: &Path| {
        let mut command = Command::new("pkg-config");
        let flags = run(with_prefix(command.args(["--cflags", "--libs", "tokenmeter"]), prefix));
        flags.replace(&prefix.display().to_string(), "PREFIX")
    };
    assert_eq!(flags(&other), flags(prefix()));
    let mut version = Command::new("pkg-config");
    let version = run(with_prefix(version.args(["--modversion", "tokenmeter"]), &other));
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
}

fn configure(build: &Path, wanted: &str) -> Command {
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(folder().join("tests/cmake")).arg("-B").arg(build);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())).arg(format!("-DWANTED={wanted}"));
    cmake
}

#[test]
#[ignore = "needs cmake"]
fn cmake_project_links_either_library() {
    let build = temporary("cmake");
    run(&mut configure(&build, ""));
    run(Command::new("cmake").arg("--build").arg(&build));
    assert!(needed_libraries(&build.join("record_tokenmeter")).contains(&soname()));
    counts_a_recorded_stream(&build.join("record_tokenmeter"));
    assert!(!needed_libraries(&build.join("record_static")).contains("tokenmeter"));
    counts_a_recorded_stream(&build.join("record_static"));
}

#[test]
#[ignore = "needs cmake"]
fn cmake_refuses_versions_with_another_soname() {
    let (version, series) = (env!("CARGO_PKG_VERSION"), soname().replace("libtokenmeter.so.", ""));
    for (wanted, is_compatible) in [(version, true), (&series, true), ("0.0.9", false), ("99.0", false)] {
        let build = temporary(&format!("cmake-{wanted}"));
        let mut cmake = configure(&build, wanted);
        let output = cmake.output().expect("cmake is installed");
        assert_eq!(output.status.success(), is_compatible, "{wanted}: {output:?}");
    }
}
