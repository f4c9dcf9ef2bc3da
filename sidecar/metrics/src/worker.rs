//! One worker's cells. The law: one writer. A worker writes plain cells that only it writes, and a
//! scrape on another thread reads them; neither waits for the other.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use meter::Record;
use relay::{Class, Dropped, ModelSlot, Observer, Passthrough, Refusal, UsageStep};
use tenant::{Distrust, RuleKind};

use crate::board::Board;
use crate::claims::Claims;
use crate::labels::Closed;
use crate::model::ModelCells;
use crate::names::{self, OTHER, UNKNOWN};
use crate::objective;
use crate::proxy::ProxyCells;
use crate::tenant::TenantCells;
use crate::upstream::Address;

/// What one worker observes. It may be moved to the worker's thread, and is used on that alone.
#[derive(Debug)]
pub struct WorkerCells {
    board: Arc<Board>,
    proxy: Arc<ProxyCells>,
    /// By slot; the first is `_unknown`.
    slots: Vec<Slot>,
    /// The labels this worker has slots for: at most the board's.
    by_name: HashMap<Arc<str>, ModelSlot>,
    /// All labels there are, once the board told us that it is full.
    closed: Option<Closed>,
    /// Names beyond the cap.
    claims: Claims,
    tenants: HashMap<Arc<str>, Arc<TenantCells>>,
    /// As `closed`, of the tenants.
    tenants_closed: Option<Closed>,
    tenant_claims: Claims,
    /// The number of labels that had been given back at the last look.
    given_back: u64,
    /// Slots whose label was given back, and that exchanges under way still write.
    ending: Vec<ModelSlot>,
    /// Slots for other names.
    free: Vec<ModelSlot>,
}

#[derive(Debug)]
struct Slot {
    cells: Arc<ModelCells>,
    /// Tokens the live counter is ahead of the truth.
    debt: u64,
}

