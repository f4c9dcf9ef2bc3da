//! One worker's cells. Invariant: one writer. Only the worker writes its cells, and a scrape on another thread reads
//! them; neither waits for the other.

use std::collections::HashMap;
use std::sync::Arc;

use meter::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, Stated, UsageStep};
use meter::{RateLimits, Record};
use meter::{RuleKind, TokenRejection};

use crate::labels::LabelSet;
use crate::model::ModelCells;
use crate::name_counts::NameCounts;
use crate::names::{self, OTHER, UNKNOWN};
use crate::objective;
use crate::proxy::ProxyCells;
use crate::recent::Recent;
use crate::registry::Registry;
use crate::tenant::TenantCells;
use crate::upstream::Address;

/// The observer of one worker. It can be moved to the worker's thread and is used only there.
#[derive(Debug)]
pub struct WorkerCells {
    registry: Arc<Registry>,
    proxy: Arc<ProxyCells>,
    /// By slot; the first is `_unknown`.
    slots: Vec<Slot>,
    /// The slots of this worker by label.
    by_name: HashMap<Arc<str>, ModelSlot>,
    /// All labels of models, once the registry is at its cap.
    at_cap: Option<LabelSet>,
    /// Counts of model names beyond the cap.
    beyond_cap: NameCounts,
    tenants: HashMap<Arc<str>, Arc<TenantCells>>,
    /// The entries of `tenants` that recent exchanges used.
    recent_tenants: Recent<Arc<TenantCells>>,
    /// All labels of tenants, once the registry is at its cap.
    tenants_at_cap: Option<LabelSet>,
    /// Counts of tenant names beyond the cap.
    tenants_beyond_cap: NameCounts,
    /// The number of evictions at the last [`Self::sync_labels`].
    evictions: u64,
    /// Slots of evicted labels that exchanges in flight still write.
    draining: Vec<ModelSlot>,
    /// Slots that can be reused.
    free: Vec<ModelSlot>,
}

/// The slot of the label that is opened first and never evicted.
const UNKNOWN_SLOT: ModelSlot = ModelSlot(0);

#[derive(Debug)]
struct Slot {
    cells: Arc<ModelCells>,
    /// Tokens by which the live counter exceeds the true count.
    overcount: u64,
}

