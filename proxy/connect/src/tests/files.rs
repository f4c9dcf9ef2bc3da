//! Errors of PEM files: each names its file and its part, and quotes nothing.

use std::path::Path;

use rcgen::KeyPair;

use super::authority::{Authority, own};
use crate::{ClientFiles, Tls, TlsError, TlsFiles};

#[test]
fn unusable_ca_is_named() {
    let authority = Authority::new();
    let ca = std::fs::read_to_string(authority.files().ca.unwrap()).unwrap();
    let half = &ca[..ca.len() / 2];
    let not_der = "-----BEGIN CERTIFICATE-----\nQUJDRA==\n-----END CERTIFICATE-----\n";
    for (text, problem) in [
        (half, "is incomplete: a BEGIN line has no END line"),
        ("", "has no certificate"),
        ("hello", "has no certificate"),
        (not_der, "has an invalid certificate (number 1)"),
        (&format!("{ca}{not_der}"), "has an invalid certificate (number 2)"),
        (&ca.replace("MII", "!!!"), "has a certificate that is not base64"),
    ] {
        let file = authority.folder().file("bad.pem", text);
        let error = Tls::read(&TlsFiles { ca: Some(file.clone()), ..TlsFiles::default() }).unwrap_err();
        let TlsError::Ca(error) = error else { panic!("{error:?}") };
        assert_eq!((error.file, error.problem.as_str()), (file, problem));
    }
    let missing = TlsFiles { ca: Some("/nonexistent/ca.pem".into()), ..TlsFiles::default() };
    let error = Tls::read(&missing).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/ca.pem cannot be read: "), "{error}");
}

#[test]
fn unusable_client_files_are_named() {
    let authority = Authority::new();
    let identity = authority.sign(own(&["client"]));
    let cert = authority.folder().file("cert.pem", &identity.pem);
    let key_text = identity.key.serialize_pem();
    let key = authority.folder().file("key.pem", &key_text);
    let read = |cert: &Path, key: &Path| {
        let client = ClientFiles { cert: cert.to_owned(), key: key.to_owned() };
        Tls::read(&TlsFiles { client: Some(client), ..authority.files() }).map(drop)
    };
    read(&cert, &key).unwrap();

    let other = authority.folder().file("other.pem", &KeyPair::generate().unwrap().serialize_pem());
    let Err(TlsError::Key(error)) = read(&cert, &other) else { panic!("another key") };
    assert!(error.to_string().ends_with(&format!("is not the key of {}", cert.display())), "{error}");

    let half = authority.folder().file("half.pem", &key_text[..key_text.len() / 2]);
    let Err(TlsError::Key(error)) = read(&cert, &half) else { panic!("half a key") };
    assert_eq!(error.problem, "is incomplete: a BEGIN line has no END line");

    let Err(TlsError::Key(error)) = read(&cert, &cert) else { panic!("no key") };
    assert_eq!(error.problem, "has no private key; one with a passphrase cannot be used");
    let Err(TlsError::Cert(error)) = read(&key, &key) else { panic!("no certificate") };
    assert_eq!(error.problem, "has no certificate");
}

#[test]
fn invalid_server_name_is_named() {
    let authority = Authority::new();
    let files = TlsFiles { server_name: Some("a b".to_owned()), ..authority.files() };
    assert_eq!(Tls::read(&files).unwrap_err(), TlsError::ServerName("a b".to_owned()));
}
