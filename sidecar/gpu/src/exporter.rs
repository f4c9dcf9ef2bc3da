//! Samples from a GPU exporter's metrics page, for a process without access to the devices: dcgm-exporter for
//! NVIDIA, the device-metrics-exporter for AMD.
//!
//! Law: behind a cluster-wide address the exporter of any node may answer. If the operator has named
//! a machine or devices, a page of another machine is rejected, counted, and logged.

use std::collections::BTreeMap;
use std::sync::Arc;

use scrape::{Fetcher, Page};

use crate::limits::{DEVICE_MAX_PODS, MAX_DEVICES};
use crate::sample::{Device, Sample, cut};
use crate::source::{Source, SourceName};

mod dcgm;
mod quantity;
mod rocm;

#[cfg(test)]
mod pods_tests;
#[cfg(test)]
mod tests;

use quantity::Quantity;

/// The address of an exporter, and the machine whose page is expected.
#[derive(Clone, Debug)]
pub struct ExporterPlan {
    /// The client of its page.
    pub fetcher: Fetcher,
    /// The path of the page, with its leading slash.
    pub path: String,
    /// The required value of the label `hostname`, if any.
    pub hostname: Option<String>,
    /// The prefix of the metrics' names before their default names.
    pub prefix: String,
}

/// An exporter as a source.
#[derive(Debug)]
pub struct Exporter {
    asker: Fetcher,
    path: String,
    reader: Reader,
}

impl Exporter {
    /// `uuids` are the devices that the configuration names. Without a configured host name, a page
    /// with none of them is another machine's.
    pub fn new(plan: ExporterPlan, uuids: Vec<Arc<str>>) -> Self {
        let reader = Reader {
            hostname: plan.hostname,
            uuids,
            prefix: plan.prefix,
            source: SourceName::Dcgm,
            refused: 0,
        };
        Self { asker: plan.fetcher, path: plan.path, reader }
    }
}

impl Source for Exporter {
    fn sample(&mut self) -> Sample {
        match self.asker.get_blocking(&self.path) {
            Ok(answer) if answer.status == 200 => self.reader.read(&Page::read(&answer.text)),
            Ok(answer) => {
                Sample::Failed(format!("the exporter answered status {} to {}", answer.status, self.path))
            }
            Err(failure) => Sample::Failed(format!("the exporter cannot be read: {failure}")),
        }
    }

    fn name(&self) -> SourceName {
        self.reader.source
    }

    fn refused(&self) -> u64 {
        self.reader.refused
    }
}

/// The names that one kind of exporter uses.
struct Dialect {
    source: SourceName,
    vendor: &'static str,
    /// The prefix of its names, which identifies it.
    name_prefix: &'static str,
    /// Names and their quantities; of several names with the same quantity the first one counts.
    names: &'static [(&'static str, Quantity)],
    /// Label names, in order of preference: the first present and non-empty label counts.
    uuid: &'static [&'static str],
    index: &'static [&'static str],
    name: &'static [&'static str],
    hostname: &'static [&'static str],
    driver: &'static [&'static str],
    /// The label of a MIG instance.
    part: &'static [&'static str],
}

/// The labels of the pod that uses a device, new and old, in all dialects. On a device with several pods, every metric
/// has a line for each.
const POD: &[&str] = &["pod", "pod_name"];
const NAMESPACE: &[&str] = &["namespace", "pod_namespace"];

const DIALECTS: [&Dialect; 2] = [&dcgm::DCGM, &rocm::ROCM];

/// Turns pages into samples.
#[derive(Debug)]
struct Reader {
    hostname: Option<String>,
    uuids: Vec<Arc<str>>,
    prefix: String,
    source: SourceName,
    refused: u64,
}

/// A parsed line of the page.
struct Line<'p> {
    /// The metric name without the configured prefix.
    name: &'p str,
    value: f64,
    labels: Labels<'p>,
}

impl Reader {
    fn read(&mut self, page: &Page<'_>) -> Sample {
        let lines: Vec<Line<'_>> = page.samples.iter().filter_map(|sample| self.line(sample)).collect();
        let is_of = |dialect: &&&Dialect| {
            lines.iter().any(|line| starts_with_ignore_case(line.name, dialect.name_prefix))
        };
        let Some(dialect) = DIALECTS.iter().find(is_of) else {
            return Sample::Failed("the exporter's page has no known metric".to_owned());
        };
        self.source = dialect.source;
        let mut hosts = Vec::new();
        let mut expected = Vec::new();
        for line in lines.into_iter().filter(|line| starts_with_ignore_case(line.name, dialect.name_prefix)) {
            let host = line.labels.first(dialect.hostname).unwrap_or_default().to_owned();
            match self.is_expected(dialect, &line) {
                true => expected.push(line),
                false if !hosts.contains(&host) => hosts.push(host),
                false => {}
            }
        }
        if expected.is_empty() && !hosts.is_empty() {
            self.refused += 1;
            let wanted = self.hostname.as_deref().unwrap_or("the machine with the GPUs that are configured");
            return Sample::Failed(format!(
                "the exporter's page is of {}, not of {wanted}; restrict its Service to the same node \
                 (internalTrafficPolicy: Local)",
                hosts.join(", ")
            ));
        }
        Sample::Devices(devices(dialect, &expected))
    }

    fn line<'p>(&self, sample: &scrape::Sample<'p>) -> Option<Line<'p>> {
        let name =
            starts_with_ignore_case(sample.name, &self.prefix).then(|| &sample.name[self.prefix.len()..])?;
        let labels = sample.labels().map(|(name, value)| (name, value.into_owned())).collect();
        Some(Line { name, value: sample.value, labels: Labels(labels) })
    }

    /// Returns true if a line is of the expected machine or device.
    fn is_expected(&self, dialect: &Dialect, line: &Line<'_>) -> bool {
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

/// Returns the devices on the page.
fn devices(dialect: &Dialect, lines: &[Line<'_>]) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for (name, quantity) in dialect.names {
        // A device may have several lines, one for each process or pod on it: the maximum is the device's.
        let mut said: BTreeMap<usize, f64> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.name.eq_ignore_ascii_case(name)) {
            let Some(value) = quantity.plausible(line.value) else { continue };
            if let Some(number) = device_index(dialect, &mut devices, &line.labels, *quantity) {
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

/// Returns the index of the device of a line, added if it is new. A quantity that only a whole device has, energy
/// above all, goes to the whole device even if the line is of an instance.
fn device_index(
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
    if let (Some(pod), pods) = (labels.first(POD), &mut devices[whole].pods)
        && pods.len() < DEVICE_MAX_PODS
    {
        pods.insert(cut(&format!("{}/{pod}", labels.first(NAMESPACE).unwrap_or_default())));
    }
    let Some(part) = part.filter(|_| quantity.is_per_instance()) else { return Some(whole) };
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
        (devices.len() < MAX_DEVICES).then(|| {
            devices.push(Device { uuid: uuid.into(), ..new() });
            devices.len() - 1
        })
    })
}

/// A line's labels. Names match in any case, because exporters differ.
struct Labels<'p>(Vec<(&'p str, String)>);

impl Labels<'_> {
    fn first(&self, names: &[&str]) -> Option<&str> {
        let of = |name: &&str| {
            self.0.iter().find(|(its, text)| its.eq_ignore_ascii_case(name) && !text.is_empty())
        };
        names.iter().find_map(of).map(|(_, text)| &**text)
    }
}

fn starts_with_ignore_case(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
}
