//! The NVIDIA driver's own library, asked in this process. The only place that knows NVML.
//!
//! ```text
//!   sample() ─ask─▶ thread: open ─▶ session ─▶ session … ─▶ broken ─▶ wait ─▶ open
//!            ◀─────── answer, or none in time
//! ```
//!
//! Law: a call into the driver may hang, and a driver may go and come. Then there is no sample, and
//! nothing else: calls are made on a thread of their own, which nobody waits for longer than agreed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use nvml_wrapper::error::NvmlError;

use crate::limits::{BACKOFF_SAMPLES, OPENING};
use crate::sample::Sample;
use crate::source::{Source, SourceName};

mod fields;
mod session;

use session::Session;

/// NVML as a source.
#[derive(Debug)]
pub struct Nvml {
    ask: SyncSender<()>,
    answers: Receiver<Sample>,
    patience: Duration,
    /// An answer that did not come in time is still to come.
    owed: bool,
    /// It was never asked: opening the driver may take seconds.
    fresh: bool,
}

impl Nvml {
    /// Begins; the library is loaded with the first sample. `library` is its path, if not the
    /// driver's own.
    pub fn start(library: Option<PathBuf>, patience: Duration) -> std::io::Result<Self> {
        let (ask, asked) = sync_channel(1);
        let (answer, answers) = channel();
        std::thread::Builder::new().name("nvml".to_owned()).spawn(move || run(library, &asked, &answer))?;
        Ok(Self { ask, answers, patience, owed: false, fresh: true })
    }
}

impl Source for Nvml {
    fn sample(&mut self) -> Sample {
        if self.owed {
            // It is of a time that has passed.
            match self.answers.try_recv() {
                Ok(_) => self.owed = false,
                Err(_) => return Sample::Nothing("NVML still has not answered".to_owned()),
            }
        }
        if self.ask.send(()).is_err() {
            return Sample::Nothing("the thread that asks NVML has ended".to_owned());
        }
        let patience = match std::mem::take(&mut self.fresh) {
            true => self.patience.max(OPENING),
            false => self.patience,
        };
        match self.answers.recv_timeout(patience) {
            Ok(sample) => sample,
            Err(RecvTimeoutError::Timeout) => {
                self.owed = true;
                Sample::Nothing(format!("NVML has not answered within {} ms", patience.as_millis()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Sample::Nothing("the thread that asks NVML has ended".to_owned())
            }
        }
    }

    fn name(&self) -> SourceName {
        SourceName::Nvml
    }
}

/// Until nobody asks any more.
fn run(library: Option<PathBuf>, asked: &Receiver<()>, answers: &Sender<Sample>) {
    let mut backoff = Backoff::default();
    let (mut why, mut again) = (String::new(), true);
    while asked.recv().is_ok() {
        if again {
            match open(library.as_deref().map(Path::as_os_str)) {
                Ok(nvml) => {
                    let end = answer_while_it_lasts(&nvml, asked, answers, &mut backoff);
                    let Some((reason, now)) = end else { return };
                    (why, again) = (reason, now);
                    continue;
                }
                Err(error) => why = format!("NVML cannot be used: {error}"),
            }
        }
        again = backoff.is_due();
        if answers.send(Sample::Nothing(why.clone())).is_err() {
            return;
        }
    }
}

fn open(library: Option<&OsStr>) -> Result<nvml_wrapper::Nvml, NvmlError> {
    let mut builder = nvml_wrapper::Nvml::builder();
    if let Some(library) = library {
        builder.lib_path(library);
    }
    builder.init()
}

/// Answers the question that is open and those that follow, until the driver has to be opened
/// anew: why, and whether with the next question already. Nothing if nobody asks any more.
fn answer_while_it_lasts(
    nvml: &nvml_wrapper::Nvml,
    asked: &Receiver<()>,
    answers: &Sender<Sample>,
    backoff: &mut Backoff,
) -> Option<(String, bool)> {
    let mut session = Session::new(nvml);
    loop {
        let (answer, end) = match session.sample() {
            // A device that fell off the bus comes back only to who opens the driver anew.
            Ok(devices) if session.has_lost() => {
                (Sample::Devices(devices), backoff.is_due().then(|| (String::new(), true)))
            }
            Ok(devices) => {
                *backoff = Backoff::default();
                (Sample::Devices(devices), None)
            }
            Err(error) => {
                let why = format!("NVML no longer answers: {error}");
                (Sample::Nothing(why.clone()), Some((why, backoff.is_due())))
            }
        };
        answers.send(answer).ok()?;
        if end.is_some() {
            return end;
        }
        asked.recv().ok()?;
    }
}

/// Which failures are worth another attempt: the 1st, the 3rd, the 7th and so on.
#[derive(Debug, Default)]
struct Backoff {
    step: u32,
    left: u32,
}

impl Backoff {
    /// It failed once more. Whether the next time is one to try.
    fn is_due(&mut self) -> bool {
        if self.left == 0 {
            self.step = (self.step * 2).clamp(1, BACKOFF_SAMPLES);
            self.left = self.step;
        }
        self.left -= 1;
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn attempts_become_rare() {
        let mut backoff = Backoff::default();
        let due: Vec<u32> = (1..=250).filter(|_| backoff.is_due()).collect();
        assert_eq!(due, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
    }
}
