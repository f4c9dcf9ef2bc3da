//! A GPU exporter's page, where this process has no access to the devices: dcgm-exporter for
//! NVIDIA, the device-metrics-exporter for AMD.
//!
//! Law: behind a cluster-wide address any node's exporter may answer. Where a person has said
//! which machine or which devices are meant, a page of others is refused, counted, and said.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrape::{Asker, Page};

use crate::limits::DEVICES;
use crate::sample::{Device, Sample, cut};
use crate::source::{Source, SourceName};

mod dcgm;
mod quantity;
mod rocm;

#[cfg(test)]
mod tests;

use quantity::Quantity;

/// Where an exporter is, and which machine it is to speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterPlan {
    /// Name or address of its host.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// The page, with the slash it begins with.
    pub path: String,
    /// What its label `hostname` must say, if that matters.
    pub hostname: Option<String>,
    /// What its metrics' names begin with, before what they are called by default.
    pub prefix: String,
}

/// An exporter as a source.
#[derive(Debug)]
pub struct Exporter {
    asker: Asker,
    path: String,
    reader: Reader,
}

impl Exporter {
    /// `uuids` are devices that are meant, if any were named: where no host name is set, a page
    /// without any of them is another machine's.
    pub fn new(plan: ExporterPlan, uuids: Vec<Arc<str>>) -> Self {
        let asker = Asker { host: plan.host, port: plan.port, prefix: "".into() };
        let reader = Reader {
            hostname: plan.hostname,
            uuids,
            prefix: plan.prefix,
            source: SourceName::Dcgm,
            refused: 0,
        };
        Self { asker, path: plan.path, reader }
    }
}

impl Source for Exporter {
    fn sample(&mut self) -> Sample {
        match self.asker.get_and_wait(&self.path) {
            Ok(answer) if answer.status == 200 => self.reader.read(&Page::read(&answer.text)),
            Ok(answer) => Sample::Nothing(format!("the exporter answers {} to {}", answer.status, self.path)),
            Err(failure) => Sample::Nothing(format!("the exporter cannot be read: {failure}")),
        }
    }

    fn name(&self) -> SourceName {
        self.reader.source
    }

    fn refused(&self) -> u64 {
        self.reader.refused
    }
}

/// What one kind of exporter calls things.
struct Dialect {
    source: SourceName,
    vendor: &'static str,
    /// What tells it from others: the beginning of a name.
    mark: &'static str,
    /// A name and what it says; of several that say the same, the first is believed.
    names: &'static [(&'static str, Quantity)],
    /// Labels, each by its names: the first that is there and not empty.
    uuid: &'static [&'static str],
    index: &'static [&'static str],
    name: &'static [&'static str],
    hostname: &'static [&'static str],
    driver: &'static [&'static str],
    /// A part of a device.
    part: &'static [&'static str],
}

const DIALECTS: [&Dialect; 2] = [&dcgm::DCGM, &rocm::ROCM];

/// Makes samples of pages.
#[derive(Debug)]
struct Reader {
    hostname: Option<String>,
    uuids: Vec<Arc<str>>,
    prefix: String,
    source: SourceName,
    refused: u64,
}

/// A line of the page, taken apart.
struct Line<'p> {
    /// Its name without the prefix.
    name: &'p str,
    value: f64,
    labels: Labels<'p>,
}

impl Reader {
    fn read(&mut self, page: &Page<'_>) -> Sample {
        let lines: Vec<Line<'_>> = page.samples.iter().filter_map(|sample| self.line(sample)).collect();
        let is_of = |dialect: &&&Dialect| lines.iter().any(|line| begins(line.name, dialect.mark));
        let Some(dialect) = DIALECTS.iter().find(is_of) else {
            return Sample::Nothing("the exporter's page has no name we know".to_owned());
        };
        self.source = dialect.source;
        let mut hosts = Vec::new();
        let mut meant = Vec::new();
        for line in lines.into_iter().filter(|line| begins(line.name, dialect.mark)) {
            let host = line.labels.first(dialect.hostname).unwrap_or_default().to_owned();
            match self.means(dialect, &line) {
                true => meant.push(line),
                false if !hosts.contains(&host) => hosts.push(host),
                false => {}
            }
        }
        if meant.is_empty() && !hosts.is_empty() {
            self.refused += 1;
            let wanted = self.hostname.as_deref().unwrap_or("the machine with the GPUs that are configured");
            return Sample::Nothing(format!(
                "the exporter speaks of {}, not of {wanted}; let its Service answer on the same node only \
                 (internalTrafficPolicy: Local)",
                hosts.join(", ")
            ));
        }
        Sample::Devices(devices(dialect, &meant))
    }

