//! Gives the shared library its soname, with which every build of it can be installed.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    // Until 1.0 each minor version may change the ABI.
    let version = if major == "0" { format!("0.{minor}") } else { major.to_owned() };
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtokenmeter.so.{version}");
    }
}
