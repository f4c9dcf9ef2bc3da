//! A pseudo-terminal with a program on it: its screen, its keys and its modes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{ffi, thread};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::child::{PATIENCE, tokenmeter};

/// A program on a pseudo-terminal, killed on drop.
pub(crate) struct Screen {
    child: Child,
    /// The side of the tester.
    keys: File,
    /// The side of the program.
    terminal: File,
    /// The modes before the program.
    modes: Termios,
    seen: Arc<Mutex<Seen>>,
}

/// The output so far.
struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Screen {
    /// Starts `tokenmeter` on a terminal of a size.
    pub(crate) fn start(arguments: &[&str], variables: &[(&str, &str)], rows: u16, columns: u16) -> Self {
        Self::open(&tokenmeter(arguments), variables, rows, columns)
    }

    /// Starts a program on a terminal of a size. setsid(1) of util-linux makes it the session's terminal.
    pub(crate) fn open(program: &Command, variables: &[(&str, &str)], rows: u16, columns: u16) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let path = ffi::OsString::from_vec(ptsname(&keys, Vec::new()).unwrap().into_bytes());
        let no_controlling = OFlags::NOCTTY.bits().cast_signed();
        let terminal =
            OpenOptions::new().read(true).write(true).custom_flags(no_controlling).open(path).unwrap();
        tcsetwinsize(&terminal, size(rows, columns)).unwrap();
        let modes = tcgetattr(&terminal).unwrap();
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(variables.iter().copied());
        let side = || OwnedFd::from(terminal.try_clone().unwrap());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let screen = vt100::Parser::new(rows, columns, 0);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new() }));
        let (keys, shared) = (File::from(keys), Arc::clone(&seen));
        let mut output = keys.try_clone().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut seen = shared.lock().unwrap();
                seen.screen.process(&buffer[..count]);
                seen.bytes.extend(&buffer[..count]);
            }
        });
        Self { child, keys, terminal, modes, seen }
    }

    /// Types keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.seen.lock().unwrap().screen.screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.terminal, size(rows, columns)).unwrap();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill -s {name}");
    }

    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Returns all bytes of the output so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.lock().unwrap().bytes.clone()
    }

    /// Waits until the screen satisfies `wanted`; returns its text.
    pub(crate) fn until(&self, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(Instant::now() < end, "the screen is still:\n{text}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the screen has a text.
    pub(crate) fn shows(&self, part: &str) -> String {
        self.until(|text| text.contains(part))
    }

    /// Waits for the end of the program; returns its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it did not end:\n{}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Presses `q` until the program ends. crossterm reads a key that arrives with the signal of a new size only with
    /// the next key.
    pub(crate) fn quit(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() && Instant::now() < end {
            // It may end meanwhile, and the terminal with it.
            let _ = self.keys.write_all(b"q");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Asserts that the terminal is as it was before the program.
    pub(crate) fn assert_restored(&self) {
        self.assert_left();
        let modes = tcgetattr(&self.terminal).unwrap();
        let of =
            |modes: &Termios| (modes.input_modes, modes.output_modes, modes.local_modes, modes.control_modes);
        assert_eq!(of(&modes), of(&self.modes));
    }

    /// Asserts that the alternate screen is left and the cursor visible.
    pub(crate) fn assert_left(&self) {
        let is_plain = || {
            let seen = self.seen.lock().unwrap();
            !seen.screen.screen().alternate_screen() && !seen.screen.screen().hide_cursor()
        };
        let end = Instant::now() + PATIENCE;
        // The last bytes may not be read yet.
        while !is_plain() {
            assert!(Instant::now() < end, "the screen is not restored:\n{}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
