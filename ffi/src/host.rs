//! The object behind a meter's handle: the settings, metrics and prices of the exchanges that begin in it. Exchanges hold
//! it, so that a meter may be freed before they end.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use exchange::{IdSource, RequestHead, RuleMembers, Setup, TenantResolution};
use meter::{Load, Observer, Record, ServerKind};
use metrics::{Basis, Format, Metrics, WorkerCells};
use price::{Book, Charge, Facts, Unpriced};
use tenant::Rules;
use usage::Policy;

use crate::exporters::{self, Exporters};
use crate::status::{Fault, Status};

/// The number of shards of the metrics. Exchanges of different shards do not wait for each other.
const SHARDS: usize = 16;

/// The settings of a meter.
pub(crate) struct Settings {
    /// The upstream's name in records and metrics.
    pub(crate) upstream: Arc<str>,
    /// The provider's name in records and metrics.
    pub(crate) provider: Arc<str>,
    /// The kind of the server, if it is known.
    pub(crate) kind: Option<ServerKind>,
    /// The usage that may be requested for clients.
    pub(crate) usage: Policy,
    /// The settings of an exchange.
    pub(crate) setup: Setup,
    /// The maximum number of models with metrics of their own, if it is not the default.
    pub(crate) max_models: Option<usize>,
}

/// A meter.
pub(crate) struct Host {
    pub(crate) settings: Settings,
    metrics: Metrics,
    shards: [Mutex<Shard>; SHARDS],
    next_shard: AtomicUsize,
    load: Mutex<Load>,
    /// Locked while exporters start or shut down, before the others: a new group waits for the end of the one before, which
    /// may have the same ledger and the same port.
    exporters_change: Mutex<()>,
    /// Locked before `prices`.
    exporters: RwLock<Option<Exporters>>,
    prices: Mutex<Option<Arc<Book>>>,
    tenants: Mutex<Arc<Rules>>,
}

/// The part of a meter that one exchange uses at a time.
pub(crate) struct Shard {
    pub(crate) cells: WorkerCells,
    pub(crate) ids: IdSource,
    members: RuleMembers,
}

impl Host {
    /// A meter without exchanges.
    pub(crate) fn new(settings: Settings, prices: Option<Arc<Book>>) -> Self {
        let default = metrics::Options::default();
        let currency = prices.as_ref().and_then(|book| metrics::Currency::new(book.currency().code()));
        let metrics = Metrics::new(metrics::Options {
            models: settings.max_models.unwrap_or(default.models),
            currency: currency.unwrap_or(default.currency),
            ..default
        });
        let shard = |_| {
            Mutex::new(Shard {
                cells: metrics.worker(),
                ids: IdSource::new(),
                members: RuleMembers::default(),
            })
        };
        let shards = std::array::from_fn(shard);
        Self {
            settings,
            metrics,
            shards,
            next_shard: AtomicUsize::new(0),
            load: Mutex::default(),
            exporters_change: Mutex::default(),
            exporters: RwLock::new(None),
            prices: Mutex::new(prices),
            tenants: Mutex::default(),
        }
    }

    /// Chooses the shard of a new exchange.
    pub(crate) fn choose_shard(&self) -> usize {
        self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS
    }

    /// Calls `act` with a shard of [`Self::choose_shard`].
    pub(crate) fn shard<R>(&self, at: usize, act: impl FnOnce(&mut Shard) -> R) -> R {
        act(&mut lock(&self.shards[at]))
    }

    /// Resolves the tenant of a request from its head, whose time must be known if a rule checks it.
    pub(crate) fn tenant(&self, shard: usize, head: &RequestHead<'_>) -> Result<TenantResolution, Fault> {
        let rules = Arc::clone(&lock(&self.tenants));
        if head.now_unix_s == 0 && rules.needs_time() {
            return Err(Fault::new(
                Status::Value,
                "`jwt` rules need `unix_ns`: at 0, expired tokens are valid",
            ));
        }
        // A rule may verify a signature: the other exchanges of the shard do not wait for it.
        let mut members = self.shard(shard, |shard| std::mem::take(&mut shard.members));
        let (resolution, rejection) = TenantResolution::of_head(&rules, &mut members, head);
        self.shard(shard, |shard| {
            shard.members = members;
            if let Some(rejection) = rejection {
                shard.cells.untrusted_token(rejection);
            }
            if let Some(rule) = resolution.rule() {
                shard.cells.tenant(rule);
            }
        });
        Ok(resolution)
    }

