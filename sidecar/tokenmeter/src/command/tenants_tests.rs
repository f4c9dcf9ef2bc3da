//! What is printed, and what is refused.

use std::net::IpAddr;

use tenant::{HashKey, Rules};

use super::request::Request;
use super::{hashes, words};
use crate::origin::Origin;
use crate::plan::tenants::{Hash, TenantFiles, load, parse};

fn key() -> HashKey {
    HashKey::of(b"an example, known to everybody: make your own").unwrap()
}

fn example() -> crate::plan::tenants::Tenants {
    let document = include_str!("../../../../proxy/tenant/tenants.md");
    let example = document.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    parse("t.yaml", example, Hash::Key(key())).unwrap()
}

#[test]
fn each_key_gets_its_hash_on_its_line() {
    let printed = hashes(&key(), "example-key-1\n\n  example-key-2\r\n").unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    for (line, text) in lines.iter().zip(["example-key-1", "example-key-2"]) {
        assert_eq!(*line, key().api_key(text.as_bytes()).to_string());
    }
    for (wrong, why) in [
        ("", "there is no API key on stdin; pipe it in, one a line"),
        (" \n", "there is no API key on stdin; pipe it in, one a line"),
        (
            "sk-1\nBearer sk-2",
            "what is on line 2 of stdin is no API key: one has no spaces and only ASCII; write the key alone, without \
             `Bearer` or quotes",
        ),
    ] {
        assert_eq!(hashes(&key(), wrong).unwrap_err().to_string(), why);
    }
}

#[test]
fn the_example_in_words() {
    assert_eq!(
        words::rules(&example()),
        "\
1. A request with a token in `authorization`, issued by https://id.example.com for inference or tokenmeter, signed by one \
of the keys of https://id.example.com/.well-known/jwks.json, asked when it runs, is the tenant's in its claim \
`https://example.com/tenant`, for the principal in `sub`.
2. A request with one of 2 known API keys is its owner's.
3. A request whose `x-tenant` a trusted peer set is that tenant's, for the principal in `x-principal`.
4. A request whose path begins with /teams/search is search's; the upstream is spared that beginning.
5. A request whose body has `metadata.team` is that tenant's, as its client says.
6. A request from 192.0.2.0/24, 2001:db8::/32 is lab's.
Every other request is unassigned's.
The end user is a trusted peer's `x-end-user`, or else the body's `user`, kept as a keyed hash.
Headers are believed from 10.0.0.0/8, fd00::/8, 127.0.0.1/32; from others they are ignored, counted and taken out.
"
    );
    assert_eq!(words::rules(&parse("t.yaml", "", Hash::None).unwrap()), "Every request is default's.\n");
}

#[test]
fn a_request_is_tried() {
    let rules = Rules::new(example().spec);
    let ann = key().name(tenant::Purpose::EndUser, "ann");
    let token = "rule 1 missed: jwt: no token is in `authorization`\n";
    let no_key = "rule 2 missed: api_key: no key is in the request\n";
    let header = "rule 3 missed: header: there is no `x-tenant`\n";
    let path = "rule 4 missed: path: it does not begin with /teams/search\n";
    for (peer, request, said) in [
        (
            "10.0.0.7",
            "POST /v1/x\nX-Tenant: acme\n\n{\"user\": \"ann\"}",
            format!("tenant: acme\nrule: header\nend user: {ann}\n{token}{no_key}"),
        ),
        (
            "198.51.100.7",
            "POST /v1/x HTTP/1.1\r\nX-Tenant: acme\r\n\r\n",
            format!(
                "tenant: unassigned\nrule: default\n{token}{no_key}rule 3 missed: header: `x-tenant` is there, but \
                 the peer is not one of `trusted_peers`\n{path}rule 5 missed: body: no body was read for \
                 `metadata.team`; then no rule after it is asked\nignored and taken out: x-tenant, since \
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
                "tenant: search\nrule: path\n{token}rule 2 missed: api_key: the key is none of those listed (hashed \
                 with this hash key file)\n{header}the upstream gets: /\n"
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
                "tenant: lab\nrule: peer\n{token}{no_key}{header}{path}rule 5 missed: body: there is no text in \
                 `metadata.team`\n"
            ),
        ),
        (
            "10.0.0.7",
            "POST /teams/search\nX-Tenant: a\nX-Tenant: b\n\n",
            format!(
                "tenant: search\nrule: path\n{token}{no_key}rule 3 missed: header: `x-tenant` is there more than \
                 once, so that nobody can tell whose it is\nthe upstream gets: /\n"
            ),
        ),
        (
            "10.0.0.7",
            "POST /v1/x\nX-Tenant: _mine\n\n{\"metadata\": {\"team\": \"_other\"}}",
            format!(
                "tenant: unassigned\nrule: default\n{token}{no_key}rule 3 missed: header: what is in `x-tenant` is no \
                 name\n{path}rule 5 missed: body: what is in `metadata.team` is no name\nrule 6 missed: peer: its \
                 address is not in 192.0.2.0/24, 2001:db8::/32\n"
            ),
        ),
    ] {
        let peer: IpAddr = peer.parse().unwrap();
        assert_eq!(Request::read(request).unwrap().who(&rules, peer, 0), said, "{request}");
    }
}

/// Tokens of another implementation (proxy/tenant/tests/tokens), each asked of a rule that would have
/// believed a good one.
#[test]
fn why_a_token_was_not_believed_is_said() {
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
        ("RS256", 0, "the token is not good yet (`nbf`)".to_owned()),
        ("another issuer", good, "the token's `iss` is not https://id.example".to_owned()),
        ("another audience", good, "the token's `aud` is not tokenmeter".to_owned()),
        ("an unknown id", good, format!("the token's key id is none of those in {keys}")),
        ("other claims", good, format!("no key of {keys} made the token's signature")),
        ("alg none", good, "the token's algorithm is not among `algorithms`".to_owned()),
        ("no exp", good, "the token has no `exp`, or a time in it is no number".to_owned()),
        ("no tenant", good, "the token's claim `tenant` is not there, or no name".to_owned()),
        ("critical header", good, "the token is none that is read".to_owned()),
    ] {
        let token = tokens.iter().find(|row| row["name"] == name).unwrap()["token"].as_str().unwrap();
        let request = format!("POST /v1/x\nAuthorization: Bearer {token}\n\n{{}}");
        let said = Request::read(&request).unwrap().who(&rules, [192, 0, 2, 1].into(), now);
        let expected = match why.as_str() {
            "" => "tenant: acme\nrule: jwt\n".to_owned(),
            why => format!("tenant: default\nrule: default\nrule 1 missed: jwt: {why}\n"),
        };
        assert_eq!(said, expected, "{name}");
    }
}

#[test]
fn what_is_no_request_is_told() {
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
