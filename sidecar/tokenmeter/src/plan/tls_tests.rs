//! TLS settings of upstreams: what they become, and the text of every error.

use crate::plan::Plan;
use crate::plan::machine::Alone;
use crate::settings::RawSettings;
use origin::file;

fn file_settings(text: &str) -> RawSettings {
    RawSettings::merge(&Default::default(), &|_| None, Some(file::parse("t.yaml", text).unwrap()))
}

fn errors(text: &str) -> Vec<String> {
    let errors = Plan::make(&file_settings(text), &Alone(&[])).expect_err("these settings are invalid");
    errors.0.iter().map(ToString::to_string).collect()
}

/// A certificate and its key, in files that are removed at the end.
struct Files(std::path::PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tokenmeter-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["gpu".to_owned()]).unwrap();
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        std::fs::write(folder.join("half.pem"), &cert[..cert.len() / 2]).unwrap();
        std::fs::write(folder.join("cert.pem"), cert).unwrap();
        std::fs::write(folder.join("key.pem"), key).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn entry_and_single_upstream_have_tls() {
    let files = Files::new("valid");
    let (cert, key) = (files.path("cert.pem"), files.path("key.pem"));
    let listed = format!(
        "upstreams:\n  - url: https://gpu\n    tls:\n      ca: {cert}\n      cert: {cert}\n      key: {key}\n      \
         server_name: other\n"
    );
    let single = format!(
        "upstream: https://gpu\nupstream_ca: {cert}\nupstream_cert: {cert}\nupstream_key: {key}\n\
         upstream_server_name: other\n"
    );
    for text in [&listed, &single] {
        let plan = Plan::make(&file_settings(text), &Alone(&[])).unwrap();
        let target = &plan.relay.upstreams[0].target;
        assert!(target.is_secure() && !target.is_unverified());
        assert_eq!(
            (target.to_string(), &*plan.relay.upstreams[0].name),
            ("https://gpu:443".to_owned(), "gpu:443")
        );
        assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
        // What is printed is a file of the same meaning.
        let shown = plan.effective.show(false);
        assert!(shown.contains(&format!("    tls:\n      ca: {cert}\n      cert: {cert}\n")), "{shown}");
        let again = Plan::make(&file_settings(&shown), &Alone(&[]))
            .unwrap_or_else(|errors| panic!("{errors}\n{shown}"));
        assert_eq!(again.effective.show(false), shown);
    }
}

#[test]
fn skipped_verification_is_a_warning() {
    let text = "upstreams:\n  - url: https://gpu\n    tls: { insecure_skip_verify: yes }\n";
    let plan = Plan::make(&file_settings(text), &Alone(&[])).unwrap();
    assert!(plan.relay.upstreams[0].target.is_unverified());
    let [warning] = plan.warnings.as_slice() else { panic!("{:?}", plan.warnings) };
    let warning = warning.to_string();
    assert!(warning.starts_with("t.yaml:3: the certificate of https://gpu:443 is not verified"), "{warning}");
    let text = "upstream: https://gpu\nupstream_insecure_skip_verify: false\n";
    assert!(
        !Plan::make(&file_settings(text), &Alone(&[])).unwrap().relay.upstreams[0].target.is_unverified()
    );
}

