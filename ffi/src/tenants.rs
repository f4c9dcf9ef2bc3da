//! Tenant rules.

use std::sync::Arc;

use rules::Hash;
use tenant::{HashKey, KeySet, Rules};

use crate::entry::entry;
use crate::handles::{TENANTS, TenantsHandle};
use crate::slice::{self, Slice};
use crate::status::{Fault, Status};

/// The keys by which a `jwt` rule verifies tokens.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KeySource {
    /// The source of the keys, a file or a URL, as the rule names it. The library does not read it.
    pub name: Slice,
    /// The content of the source: a JWKS (RFC 7517).
    pub jwks: Slice,
}

/// Reads tenant rules from the content of a tenants file, in YAML (proxy/tenant/tenants.md describes it). `hash_key` is
/// the content of the hash key file, at least 32 bytes, for rules that hash; it may be empty for others. `keys` has the
/// content of each source of keys that the rules name. `TM_STATUS_TENANTS` if anything is invalid or missing: the
/// message lists all errors of the rules with their lines, or the first error of the keys.
///
/// # Safety
/// `yaml` and `hash_key` point to their bytes, `keys` to `keys_count` elements and each to its bytes; `tenants` is NULL
/// or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tenants_read(
    yaml: Slice,
    hash_key: Slice,
    keys: *const KeySource,
    keys_count: usize,
    tenants: *mut TenantsHandle,
) -> Status {
    entry(|| {
        slice::check(tenants)?;
        // SAFETY: the caller's contract.
        let (text, hash_key) = unsafe { (yaml.text()?, hash_key.bytes()?) };
        let hash = match hash_key {
            [] => Hash::None,
            key => Hash::Key(HashKey::of(key).map_err(|weak| {
                wrong(format!("the hash key has {} bytes; give at least 32 random ones", weak.bytes))
            })?),
        };
        let mut read = rules::parse("tenants", text, hash).map_err(|errors| wrong(errors.to_string()))?;
        // SAFETY: the caller's contract.
        for source in unsafe { slice::array(keys, keys_count) }? {
            // SAFETY: the caller's contract.
            let (name, jwks) = unsafe { (source.name.text()?, source.jwks.bytes()?) };
            let set = KeySet::read(jwks).map_err(|error| wrong(format!("the keys of `{name}`: {error}")))?;
            read.spec.set_keys(name, &set);
            read.sources.retain(|source| *source.name != *name);
        }
        if let Some(missing) = read.sources.first() {
            return Err(wrong(format!(
                "a rule needs the keys of `{}`: give them as `keys`",
                missing.shown()
            )));
        }
        let id = TENANTS.insert(Arc::new(Rules::new(read.spec)))?;
        // SAFETY: the caller's contract.
        unsafe { slice::write(tenants, TenantsHandle { id }) }?;
        Ok(Status::Ok)
    })
}

fn wrong(message: String) -> Fault {
    Fault::new(Status::Tenants, message)
}

/// Frees tenant rules. A meter that uses them keeps them.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tenants_free(tenants: TenantsHandle) -> Status {
    entry(|| TENANTS.take(tenants.id).map(|_| Status::Ok))
}
