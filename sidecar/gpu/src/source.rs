//! The sources of samples: a trait, and the choice of an implementation.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::exporter::{Exporter, ExporterPlan};
use crate::nvml::Nvml;
use crate::sample::Sample;

/// A source of samples.
pub trait Source: Send {
    /// Takes a sample. Energy counters are read first, so that they are as of the call. A
    /// failure is part of the sample. May block; never waits for the data plane.
    fn sample(&mut self) -> Sample;

    /// Returns the source's name.
    fn name(&self) -> SourceName;

    /// Returns the number of samples rejected because they were of another machine.
    fn refused(&self) -> u64 {
        0
    }

    /// Takes a sample, with the state of the source.
    fn answer(&mut self) -> Answer {
        let sample = self.sample();
        Answer { source: self.name(), refused: self.refused(), sample }
    }
}

/// A sample and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The source.
    pub source: SourceName,
    /// Samples it rejected since the start.
    pub refused: u64,
    /// The sample.
    pub sample: Sample,
}

meter::listed_enum! {
    /// A source's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SourceName {
        /// NVIDIA's own library.
        Nvml = "nvml",
        /// dcgm-exporter.
        Dcgm = "dcgm",
        /// AMD's device-metrics-exporter.
        Rocm = "rocm",
        /// No source yet.
        None = "none",
    }
    /// The label value.
    pub fn name(self);
}

/// The configured source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceChoice {
    /// NVML if it loads and has a device, else the exporter if one is configured, else none.
    #[default]
    Auto,
    /// NVML, retried until it loads.
    Nvml,
    /// The exporter.
    Exporter,
}

/// Returns the configured source. May take as long as NVML's first answer.
pub(crate) fn choose(
    wanted: SourceChoice,
    library: Option<PathBuf>,
    exporter: Option<ExporterPlan>,
    uuids: Vec<Arc<str>>,
    timeout: Duration,
) -> io::Result<Box<dyn Source>> {
    let exporter = exporter.map(|plan| Box::new(Exporter::new(plan, uuids)) as Box<dyn Source>);
    match (wanted, exporter) {
        (SourceChoice::Exporter, Some(exporter)) => Ok(exporter),
        (SourceChoice::Exporter, None) => {
            let message = "the GPU source is an exporter, and no exporter is configured";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        (SourceChoice::Auto, Some(exporter)) => {
            let mut nvml = Nvml::start(library, timeout)?;
            match nvml.sample() {
                Sample::Devices(devices) if !devices.is_empty() => Ok(Box::new(nvml)),
                _ => Ok(exporter),
            }
        }
        // Without an exporter the only option is to retry NVML.
        (SourceChoice::Auto | SourceChoice::Nvml, _) => Ok(Box::new(Nvml::start(library, timeout)?)),
    }
}