impl WorkerCells {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        let proxy = board.worker();
        let mut worker = Self {
            board,
            proxy,
            slots: Vec::new(),
            by_name: HashMap::new(),
            closed: None,
            claims: Claims::default(),
            tenants: HashMap::new(),
            tenants_closed: None,
            tenant_claims: Claims::default(),
            given_back: 0,
            ending: Vec::new(),
            free: Vec::new(),
        };
        worker.reserved(UNKNOWN);
        worker
    }

    /// The slot of one of our own labels, for which there is always room.
    fn reserved(&mut self, label: &str) -> ModelSlot {
        if let Some(slot) = self.by_name.get(label) {
            return *slot;
        }
        let (label, cells) = self.board.open(label).expect("the cap does not count our own labels");
        self.slot(label, cells)
    }

    fn slot(&mut self, label: Arc<str>, cells: Arc<ModelCells>) -> ModelSlot {
        let new = Slot { cells, debt: 0 };
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

    /// Lets go of labels that were given back since the last call: their blocks are `_other`'s.
    fn catch_up(&mut self) {
        let given_back = self.board.given_back();
        if given_back == self.given_back {
            return;
        }
        self.given_back = given_back;
        (self.closed, self.tenants_closed) = self.board.closed();
        if let Some(tenants) = &self.tenants_closed {
            self.tenants.retain(|label, _| names::is_ours(label) || tenants.contains(label));
        }
        if let Some(models) = &self.closed {
            let gone = |label: &Arc<str>| !names::is_ours(label) && !models.contains(label);
            self.ending.extend(self.by_name.extract_if(|label, _| gone(label)).map(|(_, slot)| slot));
        }
        let slots = &self.slots;
        let (running, ended) = std::mem::take(&mut self.ending)
            .into_iter()
            .partition(|slot| slots[slot.0 as usize].cells.in_flight.get() > 0);
        self.ending = running;
        let ended: Vec<ModelSlot> = ended;
        for slot in ended {
            // The block is let go of; a free slot has one that is always there.
            let unknown = Arc::clone(&self.slots[0].cells);
            let Slot { debt, .. } =
                std::mem::replace(&mut self.slots[slot.0 as usize], Slot { cells: unknown, debt: 0 });
            let other = self.reserved(OTHER);
            self.slots[other.0 as usize].debt += debt;
            self.free.push(slot);
        }
    }

    /// The slot of a name beyond the cap, if it has earned a label.
    fn claim(&mut self, name: &str) -> Option<ModelSlot> {
        let exchanges = self.claims.count(name);
        // Asked for at each doubling, so that a name beyond the cap rarely costs a lock.
        if exchanges < 2 || !exchanges.is_power_of_two() {
            return None;
        }
        let (label, cells) = self.board.claim(name, exchanges)?;
        self.claims.settle(name);
        self.catch_up();
        Some(self.slot(label, cells))
    }

    /// Returns true if a tenant beyond the cap has earned a label.
    fn claim_tenant(&mut self, name: &str) -> bool {
        let exchanges = self.tenant_claims.count(name);
        if exchanges < 2 || !exchanges.is_power_of_two() {
            return false;
        }
        let Some((label, cells)) = self.board.claim_tenant(name, exchanges) else { return false };
        self.tenant_claims.settle(name);
        self.catch_up();
        self.tenants.insert(label, cells);
        true
    }

    /// Whether the board could know a name that we do not.
    fn may_have_label(&self, name: &str) -> bool {
        self.closed.as_ref().is_none_or(|labels| labels.contains(name))
    }

    fn cells(&self, slot: ModelSlot) -> &ModelCells {
        &self.slots[index(&self.slots, slot)].cells
    }

    /// Adds an ended exchange to its tenant's cells, and what came of the objective, if one covers it.
    fn end_of_tenant(&mut self, model: ModelSlot, record: &Record) {
        let judged = objective::judge(&self.board.objectives, record);
        if let Some((at, verdict)) = judged {
            self.cells(model).objectives.make(&at).end(verdict, &record.tokens);
        }
        // Asked for once, since a name beyond the cap is counted.
        let tenant = self.tenant_cells(&record.identity.tenant);
        tenant.end(record);
        if let Some((at, verdict)) = judged {
            tenant.verdicts.make(&at)[verdict as usize].add(1);
        }
    }

    /// A tenant's cells. A name beyond the cap counts one `label_overflow`, as a model's does.
    fn tenant_cells(&mut self, name: &str) -> &TenantCells {
        let label = self.tenant_label(name);
        if label.is_none() {
            self.proxy.overflow();
        }
        &self.tenants[label.as_deref().unwrap_or(OTHER)]
    }

    /// The label under which a tenant has cells, which are made; `None` if that is `_other` for want of
    /// room.
    fn tenant_label<'a>(&mut self, name: &'a str) -> Option<Cow<'a, str>> {
        let name = names::label(name);
        let name = if name.is_empty() { Cow::Borrowed(UNKNOWN) } else { name };
        self.catch_up();
        if self.open_tenant(&name) || self.claim_tenant(&name) {
            return Some(name);
        }
        self.open_tenant(OTHER);
        None
    }

    /// Whether the tenant has a label, made if there is room for it.
    fn open_tenant(&mut self, name: &str) -> bool {
        if self.tenants.contains_key(name) {
            return true;
        }
        let closed = self.tenants_closed.as_ref();
        if name != OTHER && closed.is_some_and(|labels| !labels.contains(name)) {
            return false;
        }
        match self.board.open_tenant(name) {
            Ok((label, cells)) => {
                self.tenants.insert(label, cells);
                true
            }
            Err(labels) => {
                self.tenants_closed = Some(labels);
                false
            }
        }
    }
}

