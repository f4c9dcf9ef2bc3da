//! Tenant rules.

use std::sync::Arc;

use rules::Hash;
use tenant::{HashKey, KeySet, Rules};

use crate::entry::entry;
use crate::handles::{TENANTS, TenantsHandle};
use crate::slice::{self, Slice, Text};
use crate::status::{Fault, Status};

/// The keys by which a `jwt` rule verifies tokens.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KeySource {
    /// The source of the keys, a file or a URL, as the rule names it. The library does not read it.
    pub name: Slice,
    /// The content of the source: a JWKS (RFC 7517). Empty: not known yet, and the rule matches no token.
    pub jwks: Slice,
}

/// Writes the names of the sources of keys that `jwt` rules need, one on each line: files and URLs as the rules name
/// them. A name with `://` is a URL. `yaml` is the content of a tenants file. `TM_STATUS_ABSENT` if no rule needs keys,
/// `TM_STATUS_TENANTS` if the rules are invalid.
///
/// # Safety
/// `yaml` points to its bytes; `names` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tenants_key_sources(yaml: Slice, names: *mut Text) -> Status {
    entry(|| {
        slice::check(names)?;
        // SAFETY: the caller's contract.
        let text = unsafe { yaml.text() }?;
        // A missing hash key is an error of `tm_tenants_read`.
        let read =
            rules::parse("tenants", text, Hash::Unreadable).map_err(|errors| wrong(errors.to_string()))?;
        let sources: Vec<_> = read.sources.iter().map(|source| &*source.name).collect();
        if sources.is_empty() {
            return Ok(Status::Absent);
        }
        if sources.iter().any(|name| name.contains('\n')) {
            return Err(wrong("the name of a file with keys has a line break".to_owned()));
        }
        // SAFETY: the caller's contract.
        unsafe { slice::write_text(names, &sources.join("\n")) }
    })
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
            let Some(at) = read.sources.iter().position(|source| *source.name == *name) else { continue };
            let source = read.sources.remove(at);
            if !jwks.is_empty() {
                let set = KeySet::read(jwks)
                    .map_err(|error| wrong(format!("the keys of `{}`: {error}", source.shown())))?;
                read.spec.set_keys(name, &set);
            }
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

/// Returns `TM_STATUS_OK` if a token needed a key that the source lacks, since the last such call: the source may have
/// changed. `TM_STATUS_ABSENT` if none did. Anyone can send such tokens: read the source again at most once a minute.
///
/// # Safety
/// `source` points to its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_tenants_key_missed(tenants: TenantsHandle, source: Slice) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let source = unsafe { source.text() }?;
        let missed = TENANTS.with(tenants.id, |rules| Ok(rules.take_missed(source)))?;
        Ok(if missed { Status::Ok } else { Status::Absent })
    })
}

/// Frees tenant rules. A meter that uses them keeps them.
#[unsafe(no_mangle)]
pub extern "C" fn tm_tenants_free(tenants: TenantsHandle) -> Status {
    entry(|| TENANTS.take(tenants.id).map(|_| Status::Ok))
}
