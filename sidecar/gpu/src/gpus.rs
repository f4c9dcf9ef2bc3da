//! The devices of each upstream, as configured and as found. Law: with several
//! upstreams, or where other processes' devices may be visible, the operator assigns the devices; nothing that
//! decides money is guessed.

use std::fmt;
use std::sync::Arc;

use crate::sample::Device;
use crate::source::SourceName;

/// An upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Its devices; `None` if not configured.
    pub gpus: Option<Gpus>,
}

/// The devices in a `gpus` setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// Every device of the machine.
    All,
    /// These; empty if the upstream uses none of the machine's.
    These(Vec<GpuName>),
}

/// A device in a `gpus` setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuName {
    /// Its index, from 0 in the driver's order.
    Index(u32),
    /// Its UUID; the UUID of a MIG instance selects its parent device.
    Uuid(Arc<str>),
}

impl Gpus {
    /// Parses a setting: `all`, or a list separated by commas.
    pub fn parse(text: &str) -> Self {
        let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty());
        match text.trim().eq_ignore_ascii_case("all") {
            true => Self::All,
            false => Self::These(names().map(GpuName::parse).collect()),
        }
    }
}

impl GpuName {
    /// Parses an index, or else a UUID.
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
            Self::Index(index) => write!(f, "index {index}"),
            Self::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

/// One of several upstreams does not set its devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "several upstreams are configured, and {upstream} does not set its gpus: set them to a list of indices or UUIDs, \
     to `all`, or to an empty list"
)]
pub struct AssignmentError {
    /// The upstream without the setting.
    pub upstream: Arc<str>,
}

/// The devices of every upstream.
#[derive(Clone, Debug)]
pub(crate) struct Assignment(Vec<Upstream>);

impl Assignment {
    /// Only a single upstream may leave its devices unset.
    pub(crate) fn new(upstreams: &[Upstream]) -> Result<Self, AssignmentError> {
        let unassigned = upstreams.iter().find(|upstream| upstream.gpus.is_none());
        match unassigned {
            Some(upstream) if upstreams.len() > 1 => {
                Err(AssignmentError { upstream: Arc::clone(&upstream.name) })
            }
            _ => Ok(Self(upstreams.to_vec())),
        }
    }

    /// Returns the upstream without the setting, of which there is at most one, and true if it has all devices
    /// of the source. The driver shows the devices of this process's container; an exporter shows a machine's, so
    /// only a single device is known to be the upstream's.
    pub(crate) fn unassigned(&self, source: SourceName, all: &[Device]) -> Option<(&Upstream, bool)> {
        let unassigned = self.0.iter().find(|upstream| upstream.gpus.is_none())?;
        let whole = all.iter().filter(|device| device.parent.is_none()).count();
        Some((unassigned, source == SourceName::Nvml || whole <= 1))
    }

    /// Returns the indices of the upstreams that run on a device; `all` are the sample's devices.
    pub(crate) fn of(&self, device: &Device, source: SourceName, all: &[Device]) -> Vec<usize> {
        let parts = || all.iter().filter(|part| part.parent.as_ref() == Some(&device.uuid));
        let is = |name: &GpuName| name.is(device) || parts().any(|part| name.is(part));
        let runs = |upstream: &Upstream| match &upstream.gpus {
            None => self.unassigned(source, all).is_some_and(|(_, has)| has),
            Some(Gpus::All) => true,
            Some(Gpus::These(names)) => names.iter().any(is),
        };
        let numbered = self.0.iter().enumerate();
        numbered.filter(|(_, upstream)| runs(upstream)).map(|(number, _)| number).collect()
    }

    /// Returns the configured devices that are not in `all`.
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

    /// Returns all configured UUIDs.
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
    fn only_a_single_upstream_gets_all_devices() {
        let there = [device("GPU-a", Some(0), None)];
        let one = Assignment::new(&[upstream("a", None)]).expect("it may be unset");
        assert_eq!(one.of(&there[0], SourceName::Nvml, &there), [0]);
        assert_eq!(one.of(&there[0], SourceName::Dcgm, &there), [0], "it is the only one");
        let error =
            Assignment::new(&[upstream("a", Some("0")), upstream("b", None)]).expect_err("b has none");
        assert_eq!(error, AssignmentError { upstream: "b".into() });
        assert!(error.to_string().contains("b does not set its gpus"));
    }

    #[test]
    fn exporter_with_several_devices_assigns_none_by_default() {
        let there = [
            device("GPU-a", Some(0), None),
            device("GPU-b", Some(1), None),
            device("MIG-1", None, Some("GPU-b")),
        ];
        let silent = Assignment::new(&[upstream("a", None)]).expect("it may be unset");
        let all = Assignment::new(&[upstream("a", Some("all"))]).expect("it is set");
        for (source, has) in [(SourceName::Nvml, &[0][..]), (SourceName::Dcgm, &[]), (SourceName::Rocm, &[])]
        {
            assert_eq!(silent.of(&there[0], source, &there), has, "{source:?}");
            assert_eq!(all.of(&there[0], source, &there), [0], "{source:?}");
        }
        // Instances of one device count as one device.
        assert_eq!(silent.of(&there[1], SourceName::Dcgm, &there[1..]), [0]);
    }

    #[test]
    fn devices_match_by_index_uuid_and_instance() {
        let there = [
            device("GPU-a", Some(0), None),
            device("GPU-b", Some(1), None),
            device("MIG-1", None, Some("GPU-b")),
        ];
        let said =
            [("x", "0"), ("y", "gpu-B, GPU-a"), ("z", "MIG-1"), ("none", ""), ("all", "ALL"), ("far", "7")];
        let said = said.map(|(name, gpus)| upstream(name, Some(gpus)));
        let assignment = Assignment::new(&said).expect("all set it");
        assert_eq!(assignment.of(&there[0], SourceName::Dcgm, &there), [0, 1, 4]);
        assert_eq!(assignment.of(&there[1], SourceName::Dcgm, &there), [1, 2, 4]);
        assert_eq!(assignment.missing(&there), ["index 7 of far"]);
        assert_eq!(assignment.uuids(), ["gpu-B".into(), "GPU-a".into(), "MIG-1".into()]);
    }
}