impl Observer for WorkerCells {
    /// A name beyond the cap counts one `label_overflow`, so this is asked once per exchange.
    fn model(&mut self, name: &str) -> ModelSlot {
        let name = names::label(name);
        self.catch_up();
        if let Some(slot) = self.by_name.get(&*name) {
            return *slot;
        }
        match &*name {
            "" => return self.reserved(UNKNOWN),
            OTHER => return self.reserved(OTHER),
            _ => {}
        }
        if self.may_have_label(&name) {
            match self.board.open(&name) {
                Ok((label, cells)) => return self.slot(label, cells),
                Err(labels) => self.closed = Some(labels),
            }
        }
        if let Some(slot) = self.claim(&name) {
            return slot;
        }
        self.proxy.overflow();
        self.reserved(OTHER)
    }

    fn known_model(&mut self, name: &str) -> Option<ModelSlot> {
        let name = names::label(name);
        self.catch_up();
        if let Some(slot) = self.by_name.get(&*name) {
            return Some(*slot);
        }
        if !self.may_have_label(&name) {
            return None;
        }
        let (label, cells) = self.board.open_known(&name)?;
        Some(self.slot(label, cells))
    }

    fn unknown_model(&mut self) -> ModelSlot {
        self.reserved(UNKNOWN)
    }

    fn begin(&mut self, model: ModelSlot) {
        self.cells(model).in_flight.add(1);
    }

    fn admit(&mut self, from: ModelSlot, to: ModelSlot) {
        self.cells(from).in_flight.take(1);
        self.cells(to).in_flight.add(1);
    }

    fn live(&mut self, model: ModelSlot, tokens: u64, owed: u64) {
        let at = index(&self.slots, model);
        let slot = &mut self.slots[at];
        slot.debt = slot.debt.saturating_add(owed);
        let paid = slot.debt.min(tokens);
        slot.debt -= paid;
        slot.cells.live_tokens.add(tokens - paid);
    }

    fn end(&mut self, model: ModelSlot, record: &Record) {
        let server = Address::of(&self.board.upstreams, &record.identity.upstream);
        let cells = self.cells(model);
        cells.in_flight.take(1);
        cells.end_leg(record);
        // Its tokens and its time to first token are the decode leg's.
        if !record.identity.role.is_counted() {
            return;
        }
        cells.end(record, server, self.board.semconv);
        self.proxy.end(&record.tokens);
        self.end_of_tenant(model, record);
    }

    fn abandon(&mut self, model: ModelSlot) {
        self.cells(model).in_flight.take(1);
    }

    fn pass(&mut self, reason: Passthrough) {
        self.proxy.passthrough[reason as usize].add(1);
    }

    fn refuse(&mut self, reason: Refusal) {
        self.proxy.refused[reason as usize].add(1);
    }

    fn turn_away(&mut self, tenant: &str, reason: Refusal) {
        let label = self.tenant_label(tenant);
        self.tenants[label.as_deref().unwrap_or(OTHER)].refused[reason as usize].add(1);
    }

    fn tenant(&mut self, rule: RuleKind) {
        self.proxy.tenant_rules[rule as usize].add(1);
    }

    fn untrusted_header(&mut self) {
        self.proxy.untrusted_headers.add(1);
    }

    fn untrusted_token(&mut self, why: Distrust) {
        self.proxy.untrusted_tokens[why as usize].add(1);
    }

    fn usage(&mut self, step: UsageStep) {
        self.proxy.usage[step as usize].add(1);
    }

    fn lose(&mut self, what: Dropped, count: u64) {
        self.proxy.dropped[what as usize].add(count);
    }

    fn overhead(&mut self, class: Class, ns: u64) {
        self.proxy.overhead(class, ns);
    }
}

/// Where a slot lies. One that is not this worker's is a bug of the caller, and counts as `_unknown`
/// rather than end a connection.
fn index(slots: &[Slot], slot: ModelSlot) -> usize {
    let at = slot.0 as usize;
    if at < slots.len() { at } else { 0 }
}
