//! Where samples come from: one trait, and the choice between those who have it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::exporter::{Exporter, ExporterPlan};
use crate::nvml::Nvml;
use crate::sample::Sample;

/// Who can be asked what the devices do.
pub trait Source: Send {
    /// Asks. Energy counters are read first: they are wanted as they are when this is called. What
    /// fails is said in the sample. Takes as long as it must; never waits for the data plane.
    fn sample(&mut self) -> Sample;

    /// Which it is.
    fn name(&self) -> SourceName;

    /// Samples it refused, because they were of another machine.
    fn refused(&self) -> u64 {
        0
    }

    /// Asks, and says who answered.
    fn answer(&mut self) -> Answer {
        let sample = self.sample();
        Answer { source: self.name(), refused: self.refused(), sample }
    }
}

/// What came of asking, and of whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Who was asked.
    pub source: SourceName,
    /// Samples it refused since the beginning.
    pub refused: u64,
    /// What it said.
    pub sample: Sample,
}

/// A source's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// NVIDIA's own library.
    Nvml,
    /// dcgm-exporter.
    Dcgm,
    /// AMD's device-metrics-exporter.
    Rocm,
    /// None yet.
    None,
}

impl SourceName {
    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvml => "nvml",
            Self::Dcgm => "dcgm",
            Self::Rocm => "rocm",
            Self::None => "none",
        }
    }
}

/// Which source is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// NVML if it is there and has a device, else the exporter if one is named, else none.
    #[default]
    Auto,
    /// NVML, however long it takes to come.
    Nvml,
    /// The exporter.
    Exporter,
}

/// The source that is wanted. May take as long as NVML's first answer.
pub(crate) fn choose(
    wanted: Wanted,
    library: Option<PathBuf>,
    exporter: Option<ExporterPlan>,
    uuids: Vec<Arc<str>>,
    patience: Duration,
) -> io::Result<Box<dyn Source>> {
    let exporter = exporter.map(|plan| Box::new(Exporter::new(plan, uuids)) as Box<dyn Source>);
    match (wanted, exporter) {
        (Wanted::Exporter, Some(exporter)) => Ok(exporter),
        (Wanted::Exporter, None) => {
            let what = "they are to be read from an exporter, and none is named";
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
        (Wanted::Auto, Some(exporter)) => {
            let mut nvml = Nvml::start(library, patience)?;
            match nvml.sample() {
                Sample::Devices(devices) if !devices.is_empty() => Ok(Box::new(nvml)),
                _ => Ok(exporter),
            }
        }
        // Without an exporter there is nothing better to do than to look for it again.
        (Wanted::Auto | Wanted::Nvml, _) => Ok(Box::new(Nvml::start(library, patience)?)),
    }
}
