//! The output and the errors of `tenants`.

use std::net::IpAddr;

use origin::Origin;
use rules::{Hash, TenantFiles, load, parse};
use tenant::{HashKey, Rules};

use super::request::Request;
use super::{describe, hashes};

fn key() -> HashKey {
    HashKey::of(b"an example, known to everybody: make your own").unwrap()
}

fn example() -> rules::Tenants {
    let document = include_str!("../../../../proxy/tenant/tenants.md");
    let example = document.split("```yaml\n").nth(2).unwrap().split("```").next().unwrap();
    parse("t.yaml", example, Hash::Key(key())).unwrap()
}

#[test]
fn each_key_has_its_hash_on_a_line() {
    let printed = hashes(&key(), "example-key-1\n\n  example-key-2\r\n").unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    for (line, text) in lines.iter().zip(["example-key-1", "example-key-2"]) {
        assert_eq!(*line, key().api_key(text.as_bytes()).to_string());
    }
    for (invalid, error) in [
        ("", "there is no API key on stdin; pipe keys in, one per line"),
        (" \n", "there is no API key on stdin; pipe keys in, one per line"),
        (
            "sk-1\nBearer sk-2",
            "line 2 of stdin is not an API key, which is ASCII without spaces; write the key alone, without `Bearer` or \
             quotes",
        ),
    ] {
        assert_eq!(hashes(&key(), invalid).unwrap_err().to_string(), error);
    }
}

#[test]
fn documented_example_is_described() {
    assert_eq!(
        describe::rules(&example()),
        "\
1. jwt: a token in `authorization`, issued by https://id.example.com for inference or tokenmeter, signed by one of the \
keys of https://id.example.com/.well-known/jwks.json, fetched while it runs: the tenant is in the claim \
`https://example.com/tenant`, the principal in `sub`.
2. api_key: one of 2 API keys: the tenant is that of the key.
3. header: `x-tenant`, set by a trusted peer: the tenant is its value, the principal that of `x-principal`.
4. path: /teams/search or below: the tenant is search, and the upstream gets the path without the prefix.
5. body: `metadata.team`, as the client sends it: the tenant is its value.
6. peer: 192.0.2.0/24, 2001:db8::/32: the tenant is lab.
Every other request: the tenant is unassigned.
The end user is a trusted peer's `x-end-user`, or else the body's `user`, stored as a keyed hash.
Trusted peers are 10.0.0.0/8, fd00::/8, 127.0.0.1/32; the same headers of other peers are ignored, counted and removed.
"
    );
    assert_eq!(
        describe::rules(&parse("t.yaml", "", Hash::None).unwrap()),
        "Every request: the tenant is default.\n"
    );
}

#[test]
fn request_is_tried_on_every_rule() {
    let rules = Rules::new(example().spec);
    let ann = key().name(tenant::Purpose::EndUser, "ann");
    let token = "rule 1 does not match: jwt: no token in `authorization`\n";
    let no_key = "rule 2 does not match: api_key: no key in the request\n";
    let header = "rule 3 does not match: header: no `x-tenant`\n";
    let path = "rule 4 does not match: path: it is not /teams/search or below\n";
    for (peer, request, expected) in [
        (
            "10.0.0.7",
            "POST /v1/x\nX-Tenant: acme\n\n{\"user\": \"ann\"}",
            format!("tenant: acme\nrule: header\nend user: {ann}\n{token}{no_key}"),
        ),
        (
            "198.51.100.7",
            "POST /v1/x HTTP/1.1\r\nX-Tenant: acme\r\n\r\n",
            format!(
                "tenant: unassigned\nrule: default\n{token}{no_key}rule 3 does not match: header: `x-tenant` is set, but \
                 the peer is not one of `trusted_peers`\n{path}rule 5 does not match: body: no body for \
                 `metadata.team`, so later rules are not tried\nignored and removed: x-tenant, since \
                 198.51.100.7 is not trusted\n"
            ),
        ),
        (
            "198.51.100.7",
            "POST /teams/search/v1/x?y=1\nx-api-key: example-key-1\n\n{}",
            format!("tenant: acme\nrule: api_key\nprincipal: acme-batch\n{token}the upstream gets: /v1/x\n"),
        ),
        (
            "198.51.100.7",
            "GET /teams/search\nAuthorization: Bearer sk-nobody",
            format!(
                "tenant: search\nrule: path\n{token}rule 2 does not match: api_key: the key is not listed (hashed with \
                 this hash key file)\n{header}the upstream gets: /\n"
            ),
        ),
        (
            "192.0.2.1",
            "POST /v1/x\n\n{\"metadata\": {\"team\": \"blue\"}, \"user\": 7}",
            format!("tenant: blue\nrule: body\n{token}{no_key}{header}{path}"),
        ),
        (
            "192.0.2.1",
            "POST /v1/x\n\n{\"model\": \"m\"}",
            format!(
                "tenant: lab\nrule: peer\n{token}{no_key}{header}{path}rule 5 does not match: body: no text in \
                 `metadata.team`\n"
            ),
        ),
        (
            "10.0.0.7",
            "POST /teams/search\nX-Tenant: a\nX-Tenant: b\n\n",
            format!(
                "tenant: search\nrule: path\n{token}{no_key}rule 3 does not match: header: `x-tenant` is set more than \
                 once, so the tenant is ambiguous\nthe upstream gets: /\n"
            ),
        ),
        (
            "10.0.0.7",
            "POST /v1/x\nX-Tenant: _mine\n\n{\"metadata\": {\"team\": \"_other\"}}",
            format!(
                "tenant: unassigned\nrule: default\n{token}{no_key}rule 3 does not match: header: the value of `x-tenant` is not a \
                 name\n{path}rule 5 does not match: body: the value of `metadata.team` is not a name\nrule 6 does not match: peer: its \
                 address is not in 192.0.2.0/24, 2001:db8::/32\n"
            ),
        ),
    ] {
        let peer: IpAddr = peer.parse().unwrap();
        assert_eq!(Request::read(request).unwrap().who(&rules, (peer, None), 0), expected, "{request}");
    }
}

