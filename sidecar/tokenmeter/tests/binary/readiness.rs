//! Readiness: the process starts without its upstream, reports it, and recovers by itself.

use crate::child::{Running, free, get, get_until, silent_server};

#[test]
fn upstream_may_start_later() {
    let upstream = free();
    let running = Running::start(upstream, &[]);
    let refused = format!("upstream {upstream} at http://{upstream} is unreachable: connection refused");
    let (_, body) =
        get_until(running.admin, "/readyz", |status, body| status == 503 && body.contains(&refused));
    assert!(body.starts_with("not ready\n"), "{body}");
    assert_eq!(get(running.admin, "/livez"), (200, "ok\n".to_owned()));
    get_until(running.admin, "/api/now", |_, now| {
        now.contains(&refused) && now.contains("\"state\":\"not_ready\"") && now.contains("\"up\":false")
    });

    let warning = running.line("unreachable");
    assert!(warning.contains("WARN") && warning.contains("clients get 502"), "{warning}");

    silent_server(upstream);
    get_until(running.admin, "/readyz", |status, body| status == 200 && body == "ok\n");
    running.line("is reachable");
    let noise = running.lines();
    assert!(noise.is_empty(), "one line for each change, no more: {noise:?}");
}

#[test]
fn metrics_have_the_reachability_of_the_upstream() {
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let running = Running::start(upstream, &[]);
    get_until(running.admin, "/readyz", |status, _| status == 200);
    let (status, metrics) = get(running.admin, "/metrics");
    assert_eq!(status, 200);
    assert!(metrics.ends_with('\n'), "{metrics}");
    assert!(metrics.lines().any(|line| line.starts_with("tokenmeter_build_info")), "{metrics}");
    let up = metrics.lines().find(|line| line.contains(&format!("upstream=\"{upstream}\"")));
    assert!(up.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
}
