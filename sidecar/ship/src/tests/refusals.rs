//! Refusals of a store, and their messages, which never hold a password.

use std::time::Duration;

use super::server::{PASSWORD, Place, Server, shared, until};
use crate::{Address, Central, Plan, Reason, Shipper, Status, start};

/// A shipper of a ledger without files yet, which is no error.
fn shipper(url: &str) -> Shipper {
    let nowhere = std::env::temp_dir().join("no-such-ledger.db");
    let plan = Plan::new(&nowhere, Address::parse(url).unwrap(), "host");
    start(Plan { poll_interval: Duration::from_millis(10), retry_delay: Duration::from_millis(10), ..plan })
        .unwrap()
}

fn refused(url: &str) -> Status {
    let shipper = shipper(url);
    until("it fails twice", || shipper.status().failures.iter().sum::<u64>() >= 2);
    let status = shipper.status();
    assert!(!status.up);
    let message = status.error.clone().unwrap();
    assert!(!message.contains(PASSWORD) && !format!("{status:?}").contains(PASSWORD), "{message}");
    status
}

#[test]
#[ignore = "needs PostgreSQL"]
fn each_refusal_has_a_remedy() {
    let server = shared();
    let (fresh, full) = (server.database(), server.database());
    let mut owner = server.client(&full).unwrap();
    crate::schema::ensure(&mut owner).unwrap();
    owner.batch_execute("CREATE ROLE guest LOGIN PASSWORD 'guest'").unwrap();
    let read_only = server.database();
    owner
        .batch_execute(&format!("ALTER DATABASE {read_only} SET default_transaction_read_only = on"))
        .unwrap();
    let newer = server.database();
    let mut client = server.client(&newer).unwrap();
    crate::schema::ensure(&mut client).unwrap();
    client.batch_execute("INSERT INTO tokenmeter.version (version) VALUES (99)").unwrap();
    for (url, reason, remedy) in [
        (server.url_of("owner", "wrong", &fresh), Reason::Refused, "check the password"),
        (server.url_of("nobody", PASSWORD, &fresh), Reason::Refused, "check the password"),
        (server.url("nowhere"), Reason::Refused, "create the database"),
        (server.url_of("guest", "guest", &fresh), Reason::Refused, "let an owner of the database create it"),
        (
            server.url_of("guest", "guest", &full),
            Reason::Refused,
            "grant it as described in sidecar/ship/postgres.md",
        ),
        (server.url(&read_only), Reason::Refused, "name the primary"),
        (server.url(&newer), Reason::Refused, "upgrade tokenmeter"),
        (
            format!("postgres://owner@127.0.0.1:{}/{fresh}", server.port()),
            Reason::Refused,
            "requires a password",
        ),
        (
            format!("postgres://owner:{PASSWORD}@127.0.0.1:1/x"),
            Reason::Unreachable,
            "the central store at 127.0.0.1:1 cannot be reached: ",
        ),
        (
            format!("postgres://owner:{PASSWORD}@no-such-host.invalid/x?sslmode=disable"),
            Reason::Unreachable,
            "at no-such-host.invalid:5432 cannot be reached: ",
        ),
    ] {
        let shown = crate::redact(&url);
        let status = refused(&url);
        let message = status.error.unwrap();
        assert!(message.contains(remedy), "{shown}: {message}");
        assert!(status.failures[reason as usize] >= 2, "{shown}: {:?}", status.failures);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn store_without_a_schema_gives_no_report() {
    let url = shared().url(&shared().database());
    let error = Central::open(&Address::parse(&url).unwrap()).unwrap_err();
    assert!(error.message.contains("no tokenmeter has shipped there"), "{error}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tls_requires_a_verified_server_name() {
    let server: &Server = shared();
    let database = server.database();
    let certificate = server.directory().join("server.crt");
    // The directory is postgres's; a certificate is for everybody.
    let place = Place::new().unwrap();
    let copy = place.path("root.crt");
    std::fs::copy(certificate, &copy).unwrap();
    let url = |host: &str, query: &str| {
        format!("postgres://owner:{PASSWORD}@{host}:{}/{database}?{query}", server.port())
    };
    let trusted = format!("sslmode=verify-full&sslrootcert={}", copy.display());
    let address = Address::parse(&url("localhost", &trusted)).unwrap();
    let mut client = crate::connect::connect(&address).unwrap();
    let row = client.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).unwrap();
    assert!(row.get::<_, bool>(0));
    for (host, query) in [
        ("localhost", "sslmode=require"),
        ("127.0.0.1", &*trusted),
        ("localhost", "sslmode=require&sslrootcert=/nowhere.crt"),
    ] {
        let status = refused(&url(host, query));
        assert!(status.failures[Reason::Refused as usize] >= 2, "{query}: {status:?}");
        let message = status.error.unwrap();
        assert!(message.contains("sslrootcert"), "{query}: {message}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn unix_socket_needs_no_tls() {
    let server = shared();
    let url = format!(
        "postgres:///{}?host={}&port={}&user=owner",
        server.database(),
        server.directory().display(),
        server.port()
    );
    let address = Address::parse(&url).unwrap().with_password(PASSWORD);
    crate::connect::connect(&address).unwrap();
}
