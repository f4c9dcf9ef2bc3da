//! The sides of the proxy that have TLS in this run of the tests of the relay and of the process.
//!
//! `TOKENMETER_TEST_TLS` in the environment is `clients`, `upstreams` or `both`. The calls of [`Side::excludes`] list the
//! tests that cannot run with TLS, each with its reason.

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The connections of clients.
    Clients,
    /// The connections to upstreams.
    Upstreams,
}

impl Side {
    /// Returns true if it has TLS in this run.
    ///
    /// # Panics
    /// If the variable has another value.
    #[must_use]
    pub fn has_tls(self) -> bool {
        match std::env::var("TOKENMETER_TEST_TLS").as_deref() {
            Err(_) => false,
            Ok("clients") => self == Self::Clients,
            Ok("upstreams") => self == Self::Upstreams,
            Ok("both") => true,
            Ok(other) => panic!("TOKENMETER_TEST_TLS={other}: expected clients, upstreams or both"),
        }
    }

    /// Returns true, and prints the reason why the calling test cannot run with TLS, if this side has TLS in this run.
    #[must_use]
    pub fn excludes(self, reason: &str) -> bool {
        let excludes = self.has_tls();
        if excludes {
            println!("not with TLS of {self:?}: {reason}");
        }
        excludes
    }
}
