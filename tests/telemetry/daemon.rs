//! A store as a process: in a folder of its own, on a port that it chose itself; ended and removed when dropped.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::programs::program;

/// The process and its address.
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
    /// Its address.
    pub(crate) address: SocketAddr,
}

impl Daemon {
    /// Starts `name` in its own folder, which `prepare` may fill, and waits until its log contains `listens`, in a line
    /// with the address, and `ready`.
    pub(crate) fn start(
        name: &str,
        arguments: &[&str],
        [listens, ready]: [&str; 2],
        prepare: impl FnOnce(&Path),
    ) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tokenmeter-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        prepare(&folder);
        let log = File::create(folder.join("log")).expect("it can be written");
        let mut child = Command::new(program(name))
            .args(arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("it runs");
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let log = std::fs::read_to_string(folder.join("log")).expect("it logs text");
            if let Some(address) = address_after(&log, listens).filter(|_| log.contains(ready)) {
                return Self { child, folder, address };
            }
            let ended = child.try_wait().expect("a child can be asked");
            if ended.is_some() || Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                let _ = std::fs::remove_dir_all(&folder);
                panic!("{name} does not get ready:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Its data are not needed, so it is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The address in a complete line of `log` that contains `said`.
fn address_after(log: &str, said: &str) -> Option<SocketAddr> {
    let whole = &log[..=log.rfind('\n')?];
    let line = whole.lines().find(|line| line.contains(said))?;
    let digits = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
    let start = line.rfind("127.0.0.1:")?;
    let rest = &line[start..];
    rest[..rest.find(|c| !digits(c)).unwrap_or(rest.len())].parse().ok()
}
