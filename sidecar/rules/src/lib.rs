//! The tenants file (YAML), read into tenant rules. Every error has its line, and all are reported at once.
//! proxy/tenant/tenants.md describes the format; a test reads its example.
//!
//! Law 11: an API key that was written in place of its hash is not repeated in the error.

mod rule;
mod rules_reader;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use origin::content::{self, bounded};
use origin::file::{self, Node, Shape};
use origin::{Diagnostic, Diagnostics, Origin};
use tenant::{EndUser, HashKey, KeySet, Name, Spec};
use text::quoted;

use rules_reader::RulesReader;

/// The maximum size of a tenants file in bytes: ten thousand API keys take two megabytes.
pub const TENANTS_BYTES: u64 = 8 * 1024 * 1024;

/// The maximum size of a hash key file in bytes; 32 are enough.
pub const HASH_KEY_BYTES: u64 = 64 * 1024;

/// The maximum size of a JWKS in bytes. One with certificates has about ten thousand.
pub const JWKS_BYTES: u64 = 512 * 1024;

/// The files of the tenant rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantFiles {
    /// The tenants file; without it every request belongs to the tenant `default`.
    pub rules: Option<PathBuf>,
    /// The hash key file.
    pub hash_key: Option<PathBuf>,
}

/// A parsed tenants file.
#[derive(Clone, Debug, Default)]
pub struct Tenants {
    /// The rules; `jwt` rules have the keys of files, but not yet those of URLs.
    pub spec: Spec,
    /// The sources of keys, each once.
    pub sources: Vec<KeySource>,
    /// Rules that are valid, but probably not intended.
    pub warnings: Vec<Diagnostic>,
}

/// A source of published keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource {
    /// The source as written in the rules.
    pub name: Arc<str>,
    /// The file or the URL.
    pub place: Place,
    /// Its line.
    pub origin: Origin,
}

impl KeySource {
    /// Returns the name without a query, which may hold a secret.
    pub fn shown(&self) -> &str {
        match self.place {
            Place::File(_) => &self.name,
            Place::Url(_) => self.name.split(['?', '#']).next().unwrap_or_default(),
        }
    }
}

/// The place of a JWKS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A URL, fetched by GET.
    Url(String),
}

/// Reads the files, including those with keys; `origins` are those of the two settings.
pub fn load(files: &TenantFiles, origins: (&Origin, &Origin)) -> Result<Tenants, Diagnostics> {
    gather(files, origins, true)
}

/// Reads the tenants file and the hash key file, but no keys.
pub fn load_rules(files: &TenantFiles, origins: (&Origin, &Origin)) -> Result<Tenants, Diagnostics> {
    gather(files, origins, false)
}

fn gather(files: &TenantFiles, origins: (&Origin, &Origin), keys: bool) -> Result<Tenants, Diagnostics> {
    let mut errors = Vec::new();
    let hash = files.hash_key.as_deref().and_then(|path| match hash_key(path) {
        Ok(key) => Some(key),
        Err(problem) => {
            let remedy = "name a file of 32 random bytes or more, as from `head -c 32 /dev/urandom`";
            errors.push(Diagnostic::at(origins.1, problem, remedy));
            None
        }
    });
    let Some(path) = &files.rules else {
        return if errors.is_empty() { Ok(Tenants::default()) } else { Err(Diagnostics(errors)) };
    };
    let text = match bounded(path, TENANTS_BYTES).and_then(content::text) {
        Ok(text) => text,
        Err(cause) => {
            let problem = format!("the tenants file {} cannot be read: {cause}", path.display());
            errors.push(Diagnostic::at(origins.0, problem, "name a readable YAML file of at most 8 MiB"));
            return Err(Diagnostics(errors));
        }
    };
    // An unreadable hash key file is an error already; that hashes need one is not a second.
    let hash = match (&files.hash_key, hash) {
        (Some(_), None) => Hash::Unreadable,
        (None, _) => Hash::None,
        (Some(_), Some(key)) => Hash::Key(key),
    };
    let mut tenants = match parse(&path.display().to_string(), &text, hash) {
        Ok(tenants) => tenants,
        Err(found) => {
            errors.extend(found.0);
            return Err(Diagnostics(errors));
        }
    };
    for source in tenants.sources.iter().filter(|_| keys) {
        let Place::File(path) = &source.place else { continue };
        match key_file(path) {
            Ok(keys) => tenants.spec.set_keys(&source.name, &keys),
            Err(problem) => {
                let problem = format!("the keys of {}: {problem}", source.name);
                errors.push(Diagnostic::at(
                    &source.origin,
                    problem,
                    "name a file that holds a JWKS (RFC 7517)",
                ));
            }
        }
    }
    if errors.is_empty() { Ok(tenants) } else { Err(Diagnostics(errors)) }
}

