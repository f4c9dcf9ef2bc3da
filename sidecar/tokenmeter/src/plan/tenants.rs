//! The tenants file: YAML, read into the rules that the data plane asks. Every mistake has its line,
//! and all are told at once. The format is described in proxy/tenant/tenants.md, whose example is
//! read by a test.
//!
//! Law 11: an API key that was written where its hash belongs is not repeated in the mistake.

mod reading;
mod rule;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenant::{EndUser, HashKey, KeySet, Name, Spec};

use crate::file::{self, Node, Shape};
use crate::mistake::{Mistake, Mistakes};
use crate::origin::Origin;
use crate::plan::values::Reader;

use reading::Reading;

/// Bytes of a tenants file: ten thousand API keys are two megabytes.
pub(crate) const TENANTS_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of a hash key file, of which 32 do.
pub(crate) const HASH_KEY_BYTES: u64 = 64 * 1024;

/// Bytes of a set of published keys. Those with certificates in them have some ten thousand.
pub(crate) const JWKS_BYTES: u64 = 512 * 1024;

/// The files that tenants are told by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantFiles {
    /// The rules; without them everything is the tenant `default`.
    pub rules: Option<PathBuf>,
    /// What hashes are keyed with.
    pub hash_key: Option<PathBuf>,
}

/// What a tenants file says.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    /// The rules; those about tokens have the keys that files gave, and none yet of a URL's.
    pub spec: Spec,
    /// Where keys come from, each once.
    pub sources: Vec<KeySource>,
    /// What runs, but probably not as meant.
    pub warnings: Vec<Mistake>,
}

/// Where published keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource {
    /// As the rules name it.
    pub name: Arc<str>,
    /// Where that is.
    pub place: Place,
    /// Where it was written.
    pub origin: Origin,
}

impl KeySource {
    /// Its name for people: without a query, which may hold a secret.
    pub(crate) fn shown(&self) -> &str {
        match self.place {
            Place::File(_) => &self.name,
            Place::Url(_) => self.name.split(['?', '#']).next().unwrap_or_default(),
        }
    }
}

/// A place keys are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A URL, asked by GET.
    Url(String),
}

/// The tenants of a start: what is in force, and the files that may change it later.
#[derive(Clone, Debug, Default)]
pub struct Tenancy {
    /// The files.
    pub files: TenantFiles,
    /// What they say now.
    pub now: Tenants,
}

impl Reader<'_> {
    /// Reads the tenants file and what it needs, if there is one.
    pub(super) fn tenants(&mut self) -> Tenancy {
        let (rules, hash_key) = (self.value("tenants"), self.value("hash_key_file"));
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        let files = TenantFiles { rules: path(&rules.text), hash_key: path(&hash_key.text) };
        if let Some(warning) = files.hash_key.as_deref().and_then(|path| open_to_all(path, &hash_key.origin))
        {
            self.warnings.push(warning);
        }
        match load(&files, (&rules.origin, &hash_key.origin)) {
            Ok(now) => {
                self.warnings.extend(now.warnings.iter().cloned());
                Tenancy { files, now }
            }
            Err(mistakes) => {
                self.mistakes.extend(mistakes.0);
                Tenancy { files, now: Tenants::default() }
            }
        }
    }
}

/// Reads the files as they are now, those with keys included; `origins` say where each of the two
/// was named.
pub(crate) fn load(files: &TenantFiles, origins: (&Origin, &Origin)) -> Result<Tenants, Mistakes> {
    gather(files, origins, true)
}

/// Reads the tenants file and the hash key file as they are now, and no keys.
pub(crate) fn load_rules(files: &TenantFiles, origins: (&Origin, &Origin)) -> Result<Tenants, Mistakes> {
    gather(files, origins, false)
}

fn gather(files: &TenantFiles, origins: (&Origin, &Origin), keys: bool) -> Result<Tenants, Mistakes> {
    let mut mistakes = Vec::new();
    let hash = files.hash_key.as_deref().and_then(|path| match hash_key(path) {
        Ok(key) => Some(key),
        Err(what) => {
            let remedy = "name a file of 32 random bytes or more, as `head -c 32 /dev/urandom` makes them";
            mistakes.push(Mistake::at(origins.1, what, remedy));
            None
        }
    });
    let Some(path) = &files.rules else {
        return if mistakes.is_empty() { Ok(Tenants::default()) } else { Err(Mistakes(mistakes)) };
    };
    let text = match bounded(path, TENANTS_BYTES).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    }) {
        Ok(text) => text,
        Err(cause) => {
            let what = format!("the tenants file {} cannot be read: {cause}", path.display());
            mistakes.push(Mistake::at(origins.0, what, "name a readable YAML file of at most 8 MiB"));
            return Err(Mistakes(mistakes));
        }
    };
    // A file that could not be read was told; that hashes need one is not told as well.
    let hash = match (&files.hash_key, hash) {
        (Some(_), None) => Hash::Unreadable,
        (None, _) => Hash::None,
        (Some(_), Some(key)) => Hash::Key(key),
    };
    let mut tenants = match parse(&path.display().to_string(), &text, hash) {
        Ok(tenants) => tenants,
        Err(told) => {
            mistakes.extend(told.0);
            return Err(Mistakes(mistakes));
        }
    };
    for source in tenants.sources.iter().filter(|_| keys) {
        let Place::File(path) = &source.place else { continue };
        match key_file(path) {
            Ok(keys) => tenants.spec.set_keys(&source.name, &keys),
            Err(what) => {
                let what = format!("the keys of {}: {what}", source.name);
                mistakes.push(Mistake::at(&source.origin, what, "name a file that holds a JWKS (RFC 7517)"));
            }
        }
    }
    if mistakes.is_empty() { Ok(tenants) } else { Err(Mistakes(mistakes)) }
}

