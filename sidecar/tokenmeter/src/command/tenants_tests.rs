//! What is printed, and what is refused.

use std::net::IpAddr;

use tenant::{HashKey, Rules};

use super::request::Request;
use super::{hashes, words};
use crate::plan::tenants::{Hash, parse};

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
    for (peer, request, said) in [
        ("10.0.0.7", "POST /v1/x\nX-Tenant: acme\n\n{\"user\": \"ann\"}", format!("tenant: acme\nrule: header\nend user: {ann}\n")),
        (
            "198.51.100.7",
            "POST /v1/x HTTP/1.1\r\nX-Tenant: acme\r\n\r\n",
            "tenant: unassigned\nrule: default\nignored and taken out: x-tenant, since 198.51.100.7 is not trusted\n"
                .to_owned(),
        ),
        (
            "198.51.100.7",
            "POST /teams/search/v1/x?y=1\nx-api-key: example-key-1\n\n{}",
            "tenant: acme\nrule: api_key\nprincipal: acme-batch\nthe upstream gets: /v1/x\n".to_owned(),
        ),
        (
            "198.51.100.7",
            "GET /teams/search",
            "tenant: search\nrule: path\nthe upstream gets: /\n".to_owned(),
        ),
        (
            "192.0.2.1",
            "POST /v1/x\n\n{\"metadata\": {\"team\": \"blue\"}, \"user\": 7}",
            "tenant: blue\nrule: body\n".to_owned(),
        ),
        ("192.0.2.1", "POST /v1/x\n\n{\"model\": \"m\"}", "tenant: lab\nrule: peer\n".to_owned()),
    ] {
        let peer: IpAddr = peer.parse().unwrap();
        assert_eq!(Request::read(request).unwrap().who(&rules, peer, 0), said, "{request}");
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
