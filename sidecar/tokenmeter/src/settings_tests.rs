//! The precedence of the places of a setting, and the errors of a settings file.

use std::collections::BTreeMap;

use origin::{Origin, file};

use super::{Form, RawSettings, SETTINGS, Value, setting};

fn merge(flag: Option<&str>, env: Option<&str>, yaml: &str) -> RawSettings {
    let flags: BTreeMap<_, _> = flag.map(|text| ("stall_ms", text.to_owned())).into_iter().collect();
    let variables = |name: &str| env.filter(|_| name == "TOKENMETER_STALL_MS").map(str::to_owned);
    RawSettings::merge(&flags, &variables, Some(file::parse("t.yaml", yaml).unwrap()))
}

fn errors(yaml: &str) -> Vec<String> {
    merge(None, None, yaml).errors.iter().map(ToString::to_string).collect()
}

#[test]
fn first_place_that_has_a_setting_applies() {
    let file = "# a comment\nstall_ms: 3\n";
    let in_file = || Origin::File { path: "t.yaml".into(), line: 2 };
    let flag = || Origin::Flag("--stall-ms".to_owned());
    let variable = || Origin::Env("TOKENMETER_STALL_MS".to_owned());
    for (written, in_env, yaml, expected) in [
        (Some("1"), Some("2"), file, Some(("1", flag()))),
        (Some("1"), None, file, Some(("1", flag()))),
        (Some("1"), Some("2"), "", Some(("1", flag()))),
        (Some(""), Some("2"), file, Some(("", flag()))),
        (None, Some("2"), file, Some(("2", variable()))),
        (None, Some("2"), "", Some(("2", variable()))),
        (None, Some(""), file, Some(("3", in_file()))),
        (None, None, file, Some(("3", in_file()))),
        (None, None, "", None),
        (None, Some(""), "", None),
    ] {
        let expected = expected.map(|(text, origin)| Value { text: text.to_owned(), origin });
        let merged = merge(written, in_env, yaml);
        assert_eq!(merged.values.get("stall_ms"), expected.as_ref(), "{written:?} {in_env:?} {yaml:?}");
        assert!(merged.errors.is_empty());
    }
}

