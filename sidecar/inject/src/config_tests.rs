//! Configs that are refused.

use super::Config;

/// A small config, with one line changed.
fn error(from: &str, to: &str) -> String {
    let text = "container: {name: tokenmeter}\nvolumes: [{name: state}]\nnative: true\nserver_port: 8200\n\
                grace_seconds: 120\nservers:\n- {name: vllm, words: [vllm serve], images: [], port_flags: [--port], port: 8000}\n";
    assert!(text.contains(from), "{from}");
    match Config::parse(&text.replace(from, to)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn small_config_is_valid() {
    assert_eq!(error("native", "native"), "");
}

#[test]
fn invalid_config_names_the_key() {
    for (from, to, part) in [
        ("{name: tokenmeter}", "{name: other}", "container"),
        ("[{name: state}]", "[{emptyDir: {}}]", "volumes"),
        ("8200", "80", "server_port"),
        ("8200", "65530", "server_port"),
        ("120", "86401", "grace_seconds"),
        ("native: true", "native: true\naddress: 127.0.0.1", "address"),
        ("native: true", "native: true\ndelay_seconds: 3601", "delay_seconds"),
        ("[--port]", "[]", "servers"),
        ("native: true", "nativ: true", "nativ"),
        ("servers:", "redirect: {image: x}\nservers:", "redirect"),
        ("native: true", "native: [", "line"),
    ] {
        let error = error(from, to);
        assert!(error.contains(part), "{from} -> {to}: {error:?}");
    }
}

#[test]
fn admin_port_is_the_named_one() {
    let text = "container: {name: tokenmeter, ports: [{name: a, containerPort: 1}, {name: tm-admin, containerPort: 9000}]}\n\
                native: true\nserver_port: 8200\ngrace_seconds: 1\nservers: []\n";
    assert_eq!(Config::parse(text).expect("valid").admin_port(), 9000);
    assert_eq!(Config::parse(&text.replace("tm-admin", "x")).expect("valid").admin_port(), 9464);
}
