//! The committed header is the one that cbindgen writes. `UPDATE_HEADER=1` writes it.

use std::fs;
use std::path::Path;

#[test]
fn kinds_in_the_header_are_kinds() {
    let header = include_str!("../include/tokenmeter.h");
    let line =
        header.lines().find(|line| line.contains("The kind of the server:")).expect("it is documented");
    let names: Vec<_> = line.split('`').skip(1).step_by(2).collect();
    assert!(names.len() > 3);
    assert!(names.iter().all(|name| meter::ServerKind::from_name(name).is_some()), "{names:?}");
}

#[test]
fn header_is_generated_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("include/tokenmeter.h");
    let mut config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    config.header = Some(include_str!("../include/preamble.txt").trim_end().to_owned());
    config.trailer = None;
    let bindings = cbindgen::generate_with_config(folder, config).expect("the crate has a C interface");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header).expect("a header is text");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        fs::write(&path, &header).expect("the header can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == header,
        "include/tokenmeter.h is out of date: UPDATE_HEADER=1 cargo test -p tokenmeter-ffi header"
    );
}
