//! Warnings of unknown environment variables.

use std::collections::BTreeMap;

use super::is_service_link;
use crate::plan::Plan;
use crate::plan::machine::{Alone, Machine};
use crate::settings::RawSettings;

/// The warnings of a run with these variables.
fn warnings(variables: &'static [(&'static str, &'static str)]) -> Vec<String> {
    let machine = Alone(variables);
    let flags = BTreeMap::from([("upstream", "http://127.0.0.1:8000".to_owned())]);
    let written = RawSettings::merge(&flags, &|name| machine.variable(name), None);
    let plan = Plan::make(&written, &machine).unwrap();
    plan.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn misspelled_variable_gets_a_suggestion() {
    let found = warnings(&[("TOKENMETER_OTLP_ENDPOIN", "x")]);
    let wanted = "TOKENMETER_OTLP_ENDPOIN: the variable belongs to no setting and is ignored; did you mean \
                  TOKENMETER_OTLP_ENDPOINT?";
    assert_eq!(found, [wanted]);
}

#[test]
fn unknown_variable_is_named_without_its_value() {
    let found = warnings(&[("TOKENMETER_XYZZY", "SECRET")]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("TOKENMETER_XYZZY: ") && !found[0].contains("SECRET"), "{found:?}");
}

#[test]
fn known_and_foreign_variables_give_no_warning() {
    let none: [String; 0] = [];
    assert_eq!(warnings(&[("TOKENMETER_STALL_MS", "5"), ("TOKENMETER_CONFIG", ""), ("PATH", "x")]), none);
    assert_eq!(
        warnings(&[
            ("TOKENMETER_SERVICE_HOST", "10.0.0.1"),
            ("TOKENMETER_ADMIN_PORT_9464_TCP_ADDR", "10.0.0.1")
        ]),
        none
    );
}

#[test]
fn service_links_of_kubernetes_are_recognised() {
    for link in [
        "TOKENMETER_SERVICE_HOST",
        "TOKENMETER_SERVICE_PORT",
        "TOKENMETER_SERVICE_PORT_METRICS",
        "TOKENMETER_PORT",
        "TOKENMETER_PORT_9800_TCP",
        "TOKENMETER_PORT_9800_TCP_PROTO",
        "TOKENMETER_GATEWAY_PORT_53_UDP_ADDR",
    ] {
        assert!(is_service_link(link), "{link}");
    }
    for other in ["TOKENMETER_PORTS", "TOKENMETER_PORT_NAME", "TOKENMETER_SERVICE", "TOKENMETER_PORT_9800"] {
        assert!(!is_service_link(other), "{other}");
    }
}

#[test]
fn many_unknown_variables_are_counted() {
    let many: Vec<(&str, &str)> =
        (0..14).map(|n| (&*format!("TOKENMETER_UNKNOWN_VARIABLE_{n:02}").leak(), "x")).collect();
    let found = warnings(many.leak());
    assert_eq!(found.len(), 11, "{found:?}");
    assert!(found[10].contains("4 more variables"), "{found:?}");
}
