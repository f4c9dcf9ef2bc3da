//! Counts of the host's own engine: exact for every ending, also of requests whose client left.

use ::exchange::{Route, Speaks, TenantResolution, checked_request_id};
use http::HeaderMap;
use meter::{EnginePrompt, EngineStep, RuleKind, Tick};
use scan::{Dialect, Finish, Name, Request};
use tenant::TenantIdentity;

use crate::embedded::Embedded;
use crate::entry::entry;
use crate::handles::{EXCHANGES, ExchangeHandle, MeterHandle};
use crate::meter::host;
use crate::slice::{self, Slice, Versioned};
use crate::status::{Fault, Status};

/// A request as the host describes it, in place of its head and body.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Begin {
    /// `sizeof(tm_begin)`.
    pub size: usize,
    /// The kind of request, one of the names of `TM_TEXT_VALUE_DIALECT`. Required.
    pub dialect: Slice,
    /// The model.
    pub model: Slice,
    /// The tenant: a name without control characters that does not begin with `_`. Empty: `default`.
    pub tenant: Slice,
    /// The account of the request within the tenant. Records show it: it is not a secret.
    pub principal: Slice,
    /// The id that the client gave the request.
    pub request_id: Slice,
    /// The number of requested answers; 0 means 1.
    pub answers: u32,
    /// 1 if the client asked for a stream.
    pub stream: u32,
    /// The time at which the request was complete, by the host's monotonic clock.
    pub at_ns: u64,
    /// The same time in nanoseconds since 1970.
    pub unix_ns: u64,
}

// SAFETY: `repr(C)`, the size first, then pointers and integers.
unsafe impl Versioned for Begin {}

/// Begins an exchange without an HTTP request, whose tokens the host counts. The request is complete. For the times of
/// tokens, give it a response head with the status 200 and the field `content-type: text/event-stream`. End each answer
/// by `tm_exchange_finish`. `exchange` is 0 unless the call returns `TM_STATUS_OK`.
///
/// # Safety
/// `begin` points to a structure of the size in it; `exchange` is NULL or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_begin_described(
    meter: MeterHandle,
    begin: *const Begin,
    exchange: *mut ExchangeHandle,
) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        unsafe { slice::write(exchange, ExchangeHandle::default()) }?;
        let host = host(meter)?;
        // SAFETY: the caller's contract.
        let begin = unsafe { slice::sized(begin) }?;
        // SAFETY: the caller's contract.
        let (dialect, model, tenant, principal, request_id) = unsafe {
            (
                begin.dialect.text()?,
                begin.model.text()?,
                begin.tenant.text()?,
                begin.principal.text()?,
                begin.request_id.bytes()?,
            )
        };
        let dialect = Dialect::ALL.into_iter().find(|known| known.name() == dialect).ok_or_else(|| {
            Fault::new(Status::Value, format!("there is no dialect `{}`", dialect.escape_debug()))
        })?;
        let identity = TenantIdentity {
            tenant: match tenant {
                "" => meter::DEFAULT_TENANT.into(),
                name => tenant::Name::of_tenant(name)
                    .ok_or_else(|| {
                        Fault::new(Status::Text, format!("`{}` cannot name a tenant", name.escape_debug()))
                    })?
                    .text()
                    .clone(),
            },
            principal: (!principal.is_empty())
                .then(|| principal[..principal.floor_char_boundary(tenant::NAME_MAX_BYTES)].into()),
            consumer: None,
            rule: RuleKind::Default,
        };
        // As with a header, another text is no id: the client chooses it, and must not prevent the metering.
        let request_id = checked_request_id(request_id).map(Into::into);
        let facts = Request {
            model: Name::cut(model.as_bytes()).shared(),
            stream: Some(begin.stream != 0),
            answers: begin.answers.max(1),
            prompts: 1,
            whole: true,
            ..Request::default()
        };
        let route = Route::new(Speaks::Known(dialect));
        let tenant = (host.choose_shard(), TenantResolution::from(identity));
        let times = (Tick(begin.at_ns), begin.unix_ns);
        let id = EXCHANGES.insert_with(|| {
            let mut embedded = Embedded::begin(host, route, tenant, HeaderMap::new(), times);
            embedded.describe(facts, request_id);
            embedded
        })?;
        // SAFETY: the caller's contract.
        unsafe { slice::write(exchange, ExchangeHandle { id }) }?;
        Ok(Status::Ok)
    })
}