/// The hash key.
pub enum Hash {
    /// No file is set.
    None,
    /// The file cannot be read, which is an error already.
    Unreadable,
    /// The file's key.
    Key(HashKey),
}

/// Parses the text of the tenants file at `path`.
pub fn parse(path: &str, text: &str, hash: Hash) -> Result<Tenants, Diagnostics> {
    let root = file::parse(path, text).map_err(|error| Diagnostics(vec![error]))?;
    let mut reader = RulesReader::new(Path::new(path), hash);
    let spec = reader.spec(root);
    let RulesReader { errors, warnings, sources, hash, .. } = reader;
    let hash = match hash {
        Hash::Key(key) => Some(key),
        Hash::None | Hash::Unreadable => None,
    };
    match errors.is_empty() {
        true => Ok(Tenants { spec: Spec { hash, ..spec }, sources, warnings }),
        false => Err(Diagnostics(errors)),
    }
}

/// Reads a hash key file.
pub fn hash_key(path: &Path) -> Result<HashKey, String> {
    let shown = path.display();
    let content = bounded(path, HASH_KEY_BYTES)
        .map_err(|cause| format!("the hash key file {shown} cannot be read: {cause}"))?;
    HashKey::of(&content)
        .map_err(|weak| format!("the hash key file {shown} holds {} bytes of at least 32", weak.bytes))
}

/// Reads a JWKS file.
pub fn key_file(path: &Path) -> Result<KeySet, String> {
    let content = bounded(path, JWKS_BYTES).map_err(|cause| format!("it cannot be read: {cause}"))?;
    KeySet::read(&content).map_err(|error| error.to_string())
}

/// Returns a warning if every user of this machine can read the secret.
pub fn warn_if_public(path: &Path, origin: &Origin) -> Option<Diagnostic> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().ok()?.permissions().mode();
    (mode & 0o004 != 0).then(|| {
        let problem = format!("every user of this machine can read the hash key file {}", path.display());
        Diagnostic::at(
            origin,
            problem,
            "remove the permission with `chmod o-r`: the key allows guessing hashed names",
        )
    })
}

impl RulesReader<'_> {
    fn spec(&mut self, root: Node) -> Spec {
        if matches!(root.shape, Shape::Nothing) {
            return Spec::default();
        }
        let Some(mut all) = self.fields(root, "a tenants file", KEYS) else { return Spec::default() };
        // Rules depend on the trusted peers.
        let trusted = all.take("trusted_peers").map(|node| self.nets("trusted_peers", node));
        self.trusts_peers = trusted.as_ref().is_some_and(|nets| !nets.is_empty());
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
            self.needs_hash_key(&origin, "end users are hashed", ", or write `hash_end_users: false`");
        }
        let texts = self.texts("end_user", node);
        let mut all = Vec::new();
        for (text, origin) in texts {
            let one = match text.split_once('.') {
                Some(("body", member)) => self.body_key(member, &origin).map(EndUser::Body),
                Some(("header", field)) => self.trusted_field(field, &origin).map(EndUser::Header),
                _ => {
                    let problem = format!("`{}` is not a source of an end user", quoted(&text));
                    let remedy = "write body.user, body.safety_identifier, body.metadata.NAME or header.NAME";
                    self.errors.push(Diagnostic::at(&origin, problem, remedy));
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
            let problem = format!("a tenant name has {} bytes", text.len());
            let remedy = format!("keep it to {}", tenant::NAME_MAX_BYTES);
            self.errors.push(Diagnostic::at(&origin, problem, remedy));
            return None;
        }
        let name = Name::of_tenant(&text);
        if name.is_none() {
            let problem = format!("`{}` cannot name a tenant", quoted(&text));
            let remedy = "write a name without control characters that does not begin with `_`";
            self.errors.push(Diagnostic::at(&origin, problem, remedy));
        }
        name
    }
}

/// The keys of a tenants file.
const KEYS: &[&str] = &[
    "rules",
    "default",
    "trusted_peers",
    "strip_untrusted",
    "end_user",
    "hash_end_users",
    "hash_principals",
];