    /// Returns the path without the prefix that names the tenant.
    pub(crate) fn strip_prefix<'p>(&self, path: &'p str) -> &'p str {
        &path[lock(&self.tenants).strip(path)..]
    }

    /// Calls `act` with the load of the host's server.
    pub(crate) fn load<R>(&self, act: impl FnOnce(&mut Load) -> R) -> R {
        act(&mut lock(&self.load))
    }

    /// Charges a finished exchange by the price book in force, and gives it to the exporters.
    pub(crate) fn charge(&self, record: &Arc<Record>) -> Charge {
        if let Some(charge) = self.exporters(|exporters| exporters.charge(record)) {
            return charge;
        }
        let book = lock(&self.prices).clone();
        let mut record = Arc::clone(record);
        price::name_dearest(&mut record, book.as_deref());
        let charge = Facts::of(&record).charge(book.as_deref());
        let identity = &record.identity;
        match &charge {
            Charge::Priced { cost, .. } => {
                self.metrics.charge(&identity.tenant, &identity.model, Basis::Price, i128::from(*cost));
            }
            Charge::Unpriced(Unpriced::Leg | Unpriced::NoBook) => {}
            Charge::Unpriced(reason) => self.metrics.unpriced(&identity.model, reason.name()),
        }
        charge
    }

    /// Replaces the price book, by one of the same currency.
    pub(crate) fn set_prices(&self, book: Arc<Book>) -> Result<(), Fault> {
        let exporters = self.exporters.read().unwrap_or_else(PoisonError::into_inner);
        let mut prices = lock(&self.prices);
        let before = prices.as_ref().map_or(price::Currency::USD, |before| before.currency());
        if book.currency() != before {
            let message = format!(
                "the price book is in {}, and the meter's metrics are in {}: give the book to tm_meter_new",
                book.currency().code(),
                before.code()
            );
            return Err(Fault::new(Status::Prices, message));
        }
        if let Some(exporters) = &*exporters {
            exporters.set_prices(&book);
        }
        *prices = Some(book);
        Ok(())
    }

    /// Replaces the tenant rules, for requests that begin from now on.
    pub(crate) fn set_tenants(&self, rules: Arc<Rules>) {
        *lock(&self.tenants) = rules;
    }

    /// Starts exporters. No exchange waits meanwhile.
    pub(crate) fn start_exporters(&self, settings: &exporters::Settings<'_>) -> Result<(), Fault> {
        let _change = lock(&self.exporters_change);
        if self.exporters(|_| ()).is_some() {
            return Err(Fault::new(Status::Order, "the meter has exporters already"));
        }
        let prices = lock(&self.prices).clone();
        let started = Exporters::start(settings, &self.settings.upstream, &self.metrics, prices.as_ref())?;
        let mut exporters = self.exporters.write().unwrap_or_else(PoisonError::into_inner);
        // They may be others than those of the start.
        if let Some(book) = &*lock(&self.prices) {
            started.set_prices(book);
        }
        *exporters = Some(started);
        Ok(())
    }

    /// Calls `act` with the exporters, if there are any.
    pub(crate) fn exporters<R>(&self, act: impl FnOnce(&Exporters) -> R) -> Option<R> {
        self.exporters.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(act)
    }

    /// Removes the exporters and shuts them down. No exchange waits meanwhile.
    pub(crate) fn shutdown_exporters(&self) {
        let _change = lock(&self.exporters_change);
        let taken = self.exporters.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(taken) = taken {
            taken.shutdown();
        }
    }

    /// Returns the page of all metrics that have series, in the Prometheus text format 0.0.4. It lacks the numbers of the
    /// process: they are the host's, whose own page may have them.
    pub(crate) fn metrics_text(&self) -> String {
        let mut reading = self.metrics.reading();
        reading
            .families
            .retain(|family| !family.samples.is_empty() && !family.name().starts_with("process_"));
        let mut page = Vec::new();
        // A Vec takes any bytes.
        let _ = reading.write(Format::Text, &mut page);
        String::from_utf8(page).unwrap_or_default()
    }
}

/// The peer of a request whose peer is not given.
pub(crate) const UNKNOWN_PEER: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Locks; no panic leaves these values half changed, because they are replaced whole or are counters.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
