//! The wires between which a test runs: the protocols of the client and of the upstream, and TLS. The [`table`] of a file
//! has its tests, each with the wires on which it has a meaning. The name of a run has the test and the wires:
//! `test::h2_h1_tls` is that with an HTTP/2 client, an HTTP/1.1 upstream, and TLS on both sides.

use std::cell::Cell;

use chance::Side;
use connect::Protocol;

/// The protocols on both sides of a proxy, and TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wires {
    /// Such as `h2_h1_tls`.
    pub(crate) name: &'static str,
    pub(crate) client: Protocol,
    pub(crate) upstream: Protocol,
    /// True if both sides have TLS. An HTTP/2 upstream always has it.
    has_tls: bool,
}

thread_local! {
    /// The wires of the test that runs in this thread; the default is for tests that are in no table.
    static CURRENT: Cell<Wires> =
        const { Cell::new(Wires { name: "h1_h1", client: Protocol::Http1, upstream: Protocol::Http1, has_tls: false }) };
}

impl Wires {
    /// The wires of the test that runs in this thread.
    pub(crate) fn current() -> Self {
        CURRENT.get()
    }

    /// The wires of a name, such as `h2_h1_tls`.
    pub(crate) fn of_name(name: &'static str) -> Self {
        let protocol = |at: usize| match &name[at..at + 2] {
            "h1" => Protocol::Http1,
            "h2" => Protocol::Http2,
            other => panic!("{other} is not a protocol"),
        };
        Self { name, client: protocol(0), upstream: protocol(3), has_tls: name.ends_with("_tls") }
    }

    /// Runs a test between these wires.
    pub(crate) fn run(self, test: fn()) {
        CURRENT.set(self);
        test();
    }

    /// Returns true if the client uses TLS.
    pub(crate) fn has_client_tls(self) -> bool {
        self.has_tls || Side::Clients.has_tls()
    }

    /// Returns true if the upstream has TLS.
    pub(crate) fn has_upstream_tls(self) -> bool {
        self.has_tls || self.upstream == Protocol::Http2 || Side::Upstreams.has_tls()
    }

    /// Returns true if HTTP/2 is on a side: it has one spelling of names, and no reason phrases.
    pub(crate) fn has_http2(self) -> bool {
        self.client == Protocol::Http2 || self.upstream == Protocol::Http2
    }
}

/// The tests of a file, in groups. A group begins with the set of its wires:
///
/// - `all`: the four pairs, and HTTP/1.1 with TLS; in a long run all eight rows
/// - `main`: HTTP/1.1 on both sides; in a long run all eight rows
///
/// and, with the reason for which the other wires are excluded:
///
/// - `http1_clients`, `http1_upstreams`, `http2_clients`, `http2_upstreams`: the rows of `all` with this protocol on this side
/// - `http1`: those of one pair
/// - `cleartext`: HTTP/1.1 on both sides, without TLS
///
/// Tests of a `slow` group wait for seconds: before a long run they have one row only, and `cargo test` has them with
/// `--include-ignored` only.
macro_rules! table {
    ($($set:tt: $($test:ident),+;)+) => {$($(
        mod $test {
            use super::$test as test;
            crate::support::wires::rows! { $set }
        }
    )+)+};
}

/// The rows of a test in each set: those of an ordinary run, then those of a long run only.
macro_rules! rows {
    ((all $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h1_h1 h1_h1_tls h2_h1 h1_h2 h2_h2; h2_h1_tls h1_h2_tls h2_h2_tls } };
    ((main $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h1_h1; h1_h1_tls h2_h1 h1_h2 h2_h2 h2_h1_tls h1_h2_tls h2_h2_tls } };
    ((http1_clients $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h1_h1 h1_h1_tls h1_h2; h1_h2_tls } };
    ((http1_upstreams $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h1_h1 h1_h1_tls h2_h1; h2_h1_tls } };
    ((http1 $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*] h1_h1 h1_h1_tls; } };
    ((http2_clients $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h2_h1 h2_h1_tls h2_h2; h2_h2_tls } };
    ((http2_upstreams $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*]
        h1_h2 h1_h2_tls h2_h2; h2_h2_tls } };
    ((cleartext $($more:tt)*)) => { crate::support::wires::rows! { [$($more)*] h1_h1; } };
    ([$(, $reason:literal)?] $($row:ident)+; $($long:ident)*) => {
        $(crate::support::wires::row! { $row })+
        crate::support::wires::long! { $($long)* }
    };
    ([, slow $(, $reason:literal)?] $first:ident $($row:ident)*; $($long:ident)*) => {
        crate::support::wires::row! { $first "waits for seconds" }
        crate::support::wires::long! { $($row)* $($long)* }
    };
}

/// The rows of a long run only.
macro_rules! long {
    () => {};
    ($($row:ident)+) => {
        mod long {
            use super::test;
            $(crate::support::wires::row! { $row "in a long run" })+
        }
    };
}

/// One run of a test.
macro_rules! row {
    ($row:ident $($ignored:literal)?) => {
        #[test]
        $(#[ignore = $ignored])?
        fn $row() {
            crate::support::wires::Wires::of_name(stringify!($row)).run(test);
        }
    };
}

pub(crate) use {long, row, rows, table};
