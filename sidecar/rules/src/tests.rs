//! Parsed tenants files, and the text of every error.

use std::fs;
use std::path::PathBuf;

use origin::Origin;
use tenant::{BodyKey, EndUser, HashKey, Rule, TenantPart};

use super::{Hash, Place, TenantFiles, Tenants, load, parse, warn_if_public};

/// Creates an empty folder; `name` is unique among these tests.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The hash key of the documented example.
fn key() -> HashKey {
    HashKey::of(b"an example, known to everybody: make your own").unwrap()
}

fn read(yaml: &str) -> Tenants {
    parse("t.yaml", yaml, Hash::Key(key())).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors_with(yaml: &str, hash: Hash) -> Vec<String> {
    let errors = parse("t.yaml", yaml, hash).expect_err("this file is invalid");
    errors.0.iter().map(ToString::to_string).collect()
}

fn errors(yaml: &str) -> Vec<String> {
    errors_with(yaml, Hash::Key(key()))
}

/// Returns the `nth` file of the documentation, from 1.
fn documented(nth: usize) -> String {
    let document = include_str!("../../../proxy/tenant/tenants.md");
    document.split("```yaml\n").nth(nth).unwrap().split("```").next().unwrap().to_owned()
}

/// Returns the complete example of the documentation.
fn example() -> String {
    documented(2)
}

#[test]
fn smallest_documented_file_is_valid() {
    let tenants = parse("t.yaml", &documented(1), Hash::None).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!((tenants.spec.rules.len(), tenants.warnings.len()), (1, 0));
}

#[test]
fn documented_example_is_valid() {
    let tenants = read(&example());
    let spec = &tenants.spec;
    assert!(tenants.warnings.is_empty(), "{:?}", tenants.warnings);
    assert_eq!(&**spec.default.as_ref().unwrap().text(), "unassigned");
    assert!(spec.strip_untrusted && !spec.plain_end_users && !spec.plain_principals);
    assert_eq!(spec.end_user, [EndUser::Header("x-end-user".into()), EndUser::Body(BodyKey::User)]);
    assert_eq!(spec.trusted.texts().collect::<Vec<_>>(), ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"]);
    let [Rule::Jwt(jwt), Rule::ApiKeys(keys), header, path, body, peer] = &spec.rules[..] else {
        panic!("{:?}", spec.rules)
    };
    assert_eq!(jwt.tenant.0, ["https://example.com/tenant".into()]);
    assert_eq!((jwt.issuers.len(), jwt.audiences.len(), jwt.leeway_s), (1, 2, 60));
    assert_eq!(keys.len(), 2);
    assert!(matches!(header, Rule::Header { field, principal: Some(principal), .. }
        if **field == *"x-tenant" && **principal == *"x-principal"));
    assert!(matches!(path, Rule::Path { prefix, strip: true, .. } if **prefix == *"/teams/search"));
    assert!(matches!(body, Rule::Body(BodyKey::Metadata(team)) if **team == *"team"));
    assert!(matches!(peer, Rule::Peer { tenant, .. } if **tenant.text() == *"lab"));
    let url = Place::Url("https://id.example.com/.well-known/jwks.json".to_owned());
    assert_eq!(tenants.sources.iter().map(|source| source.place.clone()).collect::<Vec<_>>(), [url]);
}

#[test]
fn fields_of_api_keys_can_be_set() {
    let hash = key().api_key(b"sk-1");
    let rule = |fields: &str| {
        format!("rules:\n  - api_keys:\n    - {{key: {hash}, tenant: a}}\n    fields: {fields}\n")
    };
    for fields in ["X-Other", "[x-other, x-api-key]"] {
        assert_eq!(read(&rule(fields)).spec.rules.len(), 1, "{fields}");
    }
    assert_eq!(errors(&rule("[]")), ["t.yaml:4: `fields` names none; name some, or remove the line"]);
    assert_eq!(
        errors(&rule("[\"a b\"]")),
        ["t.yaml:4: `a b` is not a field name; write the name alone, as in x-tenant"]
    );
}

#[test]
fn documented_hashes_belong_to_their_key() {
    for key in ["example-key-1", "example-key-2"] {
        let hash = self::key().api_key(key.as_bytes()).to_string();
        assert!(example().contains(&hash), "{key} is {hash}");
    }
}

#[test]
fn empty_file_has_no_rules() {
    for yaml in ["", "# nothing yet\n", "rules: []\n", "rules:\n"] {
        assert!(read(yaml).spec.rules.is_empty(), "{yaml}");
    }
}

#[test]
fn too_many_body_members_are_an_error() {
    let members = |range: std::ops::Range<usize>| range.map(|n| format!("  - body: metadata.m{n}\n"));
    let file = |rules: String| format!("end_user: [body.user, body.metadata.m0]\nrules:\n{rules}");
    let [most, more] = [31, 40].map(|end| file(members(0..end).collect()));
    assert_eq!(tenant::Rules::new(read(&most).spec).body_keys().len(), 32);
    let again: String = members(0..31).chain(members(0..31)).collect();
    assert_eq!(read(&file(again)).spec.rules.len(), 62, "the same members again");
    let expected = "t.yaml:34: the rules need more than 32 members of a body; keep 32 distinct ones, those of `end_user` included";
    assert_eq!(errors(&more), [expected]);
}

#[test]
fn errors_have_their_line() {
    const REST: &str = "issuer: i, audience: a, claim: c";
    for (rules, expected) in [
        (
            "  - peer: 10.0.0.0/99\n    tenant: a",
            "t.yaml:2: `10.0.0.0/99` is neither a network nor an address; write it as in 10.0.0.0/8, fd00::/8 or 192.0.2.7",
        ),
        ("  - peer: 10.0.0.0/8", "t.yaml:2: a `peer` rule has no `tenant`; add `tenant: NAME`"),
        ("  - peer: []\n    tenant: a", "t.yaml:2: `peer` names none; name some, or remove the line"),
        (
            "  - peer: 10.0.0.1\n    tenant: _other",
            "t.yaml:3: `_other` cannot name a tenant; write a name without control characters that does not begin with `_`",
        ),
        (
            "  - peer: 10.0.0.1\n    tennant: a",
            "t.yaml:3: a `peer` rule has no key `tennant`; did you mean `tenant`?",
        ),
        ("  - paths: /a\n    tenant: a", "t.yaml:2: the kind of a rule is missing; did you mean `path`?"),
        (
            "  - tenant: a",
            "t.yaml:2: the kind of a rule is missing; begin it with one of jwt, api_keys, certificate, header, body, path, peer",
        ),
        (
            "  - header",
            "t.yaml:2: the kind of a rule is missing; begin it with one of jwt, api_keys, certificate, header, body, path, peer",
        ),
        (
            "  - body: user\n    path: /a",
            "t.yaml:2: a rule has both `body` and `path`; split it into two rules; the first match applies",
        ),
        (
            "  - path: /a//b\n    tenant: a",
            "t.yaml:2: `/a//b` is not a path prefix; write `/` and whole segments, as in /teams/search",
        ),
        (
            "  - path: /\n    tenant: a",
            "t.yaml:2: `/` is not a path prefix; write `/` and whole segments, as in /teams/search",
        ),
        (
            "  - path: /a\n    tenant: a\n    strip: maybe",
            "t.yaml:4: `maybe` is neither true nor false; write true or false",
        ),
        (
            "  - body: model",
            "t.yaml:2: `model` is not a supported member of the body; write user, safety_identifier or metadata.NAME (at most 64 bytes)",
        ),
        (
            "  - header: x tenant",
            "t.yaml:2: `x tenant` is not a field name; write the name alone, as in x-tenant",
        ),
        (
            "  - header: x-tenant",
            "t.yaml:2: no peer is trusted to set `x-tenant`; list the peers under `trusted_peers`",
        ),
        (
            "  - header: Authorization",
            "t.yaml:2: the value of `authorization` is a secret, not a name; name a field that your gateway sets, or use `api_keys` or `jwt`",
        ),
        (
            "  - header: Host",
            "t.yaml:2: `host` belongs to HTTP and names no tenant; name a field that your gateway sets for this, as \
             in x-tenant",
        ),
        (
            "  - api_keys: sk-1",
            "t.yaml:2: `api_keys` is not a list; write each as `- {key: HASH, tenant: NAME}`",
        ),
        (
            "  - api_keys:\n    - tenant: a",
            "t.yaml:3: an API key has no `key`; add `key: HASH`, as `tokenmeter tenants hash-key --hash-key-file FILE` prints it",
        ),
        (
            &format!("  - jwt: {{keys: ftp://x/y, {REST}}}"),
            "t.yaml:2: `keys` is not an http(s) URL; write https://HOST/PATH, or a file's path",
        ),
        (
            &format!("  - jwt: {{keys: \"https://u:p@x/y\", {REST}}}"),
            "t.yaml:2: the URL of `keys` holds credentials; remove them",
        ),
        (
            &format!("  - jwt: {{keys: k, algorithms: [RS256, HS256], {REST}}}"),
            "t.yaml:2: `HS256` is not a supported algorithm; write some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA",
        ),
        (
            &format!("  - jwt: {{keys: k, leeway_s: 601, {REST}}}"),
            "t.yaml:2: `601` is not a number of seconds; write a whole number from 0 to 600",
        ),
        (
            "  - jwt: {keys: k, claim: c}",
            "t.yaml:2: `jwt` has no `issuer`; add `issuer: NAME`, the `iss` of the tokens",
        ),
        (
            "  - jwt: {issuer: i, claim: c}",
            "t.yaml:2: `jwt` has no `keys`; add `keys: FILE` or `keys: https://…` with the issuer's JWKS",
        ),
        (
            "  - jwt: {keys: k, issuer: i}",
            "t.yaml:2: `jwt` has no `claim`; add `claim: NAME` for the tenant, or `claim: [NAME, NAME]` for a nested claim",
        ),
    ] {
        assert_eq!(errors(&format!("rules:\n{rules}\n")), [expected], "{rules}");
    }
    for (yaml, expected) in [
        (
            "- peer: 10.0.0.1\n",
            "t.yaml:1: a tenants file is not a map; write `key: value` lines; known are rules, default, trusted_peers, strip_untrusted, end_user, hash_end_users, hash_principals",
        ),
        ("rule: []\n", "t.yaml:1: a tenants file has no key `rule`; did you mean `rules`?"),
        ("rules: {}\n", "t.yaml:1: `rules` is not a list; write each rule after a `-`"),
        ("rules: []\nrules: []\n", "t.yaml:2: `rules` is set twice, first at t.yaml:1; remove one of them"),
        ("default:\n", "t.yaml:1: `default` has no value; write one, or remove the line"),
        (
            "end_user: user\n",
            "t.yaml:1: `user` is not a source of an end user; write body.user, body.safety_identifier, body.metadata.NAME or header.NAME",
        ),
    ] {
        assert_eq!(errors(yaml), [expected], "{yaml}");
    }
}

#[test]
fn all_errors_are_reported() {
    let yaml = "default: _x\nstrip_untrusted: 1\nrules:\n  - header: x-t\n  - path: a\n    tenant: \"\"\n  - nothing\n";
    let places: Vec<_> =
        errors(yaml).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(places, ["t.yaml:2", "t.yaml:1", "t.yaml:4", "t.yaml:6", "t.yaml:5", "t.yaml:7"]);
}

#[test]
fn possible_secret_is_not_repeated() {
    const SECRET: &str = "sk-a-very-secret-key";
    for yaml in [
        format!("rules:\n  - api_keys:\n    - {{key: {SECRET}, tenant: a}}\n"),
        format!("rules:\n  - api_keys:\n    - {{{SECRET}: a}}\n"),
        format!("rules:\n  - api_keys:\n    - {SECRET}: {{tenant: a}}\n"),
        format!("rules:\n  - api_keys:\n    - {SECRET}\n"),
        format!("rules:\n  - api_keys:\n      {SECRET}: a\n"),
        format!("rules:\n  - api_keys:\n    - {{key: [{SECRET}], tenant: a}}\n"),
    ] {
        let errors = errors(&yaml).join("\n");
        assert!(!errors.contains(SECRET), "{errors}");
    }
    assert_eq!(
        errors(&format!("rules:\n  - api_keys:\n    - {{key: {SECRET}, tenant: a}}\n")),
        [
            "t.yaml:3: `key` is not the hash of an API key; write what `tokenmeter tenants hash-key --hash-key-file FILE` prints; \
             if this is a key in plain text, revoke it"
        ]
    );
}

#[test]
fn hashes_of_another_key_and_repeats_are_errors() {
    let hash = key().api_key(b"sk-1");
    let line = |hash: &tenant::KeyHash| format!("    - {{key: {hash}, tenant: a}}\n");
    let yaml = |hashes: &[tenant::KeyHash]| {
        format!("rules:\n  - api_keys:\n{}", hashes.iter().map(line).collect::<String>())
    };
    let other = HashKey::of(&[1; 32]).unwrap().api_key(b"sk-1");
    assert_eq!(
        errors(&yaml(&[hash, other])),
        [
            "t.yaml:4: this hash was made with another hash key file; hash the key again with this file, or set the \
             file it was hashed with"
        ]
    );
    assert_eq!(
        errors(&yaml(&[hash, hash])),
        ["t.yaml:4: this API key is listed twice, first at t.yaml:3; remove one of them"]
    );
}

#[test]
fn missing_hash_key_file_is_reported_once() {
    const NAME: &str = "set --hash-key-file to a file of 32 random bytes or more, the same across a fleet";
    let api_key = format!("rules:\n  - api_keys:\n    - {{key: {}, tenant: a}}\n", key().api_key(b"sk-1"));
    let end_user = format!("{api_key}end_user: body.user\n");
    for (yaml, expected) in [
        (&*api_key, format!("t.yaml:2: API keys are hashed, and there is no hash key file; {NAME}")),
        (
            &end_user,
            format!(
                "t.yaml:4: end users are hashed, and there is no hash key file; {NAME}, or write `hash_end_users: false`"
            ),
        ),
        (
            "rules:\n  - jwt: {keys: k, issuer: i, audience: a, claim: c, principal: sub}\n",
            format!(
                "t.yaml:2: principals are hashed, and there is no hash key file; {NAME}, or write `hash_principals: false`"
            ),
        ),
    ] {
        assert_eq!(errors_with(yaml, Hash::None), [expected], "{yaml}");
        assert!(parse("t.yaml", yaml, Hash::Unreadable).is_ok(), "an unreadable file is an error already");
    }
    let plain = "end_user: body.user\nhash_end_users: false\nhash_principals: false\n";
    assert!(parse("t.yaml", plain, Hash::None).is_ok());
}

#[test]
fn probable_misconfiguration_is_a_warning() {
    let warnings = |yaml: &str| read(yaml).warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        warnings("rules:\n  - jwt: {keys: k, issuer: i, claim: c}\n"),
        ["t.yaml:2: without an `audience`, tokens that this issuer made for other services are accepted, \
             too; add the `aud` of your tokens"]
    );
    assert_eq!(
        warnings("rules:\n  - jwt: {keys: \"http://id/k\", issuer: i, claim: c, audience: a}\n"),
        [
            "t.yaml:2: anyone on the network path can replace keys that come over http://, and then act as any \
             tenant; use https:// unless the server is local"
        ]
    );
    assert_eq!(
        warnings(
            "rules:\n  - {path: /teams, tenant: a}\n  - {path: /teams/search/x, tenant: b}\n  - {path: /team, tenant: c}\n"
        ),
        [
            "t.yaml:3: no request reaches the path rule `/teams/search/x`: `/teams` at t.yaml:2 matches all of them; put it \
             before that one, or remove it"
        ]
    );
    assert_eq!(warnings("rules:\n  - {path: /teams/a, tenant: a}\n  - {path: /teams, tenant: b}\n"), [""; 0]);
}

#[test]
fn unreadable_files_are_errors() {
    let folder = folder("tenants-load");
    let files = TenantFiles { rules: Some(folder.join("t.yaml")), hash_key: Some(folder.join("hash.key")) };
    let origins = (Origin::Flag("--tenants".into()), Origin::Flag("--hash-key-file".into()));
    let load = || load(&files, (&origins.0, &origins.1));
    let errors = || {
        let errors: Vec<_> = load().expect_err("not yet").0.iter().map(ToString::to_string).collect();
        errors.join("\n").replace(&format!("{}/", folder.display()), "")
    };
    assert_eq!(
        errors(),
        "--hash-key-file: the hash key file hash.key cannot be read: No such file or directory (os error 2); name a \
         file of 32 random bytes or more, as from `head -c 32 /dev/urandom`\n--tenants: the tenants file t.yaml \
         cannot be read: No such file or directory (os error 2); name a readable YAML file of at most 8 MiB"
    );
    fs::write(folder.join("hash.key"), "short").unwrap();
    fs::write(
        folder.join("t.yaml"),
        "rules:\n  - jwt: {keys: keys.json, issuer: i, audience: a, claim: c, principal: p}\n",
    )
    .unwrap();
    fs::write(folder.join("keys.json"), "{}").unwrap();
    assert_eq!(
        errors(),
        "--hash-key-file: the hash key file hash.key holds 5 bytes of at least 32; name a file of 32 random \
         bytes or more, as from `head -c 32 /dev/urandom`\nt.yaml:2: the keys of keys.json: not a JWKS: the \
         list `keys` is missing; name a file that holds a JWKS (RFC 7517)"
    );
    fs::write(folder.join("hash.key"), [99; 32]).unwrap();
    fs::write(folder.join("keys.json"), include_str!("../../../proxy/tenant/tests/tokens/keys.json"))
        .unwrap();
    let tenants = load().unwrap();
    let [Rule::Jwt(jwt)] = &tenants.spec.rules[..] else { panic!() };
    assert_eq!(jwt.keys.len(), 4);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn public_hash_key_file_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("tenants-mode");
    let path = folder.join("hash.key");
    fs::write(&path, [200; 32]).unwrap();
    for (mode, warned) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let warning = warn_if_public(&path, &Origin::Flag("--hash-key-file".into()));
        assert_eq!(warning.is_some(), warned, "{mode:o}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn header_may_have_the_identity_of_a_workload() {
    let rules = |part: &str| {
        format!(
            "trusted_peers: [127.0.0.6]\nrules: [{{header: X-Forwarded-Client-Cert, workload: {part}}}]\n"
        )
    };
    for (part, tenant) in
        [("namespace", TenantPart::Namespace), ("service_account", TenantPart::ServiceAccount)]
    {
        let spec = parse("tenants.yaml", &rules(part), Hash::None).expect("it is valid").spec;
        assert!(
            matches!(&spec.rules[..], [Rule::Header { tenant: read, .. }] if *read == tenant),
            "{spec:?}"
        );
    }
    let errors = parse("tenants.yaml", &rules("pod"), Hash::None).expect_err("it is no part");
    let text = errors.to_string();
    assert!(text.contains("write namespace or service_account") && text.contains(":2"), "{text}");
}
