//! Listeners with TLS, and Unix sockets: their settings and errors.

use crate::plan::tests::{errors, flags, listeners, plan, yaml};

/// A certificate and its key in a folder of its own; removed when dropped.
struct PairFolder(std::path::PathBuf);

impl PairFolder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tokenmeter-plan-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(folder.join("crt"), certificate.pem()).unwrap();
        std::fs::write(folder.join("key"), key.serialize_pem()).unwrap();
        Self(folder)
    }

    /// Replaces `@` by the folder.
    fn text(&self, text: &str) -> String {
        text.replace('@', self.0.to_str().unwrap())
    }
}

impl Drop for PairFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn listener_with_tls_replaces_the_default_one() {
    let pair = PairFolder::new("replaces");
    let files = "tls_cert=@/crt tls_key=@/key";
    for (written, expected) in [
        (format!("listen_tls=0.0.0.0:9843 {files}"), "0.0.0.0:9843 tls"),
        (format!("listen=127.0.0.1:9800 listen_tls=[::]:9843 {files}"), "127.0.0.1:9800, [::]:9843 tls"),
        ("listen=unix:/run/t.sock".to_owned(), "unix:/run/t.sock"),
    ] {
        let plan = plan(&flags(&pair.text(&format!("upstream=http://gpu {written}"))));
        assert_eq!(listeners(&plan.relay.upstreams[0]), expected);
    }
    let written = "upstream: http://gpu\nlisten_tls: {address: \"0.0.0.0:9843\", cert: @/crt, key: @/key}\n\
                   admin_tls: {address: \"0.0.0.0:9844\", cert: @/crt, key: @/key, client_ca: @/crt}\n";
    let planned = plan(&yaml(&pair.text(written)));
    assert_eq!(listeners(&planned.relay.upstreams[0]), "0.0.0.0:9843 tls");
    assert_eq!(planned.admin_tls.as_ref().unwrap().0.address, "0.0.0.0:9844".parse().unwrap());
    assert_eq!(planned.certificates.len(), 2);
    // The effective settings are an equivalent file.
    let again = plan(&yaml(&planned.effective.show(false)));
    assert_eq!(again.effective.show(false), planned.effective.show(false));
    let written = "tls_cert: @/crt\ntls_key: @/key\nupstreams:\n  - {url: \"http://a:1\", listen_tls: \"127.0.0.1:1\"}\n  \
                   - {url: \"http://b:1\", listen: \"127.0.0.1:2\"}\n  - url: \"http://c:1\"\n    \
                   listen_tls: {address: \"127.0.0.1:3\"}\n";
    let planned = plan(&yaml(&pair.text(written)));
    let shown: Vec<_> = planned.relay.upstreams.iter().map(listeners).collect();
    assert_eq!(shown, ["127.0.0.1:1 tls", "127.0.0.1:2", "127.0.0.1:3 tls"]);
}

#[test]
fn errors_of_listeners_have_place_problem_and_remedy() {
    let pair = PairFolder::new("errors");
    for (written, expected) in [
        (
            "listen_tls=0.0.0.0:9843 tls_cert=@/crt",
            "--listen-tls: `listen_tls` is set without `tls_key`, the file of its private key; set `tls_key` to a \
             PEM file",
        ),
        (
            "tls_cert=@/crt",
            "--tls-cert: `tls_cert` is set, and no listener has TLS; set `listen_tls` to an address, or remove it",
        ),
        (
            "listen_tls=0.0.0.0:9843 tls_cert=@/key tls_key=@/key",
            "--tls-cert: @/key has no certificate; name a PEM file of a certificate chain, one of its private key, and \
             one of the authorities",
        ),
        (
            "listen_tls=0.0.0.0:9843 tls_cert=@/crt tls_key=@/none",
            "--tls-key: @/none cannot be read: No such file or directory (os error 2); name a PEM file of a \
             certificate chain, one of its private key, and one of the authorities",
        ),
        (
            "listen_tls=0.0.0.0:9843 tls_cert=@/crt tls_key=@/key tls_client_ca=@/none",
            "--tls-client-ca: @/none cannot be read: No such file or directory (os error 2); name a PEM file of a \
             certificate chain, one of its private key, and one of the authorities",
        ),
        (
            "listen_tls=0.0.0.0:9464 tls_cert=@/crt tls_key=@/key",
            "--listen-tls: 0.0.0.0:9464 and 127.0.0.1:9464 use the same port; give each listener a port of its own",
        ),
        (
            "proxy_protocol=true",
            "--upstream: `proxy_protocol` is set, and no peer is trusted to send the header; list the load balancer \
             under `trusted_peers` of the tenants file",
        ),
        (
            "listen=unix:",
            "--listen: the path of the Unix socket does not end in a file name; write unix:PATH, as in \
             unix:/run/vllm.sock",
        ),
        (
            "listen=unix:/a listen_mode=rw",
            "--listen-mode: `rw` is not a mode; write octal digits, as in \"0660\"",
        ),
    ] {
        let found = errors(&flags(&pair.text(&format!("upstream=http://gpu {written}"))));
        assert_eq!(found, [pair.text(expected)]);
    }
    let found = errors(&yaml("upstream: http://gpu\nlisten_tls: {adress: \"0.0.0.0:9843\"}\n"));
    assert_eq!(found, ["t.yaml:2: `listen_tls` has no key `adress`; did you mean `address`?".to_owned()]);
}

#[test]
fn certificate_rule_without_verified_clients_is_a_warning() {
    let pair = PairFolder::new("rule");
    std::fs::write(pair.text("@/tenants.yaml"), "rules:\n  - certificate: dns\n").unwrap();
    let listener =
        "upstream=http://gpu tenants=@/tenants.yaml listen_tls=0.0.0.0:9843 tls_cert=@/crt tls_key=@/key";
    let warnings = |more: &str| plan(&flags(&pair.text(&format!("{listener}{more}")))).warnings;
    let expected = "--tenants: a `certificate` rule matches no request: no listener verifies certificates of clients; \
                    set `tls_client_ca`, or remove the rule";
    assert_eq!(warnings("").iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    assert_eq!(warnings(" tls_client_ca=@/crt"), []);
}

#[test]
fn pipe_as_a_reloaded_file_is_an_error() {
    let pair = PairFolder::new("pipe");
    let made = std::process::Command::new("mkfifo").arg(pair.text("@/pipe")).status().unwrap();
    assert!(made.success());
    for key in ["tenants", "prices", "hash_key_file"] {
        let found = errors(&flags(&pair.text(&format!("upstream=http://gpu {key}=@/pipe"))));
        let problem = "@/pipe cannot be read: it is a pipe, which cannot be read again; use a file";
        assert!(found.iter().any(|error| error.contains(&pair.text(problem))), "{key}: {found:?}");
    }
}
