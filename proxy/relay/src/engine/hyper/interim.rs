//! Interim responses (1xx), received through hyper's client.

use http::{HeaderMap, Request, StatusCode};

/// Registers `request` to receive each interim response.
pub(crate) fn report<B>(
    request: &mut Request<B>,
    report: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
) {
    hyper::ext::on_informational(request, move |response| report(response.status(), response.headers()));
}