/// What there is to hash with.
pub(crate) enum Hash {
    /// Nothing: no file was named.
    None,
    /// A file was named and is wrong, which was told already.
    Unreadable,
    /// This.
    Key(HashKey),
}

/// Reads `text` as the tenants file at `path`.
pub(crate) fn parse(path: &str, text: &str, hash: Hash) -> Result<Tenants, Mistakes> {
    let root = file::parse(path, text).map_err(|mistake| Mistakes(vec![mistake]))?;
    let mut reading = Reading::new(Path::new(path), hash);
    let spec = reading.spec(root);
    let Reading { mistakes, warnings, sources, hash, .. } = reading;
    let hash = match hash {
        Hash::Key(key) => Some(key),
        Hash::None | Hash::Unreadable => None,
    };
    match mistakes.is_empty() {
        true => Ok(Tenants { spec: Spec { hash, ..spec }, sources, warnings }),
        false => Err(Mistakes(mistakes)),
    }
}

/// The keys made of a hash key file.
pub(crate) fn hash_key(path: &Path) -> Result<HashKey, String> {
    let shown = path.display();
    let content = bounded(path, HASH_KEY_BYTES)
        .map_err(|cause| format!("the hash key file {shown} cannot be read: {cause}"))?;
    HashKey::of(&content)
        .map_err(|weak| format!("the hash key file {shown} holds {} bytes, and 32 are the least", weak.bytes))
}

/// The keys that a file publishes.
pub(crate) fn key_file(path: &Path) -> Result<KeySet, String> {
    let content = bounded(path, JWKS_BYTES).map_err(|cause| format!("it cannot be read: {cause}"))?;
    KeySet::read(&content).map_err(|error| error.to_string())
}

/// A file's content, if it is no longer than `most` bytes.
pub(crate) fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(content)
}

/// The warning that others on this machine can read the secret.
pub(crate) fn open_to_all(path: &Path, origin: &Origin) -> Option<Mistake> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().ok()?.permissions().mode();
    (mode & 0o004 != 0).then(|| {
        let what = format!("everybody on this machine can read the hash key file {}", path.display());
        Mistake::at(origin, what, "take that right away, as `chmod o-r` does: who has it can try out names")
    })
}

impl Reading<'_> {
    fn spec(&mut self, root: Node) -> Spec {
        if matches!(root.shape, Shape::Nothing) {
            return Spec::default();
        }
        let Some(mut all) = self.fields(root, "a tenants file", KEYS) else { return Spec::default() };
        // Whom to trust is asked by the rules.
        let trusted = all.take("trusted_peers").map(|node| self.nets("trusted_peers", node));
        self.trusts_some = trusted.as_ref().is_some_and(|nets| !nets.is_empty());
        let hash_end_users = self.switch(&mut all, "hash_end_users").unwrap_or(true);
        let hash_principals = self.switch(&mut all, "hash_principals").unwrap_or(true);
        self.hash_principals = hash_principals;
        let strip_untrusted = self.switch(&mut all, "strip_untrusted").unwrap_or(false);
        let default = all.take("default").and_then(|node| self.tenant("default", node));
        let end_user = all.take("end_user").map(|node| self.end_users(node, hash_end_users));
        let rules = all.take("rules").map(|node| self.rules(node)).unwrap_or_default();
        Spec {
            rules,
            default,
            trusted: trusted.unwrap_or_default(),
            strip_untrusted,
            end_user: end_user.unwrap_or_default(),
            hash: None,
            plain_principals: !hash_principals,
            plain_end_users: !hash_end_users,
        }
    }

    fn end_users(&mut self, node: Node, hashed: bool) -> Vec<EndUser> {
        let origin = node.origin.clone();
        if hashed {
            self.needs_hash_key(&origin, "end users are hashed", "or write `hash_end_users: false`");
        }
        let texts = self.texts("end_user", node);
        let mut all = Vec::new();
        for (text, origin) in texts {
            let one = match text.split_once('.') {
                Some(("body", member)) => self.body_key(member, &origin).map(EndUser::Body),
                Some(("header", field)) => self.trusted_field(field, &origin).map(EndUser::Header),
                _ => {
                    let what = format!("`{}` is no place of an end user", text.escape_debug());
                    let remedy = "write body.user, body.safety_identifier, body.metadata.NAME or header.NAME";
                    self.mistakes.push(Mistake::at(&origin, what, remedy));
                    None
                }
            };
            all.extend(one);
        }
        all
    }

    fn tenant(&mut self, key: &str, node: Node) -> Option<Name> {
        let (text, origin) = self.text(key, node)?;
        if text.len() > tenant::NAME_MAX_BYTES {
            let what = format!("a tenant's name has {} bytes", text.len());
            let remedy = format!("keep it to {}", tenant::NAME_MAX_BYTES);
            self.mistakes.push(Mistake::at(&origin, what, remedy));
            return None;
        }
        let name = Name::of_tenant(&text);
        if name.is_none() {
            let what = format!("`{}` cannot name a tenant", text.escape_debug());
            let remedy = "write a name without control characters that does not begin with `_`";
            self.mistakes.push(Mistake::at(&origin, what, remedy));
        }
        name
    }
}

/// The keys of the file.
const KEYS: &[&str] = &[
    "rules",
    "default",
    "trusted_peers",
    "strip_untrusted",
    "end_user",
    "hash_end_users",
    "hash_principals",
];

#[cfg(test)]
#[path = "tenants_tests.rs"]
mod tests;
