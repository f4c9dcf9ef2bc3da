//! Which devices an upstream runs on, as it is configured and as it is found. Law: with several
//! upstreams, or where devices of others may be seen, a person says it; nothing is guessed that money
//! hangs on.

use std::fmt;
use std::sync::Arc;

use crate::sample::Device;
use crate::source::SourceName;

/// An upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Its devices; `None` if it was not said.
    pub gpus: Option<Gpus>,
}

/// Devices, as a person names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// Every one on the machine.
    All,
    /// These; an empty list for an upstream that uses none here.
    These(Vec<GpuName>),
}

/// A device, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuName {
    /// By its number, counted from 0 in the driver's order.
    Index(u32),
    /// By its UUID; that of a MIG instance stands for the device it is a part of.
    Uuid(Arc<str>),
}

impl Gpus {
    /// Reads what stands in a setting: `all`, or names with commas between.
    pub fn parse(text: &str) -> Self {
        let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty());
        match text.trim().eq_ignore_ascii_case("all") {
            true => Self::All,
            false => Self::These(names().map(GpuName::parse).collect()),
        }
    }
}

impl GpuName {
    /// Reads a name: a number is an index, all else a UUID.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Uuid(text.into()), Self::Index)
    }

    fn is(&self, device: &Device) -> bool {
        match self {
            Self::Index(index) => device.parent.is_none() && device.index == Some(*index),
            Self::Uuid(uuid) => device.uuid.eq_ignore_ascii_case(uuid),
        }
    }
}

impl fmt::Display for GpuName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "number {index}"),
            Self::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

/// What is wrong with how devices were given to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The upstream that has none.
    pub upstream: Arc<str>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there are several upstreams, and it is not said on which GPUs {} runs: set its gpus to a list of \
             indices or UUIDs, to `all`, or to an empty list",
            self.upstream
        )
    }
}

impl std::error::Error for Mistake {}

/// Every upstream's devices.
#[derive(Clone, Debug)]
pub(crate) struct Assignment(Vec<Upstream>);

impl Assignment {
    /// A single upstream has all devices of its own container if nothing is said.
    pub(crate) fn new(upstreams: &[Upstream]) -> Result<Self, Mistake> {
        let unsaid = upstreams.iter().find(|upstream| upstream.gpus.is_none());
        match unsaid {
            Some(upstream) if upstreams.len() > 1 => Err(Mistake { upstream: Arc::clone(&upstream.name) }),
            _ => Ok(Self(upstreams.to_vec())),
        }
    }

    /// The upstream that says nothing, of which there is at most one; and whether it has the devices
    /// of a source. What the driver shows to this process was given to its container; an exporter
    /// shows a machine's, and only where that has a single one it is known whose that is.
    pub(crate) fn unsaid(&self, source: SourceName, all: &[Device]) -> Option<(&Upstream, bool)> {
        let unsaid = self.0.iter().find(|upstream| upstream.gpus.is_none())?;
        let whole = all.iter().filter(|device| device.parent.is_none()).count();
        Some((unsaid, source == SourceName::Nvml || whole <= 1))
    }

    /// The upstreams that run on a device, by their numbers; `all` are the sample's devices.
    pub(crate) fn of(&self, device: &Device, source: SourceName, all: &[Device]) -> Vec<usize> {
        let parts = || all.iter().filter(|part| part.parent.as_ref() == Some(&device.uuid));
        let is = |name: &GpuName| name.is(device) || parts().any(|part| name.is(part));
        let runs = |upstream: &Upstream| match &upstream.gpus {
            None => self.unsaid(source, all).is_some_and(|(_, has)| has),
            Some(Gpus::All) => true,
            Some(Gpus::These(names)) => names.iter().any(is),
        };
        let numbered = self.0.iter().enumerate();
        numbered.filter(|(_, upstream)| runs(upstream)).map(|(number, _)| number).collect()
    }