impl WorkerCells {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        let proxy = registry.worker();
        let mut worker = Self {
            registry,
            proxy,
            slots: Vec::new(),
            by_name: HashMap::new(),
            at_cap: None,
            beyond_cap: NameCounts::default(),
            tenants: HashMap::new(),
            recent_tenants: Recent::default(),
            tenants_at_cap: None,
            tenants_beyond_cap: NameCounts::default(),
            evictions: 0,
            draining: Vec::new(),
            free: Vec::new(),
        };
        let unknown = worker.reserved(UNKNOWN);
        debug_assert_eq!(unknown, UNKNOWN_SLOT);
        worker
    }

    /// Returns the slot of a reserved label, to which no cap applies.
    fn reserved(&mut self, label: &str) -> ModelSlot {
        if let Some(slot) = self.by_name.get(label) {
            return *slot;
        }
        let (label, cells) = self.registry.open(label).expect("the cap does not count reserved labels");
        self.slot(label, cells)
    }

    fn slot(&mut self, label: Arc<str>, cells: Arc<ModelCells>) -> ModelSlot {
        let new = Slot { cells, overcount: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot.0 as usize] = new;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("slots are capped far below 2^32");
                self.slots.push(new);
                ModelSlot(slot)
            }
        };
        self.by_name.insert(label, slot);
        slot
    }

    /// Forgets the labels that were evicted since the last call: their blocks belong to `_other`. A slot is reused once
    /// its exchanges in flight have ended.
    fn sync_labels(&mut self) {
        let evictions = self.registry.evictions();
        if evictions == self.evictions {
            return;
        }
        self.evictions = evictions;
        self.recent_tenants.clear();
        (self.at_cap, self.tenants_at_cap) = self.registry.at_cap();
        if let Some(tenants) = &self.tenants_at_cap {
            self.tenants.retain(|label, _| names::is_reserved(label) || tenants.contains(label));
        }
        if let Some(models) = &self.at_cap {
            let evicted = |label: &Arc<str>| !names::is_reserved(label) && !models.contains(label);
            self.draining.extend(self.by_name.extract_if(|label, _| evicted(label)).map(|(_, slot)| slot));
        }
        let slots = &self.slots;
        let (in_flight, unused) = std::mem::take(&mut self.draining)
            .into_iter()
            .partition(|slot| slots[slot.0 as usize].cells.in_flight.get() > 0);
        self.draining = in_flight;
        let unused: Vec<ModelSlot> = unused;
        for slot in unused {
            // Dropping the block lets the registry merge it; a free slot refers to the block of `_unknown`.
            let unknown = Arc::clone(&self.slots[index(&self.slots, UNKNOWN_SLOT)].cells);
            let Slot { overcount, .. } =
                std::mem::replace(&mut self.slots[slot.0 as usize], Slot { cells: unknown, overcount: 0 });
            let other = self.reserved(OTHER);
            self.slots[other.0 as usize].overcount += overcount;
            self.free.push(slot);
        }
    }

    /// Counts a model beyond the cap and returns its slot if it replaced the least used label.
    fn replace_model(&mut self, name: &str) -> Option<ModelSlot> {
        let exchanges = self.beyond_cap.count(name);
        // Only at each doubling, so that a name beyond the cap rarely takes the lock.
        if exchanges < 2 || !exchanges.is_power_of_two() {
            return None;
        }
        let (label, cells) = self.registry.replace_model(name, exchanges)?;
        self.beyond_cap.remove(name);
        self.sync_labels();
        Some(self.slot(label, cells))
    }

    /// Counts a tenant beyond the cap and returns its cells if it replaced the least used label.
    fn replace_tenant(&mut self, name: &str) -> Option<Arc<TenantCells>> {
        let exchanges = self.tenants_beyond_cap.count(name);
        if exchanges < 2 || !exchanges.is_power_of_two() {
            return None;
        }
        let (label, cells) = self.registry.replace_tenant(name, exchanges)?;
        self.tenants_beyond_cap.remove(name);
        self.sync_labels();
        self.tenants.insert(label, Arc::clone(&cells));
        Some(cells)
    }

    /// Returns true if the registry may have a label for a name without a slot here.
    fn may_have_label(&self, name: &str) -> bool {
        self.at_cap.as_ref().is_none_or(|labels| labels.contains(name))
    }

    fn cells(&self, slot: ModelSlot) -> &ModelCells {
        &self.slots[index(&self.slots, slot)].cells
    }

    /// Adds a finished exchange to its tenant's cells, and the verdict of its objective.
    fn end_tenant(&mut self, model: ModelSlot, record: &Record) {
        let verdict = objective::judge(&self.registry.objectives, record);
        if let Some((at, verdict)) = verdict {
            self.cells(model).objectives.make(&at).end(verdict, &record.tokens);
        }
        // One look-up per exchange, because each counts a name beyond the cap.
        let tenant = self.tenant_cells(&record.identity.tenant);
        tenant.end(record);
        if let Some((at, verdict)) = verdict {
            tenant.verdicts.make(&at)[verdict as usize].add(1);
        }
    }

    /// Returns a tenant's cells. A name beyond the cap adds one `label_overflow`, as a model's.
    fn tenant_cells(&mut self, name: &Arc<str>) -> Arc<TenantCells> {
        self.sync_labels();
        if let Some(cells) = self.recent_tenants.get(name) {
            return Arc::clone(cells);
        }
        let Some(cells) = self.own_tenant_cells(name) else {
            self.proxy.overflow();
            return self.other_tenant_cells();
        };
        self.recent_tenants.keep(name, Arc::clone(&cells));
        cells
    }

    /// Returns a tenant's own cells; `None` if the cap makes it share those of `_other`.
    fn own_tenant_cells(&mut self, name: &str) -> Option<Arc<TenantCells>> {
        let name = names::label(name);
        let name = if name.is_empty() { UNKNOWN } else { &*name };
        self.sync_labels();
        self.open_tenant(name).or_else(|| self.replace_tenant(name))
    }

    fn other_tenant_cells(&mut self) -> Arc<TenantCells> {
        self.open_tenant(OTHER).expect("the cap does not count reserved labels")
    }

    /// Returns the cells of a tenant that has a label or, below the cap, gets one.
    fn open_tenant(&mut self, name: &str) -> Option<Arc<TenantCells>> {
        if let Some(cells) = self.tenants.get(name) {
            return Some(Arc::clone(cells));
        }
        let at_cap = self.tenants_at_cap.as_ref();
        if name != OTHER && at_cap.is_some_and(|labels| !labels.contains(name)) {
            return None;
        }
        match self.registry.open_tenant(name) {
            Ok((label, cells)) => {
                self.tenants.insert(label, Arc::clone(&cells));
                Some(cells)
            }
            Err(labels) => {
                self.tenants_at_cap = Some(labels);
                None
            }
        }
    }
}