#[test]
fn table_is_consistent() {
    for (index, row) in SETTINGS.iter().enumerate() {
        assert!(SETTINGS[..index].iter().all(|earlier| earlier.key != row.key), "{} twice", row.key);
        assert!(row.key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", row.key);
        assert!(!row.help.ends_with('.'), "{}", row.key);
        match row.form {
            Form::Number { min, max, .. } if !row.default.is_empty() => {
                assert!((min..=max).contains(&row.default.parse().unwrap()), "{}", row.key);
            }
            Form::Choice(names) => assert!(names.contains(&row.default), "{}", row.key),
            Form::Switch => assert_eq!(row.default, "false", "{}: a flag can only turn it on", row.key),
            _ => {}
        }
    }
    assert_eq!(setting("pool_idle_ms").flag(), "--pool-idle-ms");
    assert_eq!(setting("pool_idle_ms").variable(), "TOKENMETER_POOL_IDLE_MS");
}

#[test]
fn every_key_has_its_line() {
    let yaml = "listen: 127.0.0.1:1\nupstreams:\n  - name: a\n    url: http://a:1\n\n  - {url: \"http://b:1\", name: 7}\n";
    let written = merge(None, None, yaml);
    assert!(written.errors.is_empty());
    let (origin, entries) = written.upstreams.unwrap();
    assert_eq!(origin.to_string(), "t.yaml:2");
    assert_eq!(entries[0].fields["url"].origin.to_string(), "t.yaml:4");
    assert_eq!(entries[1].origin.to_string(), "t.yaml:6");
    assert_eq!(entries[1].fields["name"].text, "7", "a number is a valid name");
}

#[test]
fn unknown_keys_and_shapes_are_errors_with_lines() {
    for (yaml, expected) in [
        ("lisen: x\n", "t.yaml:1: there is no setting `lisen`; did you mean `listen`?"),
        ("stall-ms: 5\n", "t.yaml:1: there is no setting `stall-ms`; did you mean `stall_ms`?"),
        (
            "upstreams:\n- url: http://a\n  weight: 5\n",
            "t.yaml:3: an upstream has no key `weight`; known are name, url, tls, proxy, kind, usage, role, listen, \
             listen_tls, tls_cert, tls_key, tls_client_ca, proxy_protocol, engine_metrics, gpus",
        ),
        ("upstreams:\n- urls: http://a\n", "t.yaml:2: an upstream has no key `urls`; did you mean `url`?"),
        (
            "upstreams: http://a:1\n",
            "t.yaml:1: `upstreams` is not a list; write one `- url: http://HOST:PORT` for each upstream under it",
        ),
        (
            "upstreams:\n  - http://a:1\n",
            "t.yaml:2: an upstream is not `key: value` lines; write `- url: http://HOST:PORT` and its other \
             keys below",
        ),
        (
            "objectives:\n- preset: chat\n  modles: qwen*\n",
            "t.yaml:3: an objective has no key `modles`; did you mean `models`?",
        ),
        (
            "objectives: chat\n",
            "t.yaml:1: `objectives` is not a list; write one `- preset: chat` for each objective under it",
        ),
        (
            "objectives:\n  - chat\n",
            "t.yaml:2: an objective is not `key: value` lines; write `- preset: chat` and its other keys below",
        ),
        ("workers:\n", "t.yaml:1: `workers` has no value; write one, or remove the line"),
        (
            "listen: [127.0.0.1]\n",
            "t.yaml:1: `listen` is not a single value; write the value on the same line, in quotes if it holds \
             `[` or `{`",
        ),
        (
            "stall_ms: 1\nworkers: 2\nstall_ms: 3\n",
            "t.yaml:3: `stall_ms` is set twice, first at t.yaml:1; remove one of them",
        ),
        ("- listen: 1\n", "t.yaml:1: the file is not a map of settings; write `key: value` lines"),
    ] {
        assert_eq!(errors(yaml), [expected], "{yaml}");
    }
    let unknown = errors("timeout: 5\n");
    assert!(
        unknown[0].starts_with("t.yaml:1: there is no setting `timeout`; known are upstream, upstream_ca,")
    );
}

#[test]
fn all_errors_are_reported() {
    let yaml = "lisen: x\nworkerz: 1\nupstreams:\n  - url: http://a:1\n    knd: x\n    url: http://b:1\n";
    let places: Vec<_> =
        errors(yaml).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(places, ["t.yaml:1", "t.yaml:2", "t.yaml:5", "t.yaml:6"]);
}

#[test]
fn names_are_a_list_or_separated_by_commas() {
    for yaml in ["admin_hosts: a,b\n", "admin_hosts: [a, b]\n", "admin_hosts:\n  - a\n  - b\n"] {
        assert_eq!(merge(None, None, yaml).values["admin_hosts"].text, "a,b");
    }
    assert_eq!(errors("admin_hosts: [[a]]\n").len(), 1);
}

#[test]
fn invalid_yaml_is_an_error_with_its_line() {
    for (yaml, place) in [
        ("listen: [::1]:9800\n", "t.yaml:1: not YAML: "),
        ("a: 1\n b: 2\n", "t.yaml:2: not YAML: "),
        ("a: 1\n---\nb: 2\n", "t.yaml:3: not YAML: "),
    ] {
        let error = file::parse("t.yaml", yaml).unwrap_err().to_string();
        assert!(error.starts_with(place), "{error}");
        assert!(error.ends_with(
            "; fix the line, or quote the value if it holds `: `, `#`, `[` or `{`, or begins with `*`"
        ));
        assert!(!error.contains('\n'), "one line: {error}");
    }
    let missing = crate::settings::file::read("/nonexistent/t.yaml").unwrap_err().to_string();
    assert_eq!(
        missing,
        "/nonexistent/t.yaml: cannot be read: No such file or directory (os error 2); name a readable YAML \
         file of at most 1 MiB with --config"
    );
}
