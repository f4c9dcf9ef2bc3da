//! The label values of the resources that clients share.

/// Label value of `what` of `tokenmeter_dropped_total` for an evicted connection to the admin address.
pub const ADMIN_CONNECTION: &str = "admin_connection";
