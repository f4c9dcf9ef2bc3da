//! URLs: parsing, refusals, and passwords that are never shown.

use postgres::config::SslMode;

use super::{Address, redact};

#[test]
fn network_connection_is_encrypted_by_default() {
    for (url, mode) in [
        ("postgres://u@db.example/x", SslMode::Require),
        ("postgres://u@10.1.2.3:6432/x", SslMode::Require),
        ("postgresql://u@db.example/x?sslmode=verify-full", SslMode::Require),
        ("postgres://u@db.example/x?sslmode=require", SslMode::Require),
        ("postgres://u@db.example/x?sslmode=disable", SslMode::Disable),
        ("postgres://u@127.0.0.1/x", SslMode::Disable),
        ("postgres://u@localhost/x", SslMode::Disable),
        ("postgres://u@localhost/x?sslmode=require", SslMode::Require),
        ("postgres:///x?host=/run/postgresql&user=u", SslMode::Disable),
        ("postgres://u@localhost,db.example/x", SslMode::Require),
        ("postgres://u@localhost/x?hostaddr=10.0.0.5", SslMode::Require),
        ("postgres://u@localhost,localhost/x?hostaddr=127.0.0.1,10.0.0.5", SslMode::Require),
        ("postgres:///x?host=/run/postgresql&hostaddr=10.0.0.5&user=u", SslMode::Require),
        ("postgres://u@db.example/x?hostaddr=127.0.0.1", SslMode::Require),
        ("postgres://u@localhost/x?hostaddr=10.0.0.5&sslmode=disable", SslMode::Disable),
        ("postgres://u@localhost/x?hostaddr=127.0.0.1", SslMode::Disable),
        ("postgres://u@localhost/x?hostaddr=::1", SslMode::Disable),
    ] {
        let address = Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(address.config.get_ssl_mode(), mode, "{url}");
    }
}

#[test]
fn invalid_url_is_refused_with_a_remedy() {
    for (url, reason) in [
        ("http://u@h/x", "not a PostgreSQL URL"),
        ("ledger.db", "not a PostgreSQL URL"),
        ("postgres:///x", "names no host"),
        ("postgres://u@h/x?sslmode=prefer", "certificate is always verified"),
        ("postgres://u@h/x?sslmode=verify-ca", "certificate is always verified"),
        ("postgres://u:p@h:port/x", "cannot be read"),
        ("postgres://u@h/x?colour=red", "cannot be read"),
    ] {
        let error = Address::parse(url).expect_err(url);
        assert!(error.contains(reason), "{url}: {error}");
    }
}

#[test]
fn password_is_never_shown() {
    for url in [
        "postgres://user:hunter2@db.example:6432/spend?sslmode=disable",
        "postgres://user:hunter2@db.example",
        "postgres://user:hunter2/x@db.example/y",
        "postgres://user:a@hunter2@db.example/y",
        "postgres://user:a?hunter2@db.example/y",
        "postgres://user:a/b?hunter2@db.example/y?x=1",
        "postgres://db.example/x?user=u&password=hunter2",
        "postgres://db.example/x?user=u&password=a@hunter2",
        "postgres://db.example/x?options=hunter2",
        "postgres://:hunter2@/x",
        "postgres://user:hunter2@db.example:port/x",
        "host=db password=hunter2",
    ] {
        let shown = redact(url);
        assert!(!shown.contains("hunter2"), "{url} is shown as {shown}");
        match Address::parse(url) {
            Ok(address) => {
                let shown = format!("{address} {address:?}");
                assert!(!shown.contains("hunter2"), "{url} is shown as {shown}");
            }
            Err(error) => assert!(!error.contains("hunter2"), "{url}: {error}"),
        }
    }
    assert_eq!(
        redact("postgres://user:x@db.example:6432/spend?sslmode=disable"),
        "postgres://user:***@db.example:6432/spend?sslmode=disable"
    );
    for shown in [
        "postgres://db.example/spend",
        "postgres://meter@db.example/spend",
        "postgres://meter@db.example:6432/spend?sslmode=disable",
    ] {
        assert_eq!(redact(shown), shown, "there is no password in it");
    }
}

#[test]
fn password_file_is_read_as_libpq_reads_it() {
    let address = Address::parse("postgres://me@db.example:6432/spend?passfile=/run/a%20b").unwrap();
    assert_eq!(address.passwords().unwrap().to_str(), Some("/run/a b"));
    assert!(!address.has_password());
    for (lines, password) in [
        ("db.example:6432:spend:me:one", Some("one")),
        ("#db.example:6432:spend:me:no\n*:*:*:me:two", Some("two")),
        ("other:*:*:*:no\n*:*:*:*:three", Some("three")),
        ("*:*:*:*:with:colons\\\\and\\:escapes", Some("with:colons\\and:escapes")),
        ("db.example:5432:spend:me:no", None),
        ("db.example:6432:spend:you:no", None),
        ("nonsense", None),
        ("", None),
    ] {
        assert_eq!(address.find_password(lines).as_deref(), password, "{lines}");
    }
}
