//! The end of an exchange: its record, and what it shows of its upstream.

use std::sync::Arc;

use meter::{
    Close, Dropped, Ending, ExchangeId, Identity, LoadSpan, Meter, Observer, Passthrough, Provenance, Record,
    Stated, Tick, Tokens, Trace,
};
use scan::{Dialect, Names};
use usage::UsageFilter;

use super::Exchange;
use crate::names::shared;
use crate::response_reader::BodySummary;

/// The facts in a record that only the caller knows.
pub struct CallerFacts {
    /// The id of the exchange.
    pub id: ExchangeId,
    /// The time of its start in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The id that the client gave the request, by [`request_id`](crate::request_id).
    pub request_id: Option<Arc<str>>,
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The name of the upstream's provider.
    pub provider: Arc<str>,
    /// False if that name is assumed.
    pub is_provider_known: bool,
    /// The trace that the exchange belongs to.
    pub trace: Option<Box<Trace>>,
}

/// An exchange that has ended.
pub struct Ended {
    /// Its record: large, so it stays in one allocation on its way to the ledger.
    pub record: Arc<Record>,
    /// Frames that could not be read.
    pub unparsed: u64,
    /// The content type of the response, if it is wrong.
    pub mislabelled: Option<Stated>,
    /// The body was neither SSE, NDJSON nor JSON, as its first bytes showed.
    pub is_unreadable: bool,
    /// The client received effects of added options that could not be removed, which the head did not show.
    pub keeps_added: bool,
    /// The answer's text, if it was kept and the record has no better count.
    pub text: Option<Vec<u8>>,
    /// The answer names another model than the request did.
    pub is_renamed: bool,
    /// The dialect was unknown until the end.
    pub was_unknown: bool,
    /// The request shows no sign of a run of a model. Its answer may be an earlier one, which was counted.
    pub may_repeat: bool,
    /// It names the answer by its id: the answer is an earlier one, or the result of detached work.
    pub is_named: bool,
    /// The id of detached work, if that is what the answer accepts and names.
    pub job: Option<Arc<str>>,
    /// The facts that the response shows of its upstream.
    pub habits: UsageHabits,
}

impl Ended {
    /// Counts in the observer what the exchange lost: counts that were rejected, frames and a body that could not be
    /// read, a failed edit. And a wrong content type.
    pub fn count_losses(&self, observer: &mut dyn Observer) {
        for (item, count) in [
            (Dropped::UsageRejected, u64::from(self.record.usage_rejected)),
            (Dropped::FrameUnparsed, self.unparsed),
            (Dropped::UsageEdit, u64::from(self.keeps_added)),
        ] {
            if count > 0 {
                observer.dropped(item, count);
            }
        }
        if let Some(stated) = self.mislabelled {
            observer.mislabelled(stated);
        }
        if self.is_unreadable {
            observer.passthrough(Passthrough::ContentType);
        }
    }
}

/// The usage that a server reports without a request for it, as far as one response shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageHabits {
    /// It sent usage that was not requested.
    pub sends_usage: bool,
    /// A whole stream in which usage was not requested had none.
    pub sends_no_usage: bool,
    /// A whole stream had a count of any kind, or none. `None` if the response was not a whole stream.
    pub reports: Option<bool>,
}

impl Exchange {
    /// Ends the exchange at `at`, once: [`Close::Clean`] after a complete body, [`Close::Cut`] after a truncated one,
    /// [`Close::ClientGone`] if the client left, at [`left`](Self::left) if the rest was read, [`Close::Local`] if the
    /// caller answered or gave up. The exchange itself finds whether the body is `whole`. `load` is the load of its
    /// upstream meanwhile. `None` if it makes no record: nothing of inference was seen, or it was over before.
    pub fn end(&mut self, close: Close, load: LoadSpan, at: Tick, caller: CallerFacts) -> Option<Ended> {
        if self.meter.is_none() || !self.is_inference() {
            self.dismiss();
            return None;
        }
        // It may end before its request is complete.
        self.request_complete(at);
        let mut meter = self.meter.take()?;
        let (close, mut body) = self.end_body(&mut meter, close, at);
        let was_unknown = self.dialect == Dialect::Unknown;
        let runs_model = meter.request().runs_model();
        let has_body = self.named_ids.as_ref().is_none_or(|ids| ids.has_body());
        let shows_run = meter.is_counted_by_engine() || runs_model && has_body;
        let may_repeat = self.is_fetch || self.is_of_unknown_path() && !shows_run;
        let is_tentative = was_unknown && !self.is_streamed();
        if let Some(dialect) = body.answered {
            self.dialect = dialect;
            meter.set_dialect(dialect);
        }
        // If several places of the request name a model, the answer names the one that the server read.
        let is_renamed = self.model.answered(&body.names.model);
        let is_compacted = body.names.is_compacted;
        let identity = self.identity(std::mem::take(&mut body.names), caller);
        let mut record = meter.end(identity, close, load, at);
        record.is_compacted = is_compacted;
        record.upstream_attempts = self.sent.attempts;
        self.role.end(record.tokens.output());
        record.identity.role = self.role.get();
        let job = body.job.take().or_else(|| record.identity.response_id.clone());
        let is_detached = self.is_detached(&record, runs_model, job.is_some());
        if is_detached {
            record.ending = Ending::Detached;
        } else if is_tentative && is_uncounted(&record) && record.unknown_counts.is_empty() {
            return None;
        }
        let named_ids = self.named_ids.take().filter(|_| may_repeat && !self.is_fetch);
        let is_named =
            named_ids.zip(record.identity.response_id.as_deref()).is_some_and(|(ids, id)| ids.contain(id));
        let habits = self.habits(&record);
        let text = body.text.take().filter(|text| is_text_better(&record, text));
        if self.may_lack_usage && text.is_none() && record.tokens.output_provenance == Provenance::Frames {
            // A price by frames would be what the client chose.
            record.tokens = Tokens::NONE;
        }
        let record = Arc::new(record);
        let keeps_added =
            self.response.as_ref().is_some_and(|response| response.keeps_added && response.is_streamed());
        let BodySummary { unparsed, mislabelled, is_unreadable, .. } = body;
        let facts = Ended {
            record,
            unparsed,
            mislabelled,
            is_unreadable,
            keeps_added,
            text,
            is_renamed,
            was_unknown,
            may_repeat,
            is_named,
            job: job.filter(|_| is_detached),
            habits,
        };
        Some(facts)
    }

