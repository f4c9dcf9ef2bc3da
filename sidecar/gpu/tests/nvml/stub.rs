//! Builds the stub of the driver's library and writes the scene that it answers from. Each stub is
//! a library of its own, so tests do not interfere.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A stub library and its scene.
pub(crate) struct Stub {
    folder: PathBuf,
    scene: BTreeMap<String, String>,
}

impl Stub {
    /// Builds one with every function.
    pub(crate) fn new() -> Self {
        Self::build(&[])
    }

    /// Builds one with only the functions that a sample requires.
    pub(crate) fn minimal() -> Self {
        Self::build(&["-DMINIMAL"])
    }

    fn build(flags: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("nvml-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let stub = Self { folder, scene: BTreeMap::new() };
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror"])
            .args(flags)
            .arg(format!("-DSCENE=\"{}\"", stub.folder.join("scene").display()))
            .arg("-o")
            .arg(stub.library())
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nvml/stub.c"))
            .status()
            .expect("a C compiler, `cc`, is needed to build the NVML stub");
        assert!(built.success());
        stub
    }

    /// Returns its path.
    pub(crate) fn library(&self) -> PathBuf {
        self.folder.join("libnvidia-ml.so.1")
    }

    /// Sets a value, from the next call on.
    pub(crate) fn set(&mut self, key: impl Display, value: impl Display) {
        self.scene.insert(key.to_string(), value.to_string());
        self.write();
    }

    /// Removes a value.
    pub(crate) fn unset(&mut self, key: &str) {
        self.scene.remove(key);
        self.write();
    }

    fn write(&self) {
        let text: String = self.scene.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
        let new = self.folder.join("scene.new");
        fs::write(&new, text).expect("it is written");
        fs::rename(new, self.folder.join("scene")).expect("a call sees the old scene or the new one");
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // A remainder in a temporary folder is harmless.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
