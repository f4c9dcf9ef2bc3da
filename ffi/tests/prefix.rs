//! The library that `ffi/install` installs, of the files that this test run built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::toolchain::{folder, library, run, temporary};

/// The library below a prefix of its own, installed once for all tests.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = temporary("prefix");
        run(install().arg(&prefix));
        prefix
    })
}

/// `ffi/install` without its argument.
pub(crate) fn install() -> Command {
    let mut command = Command::new(folder().join("install"));
    let built = library("libtokenmeter_ffi.so");
    command.env("BUILT", built.parent().expect("a file has a folder")).env_remove("DESTDIR");
    command
}

/// Makes the prefix the one in which a command finds headers and libraries.
pub(crate) fn with_prefix<'a>(command: &'a mut Command, prefix: &Path) -> &'a mut Command {
    let lib = prefix.join("lib");
    command.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).env("LD_LIBRARY_PATH", lib)
}
