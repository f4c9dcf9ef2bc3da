//! The data of the admin listener, read from the other parts.

use std::sync::{Arc, OnceLock};

use accounting::admin_page::AdminPage;
use live::{Engine, History, Now, Readiness as Ready, Step, Upstream};
use metrics::Snapshot;
use page::{Cached, Content, NoAccess};

use crate::assemble::drain::Drain;
use crate::assemble::readiness::Readiness;
use crate::assemble::resource_usage::ResourceUsage;
use crate::token_file::TokenFile;
use crate::version::version;

/// The parts that the admin listener reads.
pub(crate) struct Source {
    pub(crate) page: AdminPage,
    pub(crate) curve: Cached,
    /// The file with the token for numbers; without it, every request may read them.
    pub(crate) token: Option<TokenFile>,
    pub(crate) resource_usage: Arc<ResourceUsage>,
    pub(crate) readiness: Readiness,
    pub(crate) drain: Drain,
    /// Name and URL of each upstream.
    pub(crate) upstreams: Vec<(String, String)>,
    /// The listeners of each upstream, once they are open.
    pub(crate) addresses: Arc<OnceLock<Vec<String>>>,
}

impl page::Source for Source {
    fn metrics(&self, accept: &str) -> Content {
        self.page.scrape(accept)
    }

    fn ready(&self) -> Ready {
        match self.readiness.reasons() {
            none if none.is_empty() => self.page.readiness(),
            reasons => Ready::NotReady(reasons),
        }
    }

    fn sample(&mut self) -> Now {
        let ready = self.ready();
        let Self { page, readiness, upstreams, addresses, .. } = self;
        page.sample(version(), ready, |snapshot| shown(upstreams, addresses, readiness, snapshot))
    }

    fn history(&self, scope: &str, step: Step) -> Option<History> {
        self.page.history(scope, step)
    }

    fn curve(&self) -> Option<Content> {
        Some(self.curve.content())
    }

    fn spend(&self) -> Option<Content> {
        self.page.spend()
    }

    fn access(&self, token: Option<&str>) -> Result<(), NoAccess> {
        let Some(file) = &self.token else { return Ok(()) };
        match token.map_or(Ok(false), |token| file.is(token)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(NoAccess::Token),
            Err(error) => Err(NoAccess::Unreadable(TokenFile::unreadable("admin_token_file", &error))),
        }
    }

    fn drain(&self, token: Option<&str>) -> Result<(), page::NoDrain> {
        self.drain.order(token)
    }

    fn drained(&self) -> Option<page::Drained> {
        Some(self.drain.drained())
    }

    fn evicted(&self) {
        self.resource_usage.admin_evicted();
    }

    fn handshake_failed(&self) {
        self.resource_usage.admin_handshake_failed();
    }
}

/// Returns the upstreams whose listeners are open.
fn shown(
    upstreams: &[(String, String)],
    addresses: &OnceLock<Vec<String>>,
    readiness: &Readiness,
    snapshot: &Snapshot,
) -> Vec<Upstream> {
    let addresses = addresses.get().map_or(&[][..], Vec::as_slice);
    let shown = upstreams.iter().zip(addresses).enumerate().map(|(index, ((name, url), listen))| Upstream {
        name: name.clone(),
        listen: listen.clone(),
        url: url.clone(),
        up: readiness.reached(index),
        verified: Upstream::is_verified(snapshot, name),
        fault: fault(snapshot, name),
        engine: Engine::of(snapshot, name),
    });
    shown.collect()
}

/// Returns the error of an upstream's configuration that makes its charges wrong.
fn fault(snapshot: &Snapshot, upstream: &str) -> Option<String> {
    let (_, engine) = snapshot.engines.iter().find(|(name, _)| **name == *upstream)?;
    let remedy = engine.kind.map_or("", servers::hidden_cached_remedy);
    engine.hides_cached_tokens().then(|| {
        format!("its cache hits are not in its usage, so they are priced as uncached tokens{remedy}")
    })
}
