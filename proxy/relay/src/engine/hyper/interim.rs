//! Interim responses (1xx) as hyper's client reports them.

use http::{HeaderMap, Request, StatusCode};

/// Has each interim response to `request` reported.
pub(crate) fn report<B>(
    request: &mut Request<B>,
    report: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
) {
    hyper::ext::on_informational(request, move |response| report(response.status(), response.headers()));
}
