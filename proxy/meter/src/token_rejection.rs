//! The reasons for which a tenant's token is rejected.

scan::listed_enum! {
    /// The reason a token was rejected, in the order of the checks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum TokenRejection {
        /// A part of it is malformed, or it has `crit`.
        Malformed = "malformed",
        /// Its algorithm is not allowed, or is `none`.
        Algorithm = "algorithm",
        /// There is no key with its id, or no key yet.
        UnknownKey = "unknown_key",
        /// No key verifies its signature.
        Signature = "signature",
        /// Its issuer is not allowed.
        Issuer = "issuer",
        /// Its audience is not allowed.
        Audience = "audience",
        /// It has no `exp`, or an invalid time.
        Times = "times",
        /// Its tenant claim is missing, or cannot be a name.
        Tenant = "tenant",
        /// It is not valid yet.
        Early = "early",
        /// It has expired.
        Expired = "expired",
    }
    /// The label value.
    pub fn name(self);
}