#[test]
fn errors_name_the_line_of_the_file_or_choice() {
    let files = Files::new("errors");
    let (cert, key, half) = (files.path("cert.pem"), files.path("key.pem"), files.path("half.pem"));
    let entry = |tls: &str| format!("upstreams:\n  - url: https://gpu\n    tls:\n{tls}");
    let remedy = "name a PEM file that is complete and that this process can read";
    for (text, expected) in [
        (
            entry(&format!("      ca: {half}\n")),
            format!("t.yaml:4: {half} is incomplete: a BEGIN line has no END line; {remedy}"),
        ),
        (
            entry(&format!("      cert: {cert}\n      key: {half}\n")),
            format!("t.yaml:5: {half} is incomplete: a BEGIN line has no END line; {remedy}"),
        ),
        (
            entry(&format!("      cert: {key}\n      key: {key}\n")),
            format!("t.yaml:4: {key} has no certificate; {remedy}"),
        ),
        (
            entry(&format!("      cert: {cert}\n")),
            "t.yaml:4: a client certificate needs its key; set key as well".to_owned(),
        ),
        (
            entry(&format!("      key: {key}\n")),
            "t.yaml:4: a key needs its client certificate; set cert as well".to_owned(),
        ),
        (
            entry("      server_name: a b\n"),
            "t.yaml:4: `a b` is neither a host name nor an address; write the name that the certificate has".to_owned(),
        ),
        (
            entry(&format!("      ca: {cert}\n      insecure_skip_verify: true\n")),
            "t.yaml:4: has no effect: t.yaml:5 turns verification off; remove one of the two".to_owned(),
        ),
        (
            entry("      insecure_skip_verify: maybe\n"),
            "t.yaml:4: `maybe` is neither true nor false; write true or false".to_owned(),
        ),
        (
            entry("      caa: x\n"),
            "t.yaml:4: `tls` has no key `caa`; did you mean `ca`?".to_owned(),
        ),
        (
            "upstreams:\n  - url: https://gpu\n    tls: true\n".to_owned(),
            "t.yaml:3: `tls` is not `key: value` lines; write its keys below it".to_owned(),
        ),
        (
            "upstreams:\n  - url: http://gpu\n    tls:\n      server_name: a\n".to_owned(),
            "t.yaml:4: has no effect on http://gpu:80, which has no TLS; write https:// there, or remove this".to_owned(),
        ),
        (
            "upstreams:\n  - url: https://gpu\nupstream_server_name: a\n".to_owned(),
            "t.yaml:3: has no effect on the upstreams listed at t.yaml:1; write it in the `tls` of an entry there"
                .to_owned(),
        ),
    ] {
        assert_eq!(errors(&text), [expected], "{text}");
    }
}

#[test]
fn proxy_is_of_the_flag_the_entry_or_the_environment() {
    const MACHINE: Alone =
        Alone(&[("HTTPS_PROXY", "http://user:hunter2@squid:3128"), ("NO_PROXY", ".internal")]);
    let proxies = |text: &str| {
        let plan = Plan::make(&file_settings(text), &MACHINE).unwrap_or_else(|errors| panic!("{errors}"));
        let shown = plan.effective.show(true);
        assert!(!shown.contains("hunter2"), "{shown}");
        let of = |upstream: &relay::Upstream| upstream.target.proxy().map(ToString::to_string);
        plan.relay.upstreams.iter().map(of).collect::<Vec<_>>()
    };
    let squid = Some("http://squid:3128".to_owned());
    let other = Some("http://other:1".to_owned());
    assert_eq!(proxies("upstream: https://gpu\n"), [None]);
    assert_eq!(proxies("upstream: https://gpu\nupstream_proxy: env\n"), std::slice::from_ref(&squid));
    assert_eq!(proxies("upstream: https://gpu.internal\nupstream_proxy: env\n"), [None]);
    assert_eq!(
        proxies("upstream: https://gpu\nupstream_proxy: http://a:hunter2@other:1\n"),
        std::slice::from_ref(&other)
    );
    let list = "upstreams:\n  - { url: \"https://a\", proxy: \"http://other:1\" }\n  - { url: \"https://b\", listen: \
                \"127.0.0.1:1\" }\n  - { url: \"http://c\", listen: \"127.0.0.1:2\" }\nupstream_proxy: env\n";
    assert_eq!(proxies(list), [other, squid, None]);
    let remedy = "write http://[USER:PASSWORD@]HOST:PORT, or env to use HTTPS_PROXY";
    for (text, expected) in [
        (
            "upstream: http://gpu\nupstream_proxy: http://squid:1\n",
            "t.yaml:2: has no effect on http://gpu:80: a proxy is used for https only; write https:// there, \
             or remove this"
                .to_owned(),
        ),
        (
            "upstream: https://gpu\nupstream_proxy: https://a:hunter2@squid\n",
            format!("t.yaml:2: not a proxy: only proxies with http:// are supported; {remedy}"),
        ),
    ] {
        assert_eq!(errors(text), [expected], "{text}");
    }
}