/// Makes the host the source of the token counts and of their times: their provenance is `TM_PROVENANCE_ENGINE`. Counts
/// that the body gave before are discarded. The prompt is counted by the body as long as no prompt was added. The three
/// functions below do the same at their first call; without this call, an exchange that ends before a token is counted
/// by its body. Call it for an engine that counts each exchange.
#[unsafe(no_mangle)]
pub extern "C" fn tm_exchange_count_by_engine(exchange: ExchangeHandle) -> Status {
    entry(|| {
        EXCHANGES.with(exchange.id, |exchange| {
            exchange.count_by_engine();
            Ok(Status::Ok)
        })
    })
}

/// The value of a count that the host does not know.
pub const TM_UNKNOWN: u64 = u64::MAX;

/// The prompt of one generation. `input` counts all its tokens; the other counts are parts of it. 0 is a count:
/// `TM_UNKNOWN` stands for one that the engine does not know.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PromptTokens {
    /// `sizeof(tm_prompt_tokens)`.
    pub size: usize,
    /// All prompt tokens. `TM_UNKNOWN` is rejected.
    pub input: u64,
    /// Those served from a cache.
    pub cached: u64,
    /// Those computed and written to a cache.
    pub cache_write: u64,
    /// Those of audio.
    pub audio: u64,
    /// Those of images.
    pub image: u64,
    /// Those of videos.
    pub video: u64,
}

impl Default for PromptTokens {
    fn default() -> Self {
        Self {
            size: 0,
            input: 0,
            cached: TM_UNKNOWN,
            cache_write: TM_UNKNOWN,
            audio: TM_UNKNOWN,
            image: TM_UNKNOWN,
            video: TM_UNKNOWN,
        }
    }
}

// SAFETY: `repr(C)`, the size first, then integers.
unsafe impl Versioned for PromptTokens {}

/// Adds a prompt that the engine processed. The prompts of an exchange add up. Call it once for all answers to one
/// prompt, and once for each prompt of a list and for each round of a tool loop.
///
/// # Safety
/// `prompt` points to a structure of the size in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_prompt_tokens(
    exchange: ExchangeHandle,
    prompt: *const PromptTokens,
) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let prompt = unsafe { slice::sized(prompt) }?;
        let known = |count: u64| (count != TM_UNKNOWN).then_some(count);
        let prompt = EnginePrompt {
            input: prompt.input,
            cached: known(prompt.cached),
            cache_write: known(prompt.cache_write),
            audio: known(prompt.audio),
            image: known(prompt.image),
            video: known(prompt.video),
        };
        EXCHANGES.with(exchange.id, |exchange| {
            exchange.engine_prompt(prompt);
            Ok(Status::Ok)
        })
    })
}

/// The new tokens of one answer in one step of the engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OutputTokens {
    /// The exchange.
    pub exchange: ExchangeHandle,
    /// The answer's index, from 0.
    pub choice: u32,
    /// The new tokens, hidden ones included.
    pub tokens: u32,
    /// Those of them in reasoning. A number above `tokens` counts as `tokens`.
    pub reasoning: u32,
    /// The result for this exchange, a `tm_status`. Written by the call.
    pub status: i32,
}

/// Adds the tokens of one step of the engine to any number of exchanges. `at_ns` is the time of the step. An exchange
/// may occur several times. The call writes the status of each element. It returns the first failure among them, and
/// the tokens of the others count.
///
/// # Safety
/// `steps` points to `count` elements, which are read and whose status is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_output_tokens_add(steps: *mut OutputTokens, count: usize, at_ns: u64) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let steps = unsafe { slice::array_mut(steps, count) }?;
        let mut first = None;
        for each in steps {
            let step = EngineStep { choice: each.choice, tokens: each.tokens, reasoning: each.reasoning };
            let added = EXCHANGES.with(each.exchange.id, |exchange| {
                exchange.engine_step(step, Tick(at_ns));
                Ok(Status::Ok)
            });
            each.status = added.as_ref().map_or_else(|fault| fault.status, |status| *status) as i32;
            first = first.or(added.err());
        }
        first.map_or(Ok(Status::Ok), Err)
    })
}

/// Ends an answer. `reason` is the engine's word: `stop`, `length`, `tool_calls`, `content_filter`, `abort`, or the
/// word of a known API; any other word counts as `other`. Without a body, the ending of the exchange is `complete` or
/// `length` only if every answer ended. `TM_STATUS_VALUE` if the word is empty.
///
/// # Safety
/// `reason` points to its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_finish(exchange: ExchangeHandle, choice: u32, reason: Slice) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let word = unsafe { reason.bytes() }?;
        let reason =
            Finish::from_word(word).ok_or_else(|| Fault::new(Status::Value, "the reason is empty"))?;
        EXCHANGES.with(exchange.id, |exchange| {
            exchange.engine_finish(choice, reason);
            Ok(Status::Ok)
        })
    })
}
