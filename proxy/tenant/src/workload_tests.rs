//! Identities in the forms of meshes, and what a client may put before its proxy's part.

use super::Workload;

fn read(value: &str) -> Option<(&str, &str)> {
    Workload::read(value).map(|found| (found.namespace, found.service_account))
}

const WEB: Option<(&str, &str)> = Some(("team-a", "web"));

#[test]
fn each_form_of_a_mesh_is_read() {
    for value in [
        "spiffe://cluster.local/ns/team-a/sa/web",
        " spiffe://cluster.local/ns/team-a/sa/web ",
        "web.team-a.serviceaccount.identity.linkerd.cluster.local",
        "URI=spiffe://cluster.local/ns/team-a/sa/web",
        "By=spiffe://cluster.local/ns/llm/sa/vllm;Hash=ab;Subject=\"\";URI=spiffe://cluster.local/ns/team-a/sa/web",
        "Hash=ab;Subject=\"CN=a;URI=spiffe://x/ns/b/sa/c,O=\\\"d\\\"\";URI=spiffe://cluster.local/ns/team-a/sa/web;DNS=x",
        "uri=\"spiffe://cluster.local/ns/team-a/sa/web\"",
        // The gateway's part, then that of the proxy in the pod.
        "URI=spiffe://a/ns/edge/sa/gateway,By=spiffe://a/ns/llm/sa/vllm;URI=spiffe://a/ns/team-a/sa/web",
    ] {
        assert_eq!(read(value), WEB, "{value}");
    }
    assert_eq!(read("a.b.team-a.serviceaccount.identity.x"), Some(("team-a", "a.b")));
}

#[test]
fn value_without_one_identity_is_none() {
    for value in [
        "",
        "web",
        "team-a",
        "spiffe://cluster.local/ns/team-a",
        "spiffe://cluster.local/ns/team-a/sa/web/more",
        "spiffe://cluster.local/ns//sa/web",
        "spiffe://cluster.local/ns/Team/sa/web",
        "spiffe://cluster.local/ns/a%2fb/sa/web",
        "By=spiffe://cluster.local/ns/team-a/sa/web;Hash=ab",
        "URI=https://cluster.local/ns/team-a/sa/web",
        "URI=spiffe://a/ns/team-a/sa/web;URI=spiffe://a/ns/team-b/sa/web",
        "URI=spiffe://a/ns/team-a/sa/web,",
        "URI=spiffe://a/ns/team-a/sa/web,Hash=ab",
        "web.serviceaccount.identity.linkerd.cluster.local",
        ".team-a.serviceaccount.identity.linkerd.cluster.local",
    ] {
        assert_eq!(read(value), None, "{value}");
    }
}

/// Envoy appends its element to a header that the client sent: no prefix hides or replaces it.
#[test]
fn element_of_the_proxy_counts_whatever_precedes() {
    let proxys = "By=spiffe://a/ns/llm/sa/vllm;Hash=ab;Subject=\"CN=\\\"x\\\\\\\",O=y\";URI=spiffe://a/ns/team-a/sa/web";
    let pieces = ["\"", "\\", ",", ";", "=", "URI=spiffe://a/ns/victim/sa/x", "Subject=\"", "a", "é"];
    let mut prefixes = vec![String::new()];
    for _ in 0..3 {
        let longer: Vec<_> =
            prefixes.iter().flat_map(|prefix| pieces.map(|piece| format!("{prefix}{piece}"))).collect();
        for prefix in &longer {
            assert_eq!(read(&format!("{prefix},{proxys}")), WEB, "{prefix}");
            // No panic, whatever a client alone sends.
            let _ = read(prefix);
        }
        prefixes = longer;
    }
}
