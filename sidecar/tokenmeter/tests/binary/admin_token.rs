//! The token of the admin address: it guards numbers, and probes and the drain work without it.

use std::os::unix::fs::PermissionsExt;

use crate::child::{Running, get, get_until, get_with, output, silent_server, tokenmeter};

#[test]
fn numbers_need_the_token_of_the_file() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-admin-token-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (file, drain) = (at("admin.token"), at("drain.token"));
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let options = ["--admin-token-file", &file, "--drain-token-file", &drain, "--drain-delay-ms", "0"];
    let mut running = Running::start(upstream, &options);
    let admin = running.admin;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let guarded = ["/metrics", "/api/now", "/api/history", "/api/curve"];
    for path in guarded {
        assert_eq!(get(admin, path).0, 401, "{path}");
        assert_eq!(get_with(admin, path, &bearer(&token[1..])).0, 401, "{path}");
        assert_eq!(get_with(admin, path, &bearer(&token)).0, 200, "{path}");
    }
    get_until(admin, "/readyz", |status, _| status == 200);
    for path in ["/livez", "/", "/assets/app.js"] {
        assert_eq!(get(admin, path).0, 200, "{path}");
    }
    // The command gets as far as the page, on which nothing is timed yet.
    let from = format!("http://{admin}");
    let (code, _, error) = output(&["curve", "--from", &from]);
    assert!(code == Some(1) && error.contains("401") && error.contains("--token-file"), "{error}");
    let (code, _, error) = output(&["curve", "--from", &from, "--token-file", &file]);
    assert!(code == Some(1) && error.contains("has timed no stream yet"), "{error}");
    // A new token is valid at once, and the drain's token reads nothing.
    std::fs::write(&file, "another\n").unwrap();
    assert_eq!(get_with(admin, "/metrics", &bearer("another")).0, 200);
    let of_drain = std::fs::read_to_string(&drain).unwrap();
    for token in [&*token, of_drain.trim()] {
        assert_eq!(get_with(admin, "/metrics", &bearer(token)).0, 401);
    }
    std::fs::remove_file(&file).unwrap();
    let (status, error) = get_with(admin, "/api/now", &bearer("another"));
    assert!(status == 500 && error.contains("admin_token_file"), "{status} {error}");
    assert!(!error.contains(&folder.display().to_string()), "a client learns no path: {error}");
    let drained =
        tokenmeter(&["drain", "--admin", &admin.to_string(), "--drain-token-file", &drain]).output();
    assert!(drained.unwrap().status.success(), "the drain has a token of its own");
    running.signal("TERM");
    assert_eq!(running.ended(), Some(0));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Without an objective or a stream, the curve is empty and no error.
#[test]
fn curve_of_an_idle_process_is_empty() {
    let running = Running::start(silent_server(([127, 0, 0, 1], 0).into()), &[]);
    let (status, curve) = get(running.admin, "/api/curve");
    let curve: serde_json::Value = serde_json::from_str(&curve).unwrap();
    assert_eq!((status, curve), (200, serde_json::json!({"models": [], "window_seconds": null})));
}
