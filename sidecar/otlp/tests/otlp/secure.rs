//! TLS: trusted roots and client certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use otlp::{ClientCertificate, Plan, Protocol};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::collector::{Answer, Collector};
use crate::exchanges::{chat, finished};
use crate::plans::{self, BOTH, LONG};

/// A certificate authority with its files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Drop for Authority {
    fn drop(&mut self) {
        // Remaining files are in the build folder.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self { issuer, directory }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn root(&self) -> PathBuf {
        self.file("root.pem", &self.issuer.pem())
    }

    fn client(&self) -> ClientCertificate {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["tokenmeter".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ClientCertificate {
            certificate: self.file("client.pem", &certificate.pem()),
            key: self.file("client.key", &key.serialize_pem()),
        }
    }

    /// Starts a collector at 127.0.0.1 with a certificate of this authority, which may require client certificates of
    /// another.
    fn collector(&self, client_authority: Option<&Self>) -> Collector {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Collector::start(Some(config), |_| Answer::Taken)
    }
}

fn plan(protocol: Protocol, collector: &Collector) -> Plan {
    let mut plan = plans::spans(protocol, collector.address);
    let queued = plan.spans.as_mut().unwrap();
    let path = if protocol == Protocol::Http { "v1/traces" } else { "" };
    queued.target.uri = format!("https://{}/{path}", collector.address).parse().unwrap();
    // One attempt, so that a rejected client ends soon.
    queued.within = Duration::from_secs(2);
    plan
}

/// Returns the number of received spans, of the two of an exchange.
fn arrived(plan: Plan) -> u64 {
    let exporter = plans::start(plan);
    exporter.submit(finished(chat()));
    let counts = exporter.shutdown(LONG).spans;
    assert_eq!((counts.made, counts.sent + counts.dropped_unreachable), (2, 2));
    counts.sent
}

#[test]
fn collector_is_trusted_only_with_its_root() {
    for protocol in BOTH {
        let (ours, others) = (Authority::new("file"), Authority::new("file-others"));
        let collector = ours.collector(None);
        let mut plan = plan(protocol, &collector);
        plan.spans.as_mut().unwrap().target.certificate = Some(ours.root());
        assert_eq!(arrived(plan.clone()), 2, "{protocol:?}");
        plan.spans.as_mut().unwrap().target.certificate = Some(others.root());
        assert_eq!(arrived(plan), 0, "{protocol:?}");
        assert_eq!(collector.seen().spans().len(), 2);
    }
}

#[test]
fn collector_that_requires_client_certificate_gets_it() {
    for protocol in BOTH {
        let (ours, others) = (Authority::new("client"), Authority::new("client-others"));
        let collector = ours.collector(Some(&ours));
        let mut plan = plan(protocol, &collector);
        plan.spans.as_mut().unwrap().target.certificate = Some(ours.root());
        assert_eq!(arrived(plan.clone()), 0, "without a certificate: {protocol:?}");
        plan.spans.as_mut().unwrap().target.client = Some(others.client());
        assert_eq!(arrived(plan.clone()), 0, "with one of another authority: {protocol:?}");
        plan.spans.as_mut().unwrap().target.client = Some(ours.client());
        assert_eq!(arrived(plan), 2, "with the right one: {protocol:?}");
    }
}

#[test]
fn invalid_certificate_file_is_named_at_start() {
    let authority = Authority::new("bad");
    let collector = authority.collector(None);
    for text in ["", "not a certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let mut plan = plan(Protocol::Http, &collector);
        let file = authority.file("bad.pem", text);
        plan.spans.as_mut().unwrap().target.certificate = Some(file);
        let error = otlp::start(plan, Box::new(plans::empty)).unwrap_err().to_string();
        assert!(error.contains("bad.pem"), "{error}");
    }
}