    /// What was named and is not there.
    pub(crate) fn missing(&self, all: &[Device]) -> Vec<String> {
        let mut missing = Vec::new();
        for upstream in &self.0 {
            let Some(Gpus::These(names)) = &upstream.gpus else { continue };
            for name in names.iter().filter(|name| !all.iter().any(|device| name.is(device))) {
                missing.push(format!("{name} of {}", upstream.name));
            }
        }
        missing
    }

    /// UUIDs that are named anywhere.
    pub(crate) fn uuids(&self) -> Vec<Arc<str>> {
        let lists = self.0.iter().filter_map(|upstream| match &upstream.gpus {
            Some(Gpus::These(names)) => Some(names),
            _ => None,
        });
        let uuid = |name: &GpuName| match name {
            GpuName::Uuid(uuid) => Some(Arc::clone(uuid)),
            GpuName::Index(_) => None,
        };
        lists.flatten().filter_map(uuid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(name: &str, gpus: Option<&str>) -> Upstream {
        Upstream { name: name.into(), gpus: gpus.map(Gpus::parse) }
    }

    fn device(uuid: &str, index: Option<u32>, parent: Option<&str>) -> Device {
        Device { uuid: uuid.into(), index, parent: parent.map(Into::into), ..Device::default() }
    }

    #[test]
    fn one_upstream_has_all_and_several_must_say() {
        let there = [device("GPU-a", Some(0), None)];
        let one = Assignment::new(&[upstream("a", None)]).expect("it needs not be said");
        assert_eq!(one.of(&there[0], SourceName::Nvml, &there), [0]);
        assert_eq!(one.of(&there[0], SourceName::Dcgm, &there), [0], "it is the only one");
        let mistake =
            Assignment::new(&[upstream("a", Some("0")), upstream("b", None)]).expect_err("b has none");
        assert_eq!(mistake, Mistake { upstream: "b".into() });
        assert!(mistake.to_string().contains("on which GPUs b runs"));
    }

    #[test]
    fn a_machines_devices_are_not_one_upstreams_by_silence() {
        let there = [
            device("GPU-a", Some(0), None),
            device("GPU-b", Some(1), None),
            device("MIG-1", None, Some("GPU-b")),
        ];
        let silent = Assignment::new(&[upstream("a", None)]).expect("it needs not be said");
        let all = Assignment::new(&[upstream("a", Some("all"))]).expect("it is said");
        for (source, has) in [(SourceName::Nvml, &[0][..]), (SourceName::Dcgm, &[]), (SourceName::Rocm, &[])]
        {
            assert_eq!(silent.of(&there[0], source, &there), has, "{source:?}");
            assert_eq!(all.of(&there[0], source, &there), [0], "{source:?}");
        }
        // Parts of one device are one device.
        assert_eq!(silent.of(&there[1], SourceName::Dcgm, &there[1..]), [0]);
    }

    #[test]
    fn devices_are_found_by_number_uuid_and_part() {
        let there = [
            device("GPU-a", Some(0), None),
            device("GPU-b", Some(1), None),
            device("MIG-1", None, Some("GPU-b")),
        ];
        let said =
            [("x", "0"), ("y", "gpu-B, GPU-a"), ("z", "MIG-1"), ("none", ""), ("all", "ALL"), ("far", "7")];
        let said = said.map(|(name, gpus)| upstream(name, Some(gpus)));
        let assignment = Assignment::new(&said).expect("all say it");
        assert_eq!(assignment.of(&there[0], SourceName::Dcgm, &there), [0, 1, 4]);
        assert_eq!(assignment.of(&there[1], SourceName::Dcgm, &there), [1, 2, 4]);
        assert_eq!(assignment.missing(&there), ["number 7 of far"]);
        assert_eq!(assignment.uuids(), ["gpu-B".into(), "GPU-a".into(), "MIG-1".into()]);
    }
}
