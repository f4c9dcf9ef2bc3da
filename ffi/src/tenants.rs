//! Tenant rules.

use crate::entry::entry;
use crate::handles::{TENANTS, TenantsHandle};
use crate::status::Status;

/// Frees tenant rules. Meters that have them keep them.
///
/// Thread safety: any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tenants_free(tenants: TenantsHandle) -> Status {
    entry(|| TENANTS.take(tenants.id).map(|_| Status::Ok))
}