/// Tokens of another implementation (proxy/tenant/tests/tokens), each tried on a rule that accepts a valid one.
#[test]
fn rejected_token_has_a_reason() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proxy/tenant/tests/tokens");
    let yaml = format!(
        "rules:\n- jwt: {{keys: \"{folder}/keys.json\", issuer: \"https://id.example\", audience: tokenmeter, claim: \
         tenant}}\n"
    );
    let place = std::env::temp_dir().join(format!("tokenmeter-tokens-{}.yaml", std::process::id()));
    std::fs::write(&place, yaml).unwrap();
    let files = TenantFiles { rules: Some(place.clone()), hash_key: None };
    let rules = Rules::new(load(&files, (&Origin::Default, &Origin::Default)).unwrap().spec);
    std::fs::remove_file(place).unwrap();
    let tokens = std::fs::read_to_string(format!("{folder}/tokens.json")).unwrap();
    let tokens: Vec<serde_json::Value> = serde_json::from_str(&tokens).unwrap();
    let keys = format!("{folder}/keys.json");
    let good = 1_800_000_000;
    for (name, now, why) in [
        ("RS256", good, String::new()),
        ("RS256", 3_000_000_000, "the token is expired (`exp`)".to_owned()),
        ("RS256", 0, "the token is not valid yet (`nbf`)".to_owned()),
        ("another issuer", good, "the token's `iss` is not https://id.example".to_owned()),
        ("another audience", good, "the token's `aud` is not tokenmeter".to_owned()),
        ("an unknown id", good, format!("the token's key id is not in {keys}")),
        ("other claims", good, format!("the token's signature matches no key of {keys}")),
        ("alg none", good, "the token's algorithm is not among `algorithms`".to_owned()),
        ("no exp", good, "the token has no `exp`, or one of its times is not a number".to_owned()),
        ("no tenant", good, "the token's claim `tenant` is missing, or is not a name".to_owned()),
        ("critical header", good, "the token is malformed or of an unsupported form".to_owned()),
    ] {
        let token = tokens.iter().find(|row| row["name"] == name).unwrap()["token"].as_str().unwrap();
        let request = format!("POST /v1/x\nAuthorization: Bearer {token}\n\n{{}}");
        let text = Request::read(&request).unwrap().who(&rules, ([192, 0, 2, 1].into(), None), now);
        let expected = match why.as_str() {
            "" => "tenant: acme\nrule: jwt\n".to_owned(),
            why => format!("tenant: default\nrule: default\nrule 1 does not match: jwt: {why}\n"),
        };
        assert_eq!(text, expected, "{name}");
    }
}

#[test]
fn invalid_request_has_a_reason() {
    for (text, why) in [
        ("", "its first line has no method and path"),
        ("POST", "its first line has no method and path"),
        ("POST http://x/y", "its path does not begin with `/`"),
        ("POST /\nx-tenant acme", "a header line has no `:`"),
        ("POST /\n\n{\"user\": ", "its body is not JSON"),
    ] {
        assert_eq!(Request::read(text).unwrap_err(), why, "{text}");
    }
}