    fn line<'p>(&self, sample: &scrape::Sample<'p>) -> Option<Line<'p>> {
        let name = begins(sample.name, &self.prefix).then(|| &sample.name[self.prefix.len()..])?;
        let labels = sample.labels().map(|(name, value)| (name, value.into_owned())).collect();
        Some(Line { name, value: sample.value, labels: Labels(labels) })
    }

    /// Whether a line is of the machine that is meant.
    fn means(&self, dialect: &Dialect, line: &Line<'_>) -> bool {
        let is =
            |text: Option<&str>, wanted: &str| text.is_some_and(|text| text.eq_ignore_ascii_case(wanted));
        let uuid = line.labels.first(dialect.uuid);
        let named = self.uuids.iter().any(|wanted| is(uuid, wanted));
        match &self.hostname {
            Some(hostname) => named || is(line.labels.first(dialect.hostname), hostname),
            None => named || self.uuids.is_empty(),
        }
    }
}

/// The devices the lines speak of.
fn devices(dialect: &Dialect, lines: &[Line<'_>]) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for (name, quantity) in dialect.names {
        // A device may be there more than once, for each process or pod on it: the most is all of it.
        let mut said: BTreeMap<usize, f64> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.name.eq_ignore_ascii_case(name)) {
            let Some(value) = quantity.plausible(line.value) else { continue };
            if let Some(number) = place(dialect, &mut devices, &line.labels, *quantity) {
                said.entry(number).and_modify(|most| *most = most.max(value)).or_insert(value);
            }
        }
        for (number, value) in said {
            quantity.set(&mut devices[number], value);
        }
    }
    devices.iter_mut().for_each(quantity::sum_memory);
    devices
}

/// Which device a line is about, noted if it is new. What is said of a part and is the whole's, its
/// energy first of all, is the whole's.
fn place(
    dialect: &Dialect,
    devices: &mut Vec<Device>,
    labels: &Labels<'_>,
    quantity: Quantity,
) -> Option<usize> {
    let index = labels.first(dialect.index);
    let uuid = labels.first(dialect.uuid).map_or_else(
        || {
            format!(
                "{}-{}-{}",
                dialect.vendor,
                labels.first(dialect.hostname).unwrap_or(""),
                index.unwrap_or("")
            )
        },
        str::to_owned,
    );
    let part = labels.first(dialect.part);
    let whole = find(devices, &cut(&uuid), || Device {
        index: index.and_then(|index| index.parse().ok()),
        name: labels.first(dialect.name).map(cut),
        vendor: Some(dialect.vendor),
        driver: labels.first(dialect.driver).map(cut),
        ..Device::default()
    })?;
    let Some(part) = part.filter(|_| quantity.is_of_parts()) else { return Some(whole) };
    let parent = Arc::clone(&devices[whole].uuid);
    let (name, vendor, driver) =
        (devices[whole].name.clone(), devices[whole].vendor, devices[whole].driver.clone());
    find(devices, &cut(&format!("{uuid}/{part}")), || Device {
        parent: Some(parent),
        name,
        vendor,
        driver,
        ..Device::default()
    })
}

fn find(devices: &mut Vec<Device>, uuid: &str, new: impl FnOnce() -> Device) -> Option<usize> {
    let found = devices.iter().position(|device| &*device.uuid == uuid);
    found.or_else(|| {
        (devices.len() < DEVICES).then(|| {
            devices.push(Device { uuid: uuid.into(), ..new() });
            devices.len() - 1
        })
    })
}

/// A line's labels; exporters differ in how they write their names.
struct Labels<'p>(Vec<(&'p str, String)>);

impl Labels<'_> {
    fn first(&self, names: &[&str]) -> Option<&str> {
        let of = |name: &&str| {
            self.0.iter().find(|(its, text)| its.eq_ignore_ascii_case(name) && !text.is_empty())
        };
        names.iter().find_map(of).map(|(_, text)| &**text)
    }
}

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
}
