//! Limits on shared resources, by the machine and the settings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::plan::Plan;
use crate::plan::machine::Machine;
use crate::settings::{RawSettings, SETTINGS};

/// A machine with two cores and this number of descriptors.
struct FakeMachine(Option<usize>);

impl Machine for FakeMachine {
    fn cores(&self) -> usize {
        2
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    fn descriptors(&self) -> Option<usize> {
        self.0
    }

    fn owns(&self, _: IpAddr) -> bool {
        false
    }

    fn host(&self) -> String {
        String::new()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn variables(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fn plan(descriptors: Option<usize>, written: &[(&str, &str)]) -> Plan {
    let written = [("upstream", "http://127.0.0.1:8000")].iter().chain(written);
    let flags = written.map(|(key, value)| {
        let row = SETTINGS.iter().find(|row| row.key == *key).unwrap();
        (row.key, (*value).to_owned())
    });
    let written = RawSettings::merge(&flags.collect::<BTreeMap<_, _>>(), &|_| None, None);
    Plan::make(&written, &FakeMachine(descriptors)).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn upstream_connections_default_to_client_connections() {
    let shares = plan(None, &[]).relay.shares;
    assert_eq!((shares.upstream_connections, shares.sockets), (2 * 4096, usize::MAX));
    assert_eq!(plan(None, &[("upstream_connections", "7")]).relay.shares.upstream_connections, 7);
}

#[test]
fn sockets_leave_a_descriptor_reserve() {
    // 200 less a quarter, 32 of the process and five per worker.
    let plan_of = |descriptors, written: &[_]| {
        let plan = plan(Some(descriptors), written);
        (plan.relay.shares.sockets, plan.admin_connections)
    };
    assert_eq!(plan_of(200, &[]), (108, 25));
    assert_eq!(plan_of(20_000, &[]), (20_000 - 256 - 42, 128));
    assert_eq!(plan_of(20_000, &[("descriptor_reserve", "100")]), (20_000 - 100 - 42, 50));
    assert_eq!(plan_of(10, &[]), (1, 4), "fewer than the reserve");
}
