//! The NVIDIA driver's library as a source, in this process. The only module that knows NVML.
//!
//! ```text
//!   sample() ─call─▶ thread: open ─▶ session ─▶ session … ─▶ broken ─▶ wait ─▶ open
//!            ◀─────── answer, or a timeout
//! ```
//!
//! Law: a call into the driver may hang, and a driver may be unloaded and reloaded. Either costs a sample and
//! nothing else: calls run on a thread of their own, and every wait for it has a timeout.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use nvml_wrapper::error::NvmlError;

use crate::limits::{BACKOFF_MAX_SAMPLES, DRIVER_OPEN_TIMEOUT};
use crate::sample::Sample;
use crate::source::{Source, SourceName};

mod fields;
mod session;

use session::Session;

/// NVML as a source.
#[derive(Debug)]
pub struct Nvml {
    calls: SyncSender<()>,
    answers: Receiver<Sample>,
    timeout: Duration,
    /// A call timed out, and its answer is still to come.
    late_answer: bool,
    /// No call was made yet: opening the driver may take seconds.
    first_call: bool,
}

impl Nvml {
    /// Starts the thread; the first sample loads the library. `library` is its path, if not the
    /// driver's default.
    pub fn start(library: Option<PathBuf>, timeout: Duration) -> std::io::Result<Self> {
        let (calls, received) = sync_channel(1);
        let (answer, answers) = channel();
        std::thread::Builder::new()
            .name("nvml".to_owned())
            .spawn(move || run(library, &received, &answer))?;
        Ok(Self { calls, answers, timeout, late_answer: false, first_call: true })
    }
}

impl Source for Nvml {
    fn sample(&mut self) -> Sample {
        if self.late_answer {
            // The late answer is of a past moment: discard it.
            match self.answers.try_recv() {
                Ok(_) => self.late_answer = false,
                Err(_) => return Sample::Failed("NVML has not answered the previous call".to_owned()),
            }
        }
        if self.calls.send(()).is_err() {
            return Sample::Failed("the NVML thread has ended".to_owned());
        }
        let timeout = match std::mem::take(&mut self.first_call) {
            true => self.timeout.max(DRIVER_OPEN_TIMEOUT),
            false => self.timeout,
        };
        match self.answers.recv_timeout(timeout) {
            Ok(sample) => sample,
            Err(RecvTimeoutError::Timeout) => {
                self.late_answer = true;
                Sample::Failed(format!("NVML did not answer within {} ms", timeout.as_millis()))
            }
            Err(RecvTimeoutError::Disconnected) => Sample::Failed("the NVML thread has ended".to_owned()),
        }
    }

    fn name(&self) -> SourceName {
        SourceName::Nvml
    }
}

/// Answers calls until the source is dropped.
fn run(library: Option<PathBuf>, received: &Receiver<()>, answers: &Sender<Sample>) {
    let mut backoff = Backoff::default();
    let (mut reason, mut again) = (String::new(), true);
    while received.recv().is_ok() {
        if again {
            match open(library.as_deref().map(Path::as_os_str)) {
                Ok(nvml) => {
                    let end = serve_calls(&nvml, received, answers, &mut backoff);
                    let Some((cause, now)) = end else { return };
                    (reason, again) = (cause, now);
                    continue;
                }
                Err(error) => reason = open_error(&error),
            }
        }
        again = backoff.is_due();
        if answers.send(Sample::Failed(reason.clone())).is_err() {
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

/// Returns the text of an error of `open`, with a remedy where the library is missing.
fn open_error(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(cause) => format!(
            "NVML could not be opened: {cause}; install the NVIDIA driver, or make it visible to the container"
        ),
        error => format!("NVML could not be opened: {error}"),
    }
}

/// Answers the current call and later ones until the driver has to be reopened. Returns the reason, and true if the
/// next call should reopen it; `None` if the source was dropped.
fn serve_calls(
    nvml: &nvml_wrapper::Nvml,
    received: &Receiver<()>,
    answers: &Sender<Sample>,
    backoff: &mut Backoff,
) -> Option<(String, bool)> {
    let mut session = Session::new(nvml);
    loop {
        let (answer, end) = match session.sample() {
            // A device that fell off the bus comes back only after the driver is reopened.
            Ok(devices) if session.lost_device() => {
                (Sample::Devices(devices), backoff.is_due().then(|| (String::new(), true)))
            }
            Ok(devices) => {
                *backoff = Backoff::default();
                (Sample::Devices(devices), None)
            }
            Err(error) => {
                let reason = format!("NVML failed: {error}");
                (Sample::Failed(reason.clone()), Some((reason, backoff.is_due())))
            }
        };
        answers.send(answer).ok()?;
        if end.is_some() {
            return end;
        }
        received.recv().ok()?;
    }
}

/// Exponential backoff, in calls: retries after failure 1, 3, 7 and so on.
#[derive(Debug, Default)]
struct Backoff {
    step: u32,
    left: u32,
}

impl Backoff {
    /// Counts a failure; returns true if the next call should retry.
    fn is_due(&mut self) -> bool {
        if self.left == 0 {
            self.step = (self.step * 2).clamp(1, BACKOFF_MAX_SAMPLES);
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
    fn retries_back_off_exponentially() {
        let mut backoff = Backoff::default();
        let due: Vec<u32> = (1..=250).filter(|_| backoff.is_due()).collect();
        assert_eq!(due, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
    }
}
