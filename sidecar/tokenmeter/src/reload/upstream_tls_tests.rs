//! Changes of an upstream's TLS files.

use std::fs;
use std::time::Instant;

use connect::{ClientFiles, TlsFiles, Verification};
use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::folder::Folder;

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["a".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn changed_files_load_once_and_broken_files_never() {
    let folder = Folder::new("upstream-tls");
    let write = |(certificate, key): (String, String)| {
        fs::write(folder.at("crt"), certificate).unwrap();
        fs::write(folder.at("key"), key).unwrap();
    };
    write(pair());
    let client = Some(ClientFiles { cert: folder.at("crt"), key: folder.at("key") });
    let tls = Tls::read(&TlsFiles { ca: Some(folder.at("crt")), client, ..TlsFiles::default() }).unwrap();
    let mut watch = UpstreamTlsWatch::of([("gpu", &tls)].into_iter()).unwrap();
    let mut check = |urgent| {
        let mut results = Vec::new();
        watch.check(Instant::now(), urgent, &mut results);
        results.into_iter().map(|result| result.outcome.unwrap_or_else(|error| error)).collect::<Vec<_>>()
    };
    const LOADED: [&str; 1] = ["the certificates for the upstream gpu"];
    assert_eq!(check(false), LOADED);
    assert!(check(false).is_empty());
    assert_eq!(check(true), LOADED, "on request");
    write(pair());
    assert_eq!(check(false), LOADED);
    fs::write(folder.at("key"), pair().1).unwrap();
    let mismatch = format!("{} is not the key of {}", folder.at("key").display(), folder.at("crt").display());
    assert_eq!(check(false), [mismatch]);
    assert!(check(false).is_empty(), "an error is reported once");
    fs::remove_file(folder.at("crt")).unwrap();
    assert_eq!(check(false).len(), 1);
    write(pair());
    assert_eq!(check(false), LOADED);
}

#[test]
fn upstream_without_files_is_not_watched() {
    let tls = Tls::read(&TlsFiles { verification: Verification::Off, ..TlsFiles::default() }).unwrap();
    assert!(UpstreamTlsWatch::of([("gpu", &tls)].into_iter()).is_none());
}