impl Observer for WorkerCells {
    /// Adds one `label_overflow` for a name beyond the cap; the caller calls it once per exchange.
    fn model(&mut self, name: &str) -> ModelSlot {
        let name = names::label(name);
        self.sync_labels();
        if let Some(slot) = self.by_name.get(&*name) {
            return *slot;
        }
        match &*name {
            "" => return UNKNOWN_SLOT,
            OTHER => return self.reserved(OTHER),
            _ => {}
        }
        if self.may_have_label(&name) {
            match self.registry.open(&name) {
                Ok((label, cells)) => return self.slot(label, cells),
                Err(labels) => self.at_cap = Some(labels),
            }
        }
        if let Some(slot) = self.replace_model(&name) {
            return slot;
        }
        self.proxy.overflow();
        self.reserved(OTHER)
    }

    fn known_model(&mut self, name: &str) -> Option<ModelSlot> {
        let name = names::label(name);
        self.sync_labels();
        if let Some(slot) = self.by_name.get(&*name) {
            return Some(*slot);
        }
        if !self.may_have_label(&name) {
            return None;
        }
        let (label, cells) = self.registry.open_known(&name)?;
        Some(self.slot(label, cells))
    }

    fn unknown_model(&mut self) -> ModelSlot {
        UNKNOWN_SLOT
    }

    fn begin(&mut self, model: ModelSlot) {
        self.cells(model).in_flight.add(1);
    }

    fn admit(&mut self, from: ModelSlot, to: ModelSlot) {
        self.cells(from).in_flight.take(1);
        self.cells(to).in_flight.add(1);
    }

    fn live(&mut self, model: ModelSlot, tokens: u64, overcount: u64) {
        let at = index(&self.slots, model);
        let slot = &mut self.slots[at];
        slot.overcount = slot.overcount.saturating_add(overcount);
        let skipped = slot.overcount.min(tokens);
        slot.overcount -= skipped;
        slot.cells.live_tokens.add(tokens - skipped);
    }

    fn rate_limits(&mut self, model: ModelSlot, upstream: &Arc<str>, limits: &RateLimits) {
        self.cells(model).upstreams.make(upstream).rate_limits.make().set(limits);
    }

    fn end(&mut self, model: ModelSlot, record: &Record) {
        let server = Address::of(&self.registry.upstreams, &record.identity.upstream);
        let cells = self.cells(model);
        cells.in_flight.take(1);
        cells.end_leg(record);
        cells.disagree(record);
        // The decode leg counts the tokens and the time to first token of a prefill leg.
        if !record.identity.role.is_counted() {
            return;
        }
        cells.end(record, server, self.registry.semconv);
        self.proxy.end(&record.tokens);
        self.end_tenant(model, record);
    }

    fn abandon(&mut self, model: ModelSlot) {
        self.cells(model).in_flight.take(1);
    }

    fn passthrough(&mut self, reason: Passthrough) {
        self.proxy.passthrough[reason as usize].add(1);
    }

    fn mislabelled(&mut self, stated: Stated) {
        self.proxy.mislabelled[stated as usize].add(1);
    }

    fn refuse(&mut self, reason: Refusal) {
        self.proxy.refused[reason as usize].add(1);
    }

    fn reject(&mut self, tenant: &str, reason: Refusal) {
        let cells = self.own_tenant_cells(tenant).unwrap_or_else(|| self.other_tenant_cells());
        cells.refused[reason as usize].add(1);
    }

    fn tenant(&mut self, rule: RuleKind) {
        self.proxy.tenant_rules[rule as usize].add(1);
    }

    fn untrusted_header(&mut self) {
        self.proxy.untrusted_headers.add(1);
    }

    fn untrusted_token(&mut self, why: TokenRejection) {
        self.proxy.untrusted_tokens[why as usize].add(1);
    }

    fn usage(&mut self, step: UsageStep) {
        self.proxy.usage[step as usize].add(1);
    }

    fn dropped(&mut self, what: Dropped, count: u64) {
        self.proxy.dropped[what as usize].add(count);
    }

    fn overhead(&mut self, class: Class, ns: u64) {
        self.proxy.overhead(class, ns);
    }
}

/// Returns the index of a slot. A slot of another worker is a bug of the caller; it counts as `_unknown` instead of a
/// panic, which would end a connection.
fn index(slots: &[Slot], slot: ModelSlot) -> usize {
    let at = slot.0 as usize;
    if at < slots.len() { at } else { 0 }
}
