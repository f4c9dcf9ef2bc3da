//! Tests of what one client may hold, by what the machine has and what was written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::machine::Machine;
use crate::plan::Plan;
use crate::settings::{SETTINGS, Written};

/// Two cores and so many descriptors.
struct With(Option<usize>);

impl Machine for With {
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
    let written = Written::merge(&flags.collect::<BTreeMap<_, _>>(), &|_| None, None);
    Plan::make(&written, &With(descriptors)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn upstreams_take_what_clients_may_ask_for() {
    let shares = plan(None, &[]).relay.shares;
    assert_eq!((shares.upstream_connections, shares.sockets), (2 * 4096, usize::MAX));
    assert_eq!(plan(None, &[("upstream_connections", "7")]).relay.shares.upstream_connections, 7);
}

#[test]
fn descriptors_are_kept_for_others() {
    // Of 200 a quarter, 32 of the process and five of each worker.
    let plan_of = |descriptors, written: &[_]| {
        let plan = plan(Some(descriptors), written);
        (plan.relay.shares.sockets, plan.admin_connections)
    };
    assert_eq!(plan_of(200, &[]), (108, 25));
    assert_eq!(plan_of(20_000, &[]), (20_000 - 256 - 42, 128));
    assert_eq!(plan_of(20_000, &[("descriptor_reserve", "100")]), (20_000 - 100 - 42, 50));
    assert_eq!(plan_of(10, &[]), (1, 4), "too few for anything");
}
