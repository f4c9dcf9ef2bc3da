//! Listeners with TLS from outside: certificates that change, clients of other projects, and keys, which are found
//! nowhere.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::string::Ia5String;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::meter_page::get;
use crate::proxy::Proxy;
use crate::scripted;
use crate::tls_sides::Pki;

const REQUEST: &str =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

fn start(pki: &Pki, options: &[&str]) -> Proxy {
    let upstream = scripted::server(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec()
    });
    let (certificate, key) = (pki.path("tls.crt"), pki.path("tls.key"));
    let listen = ["--listen-tls", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
    Proxy::start(upstream, &[&listen[..], options].concat())
}

/// Sends a request; returns the response and the certificate that the proxy presented.
fn ask(proxy: &Proxy, pki: &Pki) -> (String, CertificateDer<'static>) {
    ask_with(proxy, pki.trusting()).expect("a complete response")
}

fn ask_with(proxy: &Proxy, config: Arc<ClientConfig>) -> io::Result<(String, CertificateDer<'static>)> {
    let session = ClientConnection::new(config, ServerName::from(proxy.data.ip())).expect("a session");
    let mut client = StreamOwned::new(session, TcpStream::connect(proxy.data)?);
    client.write_all(REQUEST.as_bytes())?;
    let mut response = String::new();
    client.read_to_string(&mut response)?;
    let presented = client.conn.peer_certificates().expect("a certificate")[0].clone().into_owned();
    Ok((response, presented))
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

/// Waits until the proxy presents this certificate.
fn presents(proxy: &Proxy, pki: &Pki, certificate: &str) {
    let (end, wanted) = (Instant::now() + Duration::from_secs(20), der(certificate));
    while ask(proxy, pki).1 != wanted {
        assert!(Instant::now() < end, "not presented; the log:\n{}", proxy.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn certificates_change_while_it_runs() {
    let pki = Pki::new("reload");
    let proxy = start(&pki, &[]);
    assert!(ask(&proxy, &pki).0.ends_with("\r\n\r\nhello"));
    let expiry = ("tokenmeter_certificate_expiry_timestamp_seconds", [("listener", "127.0.0.1:0")]);
    assert_eq!(proxy.page().sum(expiry.0, &expiry.1), 2_524_608_000.0);
    let next = pki.server(2021, 2051);
    pki.write("tls", &next);
    presents(&proxy, &pki, &next.0);
    assert_eq!(proxy.page().sum(expiry.0, &expiry.1), 2_556_144_000.0);

    let refused = |page: &crate::meter_page::Page| {
        page.sum("tokenmeter_config_reloads_total", &[("file", "certificate"), ("outcome", "refused")])
    };
    let success = ("tokenmeter_config_last_reload_success", [("file", "certificate")]);
    let mut seen = refused(&proxy.page());
    let (other, half) = (pki.server(2022, 2052), &next.0[..next.0.len() / 2]);
    let (expired, early) = (pki.server(2019, 2020), pki.server(2049, 2050));
    for (certificate, key, reason) in [
        (&*other.0, &*next.1, "tls.key is not the key of "),
        (half, &next.1, "tls.crt is incomplete"),
        (&expired.0, &expired.1, "tls.crt has a certificate that expired at 2020-01-01T00:00:00Z"),
        (&early.0, &early.1, "tls.crt has a certificate that is not valid before 2049-01-01T00:00:00Z"),
    ] {
        pki.replace("tls.key", key);
        pki.replace("tls.crt", certificate);
        proxy.log_line(reason);
        proxy.page_when("it is counted", |page| refused(page) > seen);
        seen = refused(&proxy.page());
        assert_eq!(ask(&proxy, &pki).1, der(&next.0), "the last valid one stays");
        assert_eq!(proxy.page().sum(success.0, &success.1), 0.0);
    }
    pki.write("tls", &other);
    presents(&proxy, &pki, &other.0);
    assert_eq!(proxy.page().sum(success.0, &success.1), 1.0);

    // No line of a key, nor of its bytes, is in what an operator can read.
    let read = format!("{}{}", proxy.log(), proxy.page().text);
    for key in [&next.1, &other.1, &expired.1, &early.1] {
        for line in key.lines().filter(|line| !line.starts_with('-')) {
            assert!(!read.contains(&line[..16.min(line.len())]), "{line}");
        }
    }
}

#[test]
fn client_certificates_are_required_and_name_tenants() {
    let pki = Pki::new("client");
    let rules = "hash_end_users: false\nrules:\n  - {certificate: uri, workload: namespace}\n  - certificate: dns\n  \
                 - certificate: email\n  - certificate: common_name\n";
    pki.replace("tenants.yaml", rules);
    let (ca, tenants) = (pki.path("ca.crt"), pki.path("tenants.yaml"));
    let proxy = start(&pki, &["--tls-client-ca", &ca, "--tenants", &tenants, "--access-log"]);
    let text = |text: &str| Ia5String::try_from(text).expect("ASCII");
    let uri = SanType::URI(text("spiffe://cluster.local/ns/team-a/sa/web"));
    let (dns, email) = (SanType::DnsName(text("team-b")), SanType::Rfc822Name(text("team-c@example.com")));
    let other = SanType::DnsName(text("other"));
    for (common_name, names, tenant) in [
        ("team-d", vec![email.clone(), dns.clone(), uri], "team-a"),
        ("team-d", vec![email.clone(), dns.clone()], "team-b"),
        ("team-d", vec![email, dns, other], "team-c@example.com"),
        ("team-d", vec![], "team-d"),
    ] {
        let client = pki.presenting(&pki.client(common_name, names));
        let (response, _) = ask_with(&proxy, client).expect("it is trusted");
        assert!(response.ends_with("hello"), "{response}");
        proxy.log_line(&format!("\"tenant\":\"{tenant}\""));
    }
    let stranger = Pki::new("stranger");
    let forged = pki.presenting(&stranger.client("team-d", vec![]));
    for refused in [pki.trusting(), forged] {
        assert!(ask_with(&proxy, refused).is_err());
    }
    proxy.page_when("both are counted", |page| {
        page.sum("tokenmeter_dropped_total", &[("what", "handshake")]) == 2.0
    });
    let page = proxy.page();
    assert_eq!(page.sum("tokenmeter_tenant_rule_total", &[("rule", "certificate")]), 4.0);
}

/// Certificates that name a tenant and are not valid, chains of any length, and fields that pretend to be certificates.
#[test]
fn hostile_client_certificates_name_no_tenant() {
    let (pki, stranger) = (Pki::new("hostile"), Pki::new("stranger"));
    pki.replace(
        "tenants.yaml",
        "rules:\n  - certificate: common_name\n  - certificate: dns\ndefault: nobody\n",
    );
    let (ca, tenants) = (pki.path("ca.crt"), pki.path("tenants.yaml"));
    let proxy = start(&pki, &["--tls-client-ca", &ca, "--tenants", &tenants, "--access-log"]);
    let named = |params: &mut CertificateParams| params.distinguished_name.push(DnType::CommonName, "victim");
    let lasts = |from, until| {
        pki.client_with(|params| {
            named(params);
            (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        })
    };
    let for_servers = pki.client_with(|params| {
        named(params);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    });
    let valid = pki.client("friend", vec![]);
    let forged = stranger.client("victim", vec![]);
    // A leaf signs another one.
    let mut issuing = CertificateParams::default();
    issuing.distinguished_name.push(DnType::CommonName, "friend");
    let leaf = Issuer::new(issuing, KeyPair::from_pem(&valid.1).expect("a key"));
    let (mut params, key) = (CertificateParams::default(), KeyPair::generate().expect("a key"));
    named(&mut params);
    let below = params.signed_by(&key, &leaf).expect("a certificate").pem();
    let authority = std::fs::read_to_string(stranger.path("ca.crt")).expect("a file");
    let chained = |first: &str, more: &str, count| format!("{first}{}", more.repeat(count));
    let attacks = [
        ("expired", lasts(2010, 2011)),
        ("early", lasts(2080, 2081)),
        ("for servers", for_servers),
        ("of another authority", forged.clone()),
        ("with its authority", (chained(&forged.0, &authority, 1), forged.1.clone())),
        ("below a leaf", (chained(&below, &valid.0, 1), key.serialize_pem())),
        ("behind a valid one", (chained(&forged.0, &valid.0, 1), forged.1.clone())),
        ("in a long chain", (chained(&forged.0, &authority, 90), forged.1.clone())),
        ("in a huge chain", (chained(&forged.0, &authority, 2_000), forged.1.clone())),
    ];
    let before = proxy.resident();
    for (name, attack) in &attacks {
        assert!(ask_with(&proxy, pki.presenting(attack)).is_err(), "{name}");
    }
    let count = attacks.len() as f64;
    proxy.page_when("all are counted", |page| {
        page.sum("tokenmeter_dropped_total", &[("what", "handshake")]) == count
    });
    assert!(proxy.resident() < before + (16 << 20), "{before} {}", proxy.resident());
    // A valid one behind which others follow is itself, and so is a name with another within.
    let long = (chained(&valid.0, &forged.0, 20), valid.1.clone());
    let odd = pki.client("friend\u{0}victim", vec![]);
    for (who, tenant) in [(&valid, "friend"), (&long, "friend"), (&odd, "nobody")] {
        assert!(
            ask_with(&proxy, pki.presenting(who)).expect("it is trusted").0.ends_with("hello"),
            "{tenant}"
        );
        proxy.log_line(&format!("\"tenant\":\"{tenant}\""));
    }
    assert!(!proxy.log().contains("\"tenant\":\"victim"));
}

#[test]
fn admin_address_is_served_with_tls() {
    let pki = Pki::new("admin");
    let (certificate, key) = (pki.path("tls.crt"), pki.path("tls.key"));
    let options = ["--admin-tls", "127.0.0.1:0", "--admin-tls-cert", &certificate, "--admin-tls-key", &key];
    let proxy = start(&pki, &options);
    let line = proxy.log_line("admin https://");
    let address = line.split("admin https://").nth(1).and_then(|rest| rest.split('/').next()).expect("it");
    let session =
        ClientConnection::new(pki.trusting(), ServerName::from(proxy.admin.ip())).expect("a session");
    let mut client = StreamOwned::new(session, TcpStream::connect(address).expect("it listens"));
    write!(client, "GET /livez HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
    let mut response = String::new();
    let _ = client.read_to_string(&mut response);
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(get(proxy.admin, "/livez").expect("the other one, too").starts_with("HTTP/1.1 200"));
    // The commands read it with the root of its certificate, which the system lacks.
    let url = format!("https://{address}");
    for (command, answer) in [
        (&["top", "--once", "--admin", &url][..], "all traffic"),
        (&["curve", "--from", &url][..], "has timed no stream yet"),
    ] {
        let said = |roots: &[&str]| {
            let arguments = [command, roots].concat();
            let output = Command::new(env!("CARGO_BIN_EXE_tokenmeter")).args(arguments).output();
            let output = output.expect("it runs");
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        };
        let trusted = said(&["--ca", &pki.path("ca.crt")]);
        assert!(trusted.contains(answer), "{trusted}");
        let untrusted = said(&[]);
        assert!(untrusted.contains("the certificate of 127.0.0.1 "), "{untrusted}");
    }
    // HTTP on the port of TLS.
    let mut plain = TcpStream::connect(address).expect("it listens");
    plain.write_all(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").expect("it reads");
    let mut refused = String::new();
    plain.read_to_string(&mut refused).expect("a response");
    assert!(refused.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{refused}");
    assert!(refused.ends_with("\r\n\r\nThis listener expects TLS: use an https URL\n"), "{refused}");
    // A connection without a byte is a probe; the two commands without the root, and the request above, are not.
    drop(TcpStream::connect(address).expect("it listens"));
    let page = proxy.page_when("failed handshakes are counted", |page| {
        page.sum("tokenmeter_dropped_total", &[("what", "admin_handshake")]) == 3.0
    });
    assert_eq!(page.text.matches("tokenmeter_certificate_expiry_timestamp_seconds{").count(), 2);
}

/// Runs a program; returns its output. Fails with the command that installs it.
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; apt-get install {program}"));
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
#[ignore = "needs curl"]
fn curl_is_served() {
    let pki = Pki::new("curl");
    let proxy = start(&pki, &[]);
    let (ca, url) = (pki.path("ca.crt"), format!("https://{}/v1/models", proxy.data));
    for (version, spoken) in [("--http1.1", "HTTP/1.1 200"), ("--http2", "HTTP/2 200")] {
        for tls in [&["--tlsv1.2", "--tls-max", "1.2"][..], &["--tlsv1.3"]] {
            let arguments = [&["-sS", "-i", "--cacert", &ca, version, &url][..], tls].concat();
            let output = run("curl", &arguments, "");
            assert!(output.starts_with(spoken) && output.ends_with("hello"), "{output}");
        }
    }
    let untrusting = run("curl", &["-sS", &url], "");
    assert!(untrusting.contains("certificate"), "{untrusting}");
    proxy.page_when("it is counted", |page| {
        page.sum("tokenmeter_dropped_total", &[("what", "handshake")]) == 1.0
    });
    let plain = run("curl", &["-sS", "-i", &url.replace("https:", "http:")], "");
    assert!(plain.starts_with("HTTP/1.1 400") && plain.contains("use an https URL"), "{plain}");
}

#[test]
#[ignore = "needs openssl"]
fn openssl_is_served() {
    let pki = Pki::new("openssl");
    let proxy = start(&pki, &[]);
    let (ca, address) = (pki.path("ca.crt"), proxy.data.to_string());
    for version in ["-tls1_2", "-tls1_3"] {
        let arguments = [
            "s_client",
            "-connect",
            &address,
            "-CAfile",
            &ca,
            version,
            "-quiet",
            "-ign_eof",
            "-verify_return_error",
        ];
        let output = run("openssl", &arguments, REQUEST);
        assert!(output.contains("HTTP/1.1 200 OK") && output.contains("hello"), "{output}");
    }
    let agreed =
        run("openssl", &["s_client", "-connect", &address, "-CAfile", &ca, "-alpn", "h2,http/1.1"], "");
    assert!(agreed.contains("ALPN protocol: h2"), "{agreed}");
    let old = run("openssl", &["s_client", "-connect", &address, "-tls1_1"], "");
    assert!(!old.contains("Cipher is TLS") && !old.contains("Protocol: TLSv1.1"), "{old}");
}
