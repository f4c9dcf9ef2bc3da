//! The role of an exchange in the body of a trusted router's request: only the one token of a prefill leg is free.

use meter::Role;
use relay::RoleSource;
use tenant::{Nets, Spec};

use crate::support::Proxy;
use crate::tenants::{answer, exchange, in_force, post, rules};
use crate::usage::{Server, record};

const CHAT: &str = "/v1/chat/completions";

fn server(output: u32) -> Server {
    Server::start(move |peer, _| {
        answer(
            peer,
            &format!(
                r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"length"}}],"usage":{{"prompt_tokens":7,"completion_tokens":{output}}}}}"#
            ),
        );
    })
}

/// A proxy that trusts the router's body for the roles of its requests.
fn proxy(server: &Server) -> Proxy {
    let trusted = Nets::read(["127.0.0.1"]).unwrap();
    let tenants = in_force(Spec { trusted, ..rules(Vec::new()) });
    Proxy::with(server.upstream.address, |plan| {
        tenants(plan);
        plan.upstreams[0].role = RoleSource::Body;
    })
}

fn role(proxy: &Proxy, limits: &str) -> Role {
    let body = format!(r#"{{"model":"m","kv_transfer_params":{{"do_remote_decode":true}},{limits}}}"#);
    exchange(&mut proxy.connect(), post(CHAT, "", &body));
    record(proxy).identity.role
}

#[test]
fn foreign_limit_makes_no_prefill_leg() {
    let server = server(1);
    let proxy = proxy(&server);
    assert_eq!(role(&proxy, r#""max_tokens":1"#), Role::Prefill);
    for limits in [
        r#""max_tokens":1,"n_predict":700"#,
        r#""max_tokens":0,"n_predict":-1"#,
        r#""max_tokens":1,"options":{"num_predict":700}"#,
        r#""max_tokens":1,"sampling_params":{"max_new_tokens":700}"#,
    ] {
        assert_eq!(role(&proxy, limits), Role::Whole, "{limits}");
    }
}

#[test]
fn answer_of_two_tokens_is_whole() {
    let server = server(2);
    let proxy = proxy(&server);
    assert_eq!(role(&proxy, r#""max_tokens":1,"a_limit_that_we_do_not_know":700"#), Role::Whole);
}