    /// Returns true if the answer accepts detached work: a success without output and without usage, to a request for
    /// output. `runs_model`: the request has a prompt, or could not be read.
    fn is_detached(&self, record: &Record, runs_model: bool, has_id: bool) -> bool {
        let is_empty = record.choices == 0 && record.visible_chars == 0 && is_uncounted(record);
        let is_whole = !record.streamed && matches!(record.ending, Ending::Complete | Ending::NoOutput);
        let asks_output = match self.dialect {
            Dialect::Unknown => runs_model && (has_id || record.status == 202),
            dialect => dialect.generates() && (has_id || record.status == 202),
        };
        let is_success = (200..300).contains(&record.status);
        is_empty && is_whole && is_success && asks_output && !self.is_fetch && !self.may_lack_usage
    }

    /// Ends the body. Returns its ending and its facts.
    fn end_body(&mut self, meter: &mut Meter, mut close: Close, at: Tick) -> (Close, BodySummary) {
        let Some(response) = &mut self.response else { return (close, BodySummary::default()) };
        let Some(reader) = response.reader.take() else { return (close, self.take_summary()) };
        let mut reading = meter.tail(at);
        let body = match &mut response.usage_filter {
            Some(usage_filter) => reader.end(&mut usage_filter.listen(&mut reading)),
            None => reader.end(&mut reading),
        };
        if let Close::Clean { whole } | Close::ClientGone { whole } = &mut close {
            *whole = body.tail.whole;
        }
        (close, body)
    }

    /// Returns the identity of the record; `names` are those in the response.
    fn identity(&mut self, names: Names, caller: CallerFacts) -> Identity {
        let who = self.tenant.identity();
        let asked = self.request.take_facts();
        let stated_tier = names.price_tier();
        Identity {
            exchange: caller.id,
            tenant: who.tenant,
            principal: who.principal,
            consumer: who.consumer,
            is_tier_reported: stated_tier.is_some(),
            service_tier: stated_tier.or_else(|| asked.tier.clone()),
            requested_tier: asked.tier,
            upstream: caller.upstream,
            provider: caller.provider,
            is_provider_known: caller.is_provider_known,
            role: self.role.get(),
            request_id: caller.request_id,
            dialect: self.dialect,
            other_models: self.model.take_others(),
            model: shared(self.model.name.clone()),
            response_model: names.model.map(|model| shared(Some(model))),
            response_id: names.id,
            links: asked.links,
            trace: caller.trace,
            started_unix_ns: caller.started_unix_ns,
        }
    }

    /// Returns whether the response had counts, and whether it had them without a request for them.
    fn habits(&self, record: &Record) -> UsageHabits {
        let usage_filter = self.response.as_ref().and_then(|response| response.usage_filter.as_ref());
        let sends_usage = usage_filter.is_some_and(UsageFilter::sends_unrequested);
        let counted = record.tokens.output_provenance;
        let is_whole_stream = record.streamed
            && record.ending.is_success()
            && self.dialect.generates()
            && !matches!(counted, Provenance::None | Provenance::Engine);
        let asked = usage_filter.is_none_or(UsageFilter::asked);
        UsageHabits {
            sends_usage,
            sends_no_usage: is_whole_stream && !sends_usage && !asked && counted != Provenance::Reported,
            reports: is_whole_stream.then_some(counted != Provenance::Frames),
        }
    }
}

/// Returns true if the answer carries no count.
fn is_uncounted(record: &Record) -> bool {
    let tokens = &record.tokens;
    (tokens.input_provenance, tokens.output_provenance) == (Provenance::None, Provenance::None)
}

/// Returns true if a count of the answer's text is better than that of the record.
fn is_text_better(record: &Record, text: &[u8]) -> bool {
    let is_estimate = record.tokens.output_provenance == Provenance::Frames;
    let is_unstated = !record.streamed && record.tokens.output_provenance == Provenance::None;
    is_estimate || is_unstated && !text.is_empty()
}
