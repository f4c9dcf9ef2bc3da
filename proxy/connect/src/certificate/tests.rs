//! Reloads of a listener's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection};

use super::{Files, Paths};

/// A folder with a pair of files; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("certificate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn paths(&self) -> Paths {
        Paths { certificate: self.0.join("tls.crt"), key: self.0.join("tls.key"), client_ca: None }
    }

    fn files(&self) -> Files {
        Files::new(self.paths(), &["h2"])
    }

    /// Writes files in place, each if it is given.
    fn write(&self, certificate: Option<&str>, key: Option<&str>) {
        for (name, content) in [("tls.crt", certificate), ("tls.key", key)] {
            if let Some(content) = content {
                fs::write(self.0.join(name), content).unwrap();
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a certificate that is valid from one year to another, and its key.
fn pair(from: i32, until: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["proxy.test".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// 2026-01-01.
const NOW: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(1_767_225_600));

/// Asserts that the change is refused with this reason, once.
fn refused(files: &mut Files, reason: &str) {
    let error = files.changed(NOW).expect("a change").unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
    assert!(files.changed(NOW).is_none(), "reported twice");
}

#[test]
fn changed_pair_is_loaded_once() {
    let folder = Folder::new("changed");
    let (certificate, key) = pair(2020, 2030);
    folder.write(Some(&certificate), Some(&key));
    let mut files = folder.files();
    let first = files.load().unwrap();
    assert_eq!(first.validity.until_unix_s, 1_893_456_000);
    assert_eq!(first.tls.alpn_protocols, [b"h2"]);
    assert!(files.changed(NOW).is_none());
    let (certificate, key) = pair(2020, 2031);
    folder.write(Some(&certificate), Some(&key));
    assert_eq!(files.changed(NOW).unwrap().unwrap().validity.until_unix_s, 1_924_992_000);
    assert!(files.changed(NOW).is_none());
}

/// As Kubernetes replaces the files of a Secret: a symlink to a folder of the files.
#[test]
fn symlink_swap_is_a_change() {
    let folder = Folder::new("symlink");
    let swap = |name: &str, until| {
        let (certificate, key) = pair(2020, until);
        let data = folder.0.join(name);
        fs::create_dir(&data).unwrap();
        fs::write(data.join("tls.crt"), certificate).unwrap();
        fs::write(data.join("tls.key"), key).unwrap();
        std::os::unix::fs::symlink(name, folder.0.join("..new")).unwrap();
        fs::rename(folder.0.join("..new"), folder.0.join("..data")).unwrap();
    };
    swap("one", 2030);
    for name in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(Path::new("..data").join(name), folder.0.join(name)).unwrap();
    }
    let mut files = folder.files();
    files.load().unwrap();
    swap("two", 2031);
    assert_eq!(files.changed(NOW).unwrap().unwrap().validity.until_unix_s, 1_924_992_000);
}

#[test]
fn unusable_pair_is_refused_with_file_and_reason() {
    let folder = Folder::new("unusable");
    let (certificate, key) = pair(2020, 2030);
    folder.write(Some(&certificate), Some(&key));
    let mut files = folder.files();
    files.load().unwrap();
    let (other, other_key) = pair(2020, 2030);
    folder.write(Some(&other), None);
    refused(&mut files, "tls.key is not the key of ");
    folder.write(Some(&other[..other.len() / 2]), Some(&other_key));
    refused(&mut files, "tls.crt is incomplete");
    folder.write(Some(&other), Some(&other_key[..other_key.len() / 2]));
    refused(&mut files, "tls.key is incomplete");
    folder.write(Some(""), None);
    refused(&mut files, "tls.crt has no certificate");
    folder.write(Some(&other), Some(&other));
    refused(&mut files, "tls.key has no private key");
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    folder.write(Some(damaged), Some(&other_key));
    refused(&mut files, "tls.crt has an invalid certificate (number 1)");
    fs::remove_file(folder.0.join("tls.key")).unwrap();
    refused(&mut files, "tls.key cannot be read: No such file");
    assert!(Command::new("mkfifo").arg(folder.0.join("tls.key")).status().unwrap().success());
    assert!(folder.files().load().unwrap_err().to_string().contains("tls.key is a pipe"));
    fs::remove_file(folder.0.join("tls.key")).unwrap();
    folder.write(Some(&other), Some(&other_key));
    assert!(files.changed(NOW).unwrap().is_ok());
}

#[test]
fn expired_pair_is_refused_by_a_reload_only() {
    let folder = Folder::new("expired");
    let (certificate, key) = pair(2020, 2025);
    folder.write(Some(&certificate), Some(&key));
    let mut files = folder.files();
    assert_eq!(
        files.load().unwrap().warning(NOW).unwrap(),
        "the certificate expired at 2025-01-01T00:00:00Z"
    );
    let (certificate, key) = pair(2019, 2024);
    folder.write(Some(&certificate), Some(&key));
    refused(&mut files, "tls.crt has a certificate that expired at 2024-01-01T00:00:00Z");
}

#[test]
fn early_pair_is_loaded_when_it_becomes_valid() {
    let folder = Folder::new("early");
    let (certificate, key) = pair(2020, 2030);
    folder.write(Some(&certificate), Some(&key));
    let mut files = folder.files();
    files.load().unwrap();
    let (certificate, key) = pair(2027, 2031);
    folder.write(Some(&certificate), Some(&key));
    refused(&mut files, "tls.crt has a certificate that is not valid before 2027-01-01T00:00:00Z");
    let next_year = UnixTime::since_unix_epoch(Duration::from_secs(NOW.as_secs() + 366 * 86_400));
    assert!(files.changed(next_year).unwrap().is_ok());
}

/// A key on one line, as a wrong template writes it, is quoted by parsers.
#[test]
fn errors_quote_no_key() {
    let folder = Folder::new("quote");
    let (certificate, key) = pair(2020, 2030);
    let secret: String = key.lines().nth(1).unwrap().to_owned();
    for damaged in [key.replace('\n', ""), key.replace("-----\n", ""), key.replacen("-----\n", "----", 1)] {
        folder.write(Some(&certificate), Some(&damaged));
        let error = folder.files().load().unwrap_err().to_string();
        assert!(!error.contains(&secret[..8]) && error.len() < 300, "{error}");
        folder.write(Some(&damaged), Some(&damaged));
        let error = folder.files().load().unwrap_err().to_string();
        let bytes = format!("{:?}", &secret.as_bytes()[..8]);
        let bytes = bytes.trim_matches(['[', ']']);
        assert!(!error.contains(&secret[..8]) && !error.contains(bytes), "{error}");
    }
}

/// A resumed session would keep a client after the expiry of its certificate.
#[test]
fn sessions_with_client_certificates_are_not_resumed() {
    let folder = Folder::new("resumed");
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["proxy.test".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(params, authority_key)).unwrap();
    folder.write(Some(&leaf.pem()), Some(&key.serialize_pem()));
    fs::write(folder.0.join("ca.crt"), authority.pem()).unwrap();
    for (client_ca, second) in
        [(None, HandshakeKind::Resumed), (Some(folder.0.join("ca.crt")), HandshakeKind::Full)]
    {
        let paths = Paths { client_ca, ..folder.paths() };
        let server = Files::new(paths, &["h2"]).load().unwrap().tls;
        for version in [&TLS12, &TLS13] {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let mut client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_client_auth_cert(
                    vec![leaf.der().clone()],
                    PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
                )
                .unwrap();
            client.alpn_protocols = vec![b"h2".to_vec()];
            let client = Arc::new(client);
            assert_eq!(handshake(&client, &server), HandshakeKind::Full, "{version:?}");
            assert_eq!(handshake(&client, &server), second, "{version:?}");
        }
    }
}

/// Makes a session without a network.
fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> HandshakeKind {
    let name = ServerName::try_from("proxy.test").unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    while client.wants_write() || server.wants_write() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &wire[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    server.handshake_kind().unwrap()
}
