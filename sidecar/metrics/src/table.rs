//! The one table of every metric: its name, kind, unit, labels and meaning. The law: code, the
//! manual (`metrics.md`) and the tests read this table and nothing else. A sample can only be
//! written through a [`Metric`], and the collector's match over [`Metric`] leaves none unwritten.

use meter::edges;

mod otlp;

pub use otlp::{Instrument, attribute};

/// What is known about one metric.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The Prometheus name as it is queried: a counter's ends in `_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// What one unit of its value is.
    pub unit: Unit,
    /// Its labels, in the order of the page; each is described in [`LABELS`].
    pub labels: &'static [&'static str],
    /// One sentence; the page's HELP text.
    pub meaning: &'static str,
}

impl Entry {
    /// The name of the family on an OpenMetrics page: a counter's without its `_total`.
    pub fn family(&self) -> &'static str {
        match self.kind {
            Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Gauge | Histogram(_) => self.name,
        }
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations in buckets with these upper edges (inclusive), and one open bucket above.
    Histogram(&'static [f64]),
}

impl Kind {
    /// The word used on the page and in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// What one unit of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Something per second; the name says what.
    PerSecond,
    /// Tokens.
    Tokens,
    /// Characters of visible text.
    Characters,
    /// Exchanges: a request and its response.
    Exchanges,
    /// HTTP requests.
    Requests,
    /// Things counted, which the meaning names.
    Things,
    /// A share, 0 to 1.
    Ratio,
    /// A truth value, 0 or 1.
    Truth,
}

impl Unit {
    /// The word used in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::PerSecond => "per second",
            Self::Tokens => "tokens",
            Self::Characters => "characters",
            Self::Exchanges => "exchanges",
            Self::Requests => "requests",
            Self::Things => "–",
            Self::Ratio => "0 to 1",
            Self::Truth => "0 or 1",
        }
    }

    /// The word a name must carry because of its unit. Counts are named after what they count.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::PerSecond => Some("per_second"),
            Self::Ratio => Some("ratio"),
            _ => None,
        }
    }

    /// The word of the page's UNIT line. OpenMetrics has none for a rate or a currency, and counts
    /// only its own base units.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Seconds | Self::Bytes => self.suffix(),
            _ => None,
        }
    }
}

/// What a label says.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The label's name.
    pub name: &'static str,
    /// What its values are; the manual adds the list where it is closed.
    pub meaning: &'static str,
}

/// Every label, described once.
pub const LABELS: &[Label] = &[
    Label {
        name: "model",
        meaning: "The model the request named, at most 128 bytes; `_other` beyond the cap, `_unknown` before it is known",
    },
    Label { name: "dialect", meaning: "The JSON shape spoken at the endpoint" },
    Label { name: "ending", meaning: "How the exchange ended and whose doing it was" },
    Label { name: "reason", meaning: "Why; each metric has its own closed list" },
    Label { name: "type", meaning: "The kind of token; kinds are disjoint" },
    Label { name: "provenance", meaning: "How the count is known" },
    Label { name: "direction", meaning: "`input` (the prompt) or `output` (the answer)" },
    Label {
        name: "weight",
        meaning: "Whether each frame's token count was known or the total was spread over the frames",
    },
    Label {
        name: "concurrency",
        meaning: "Mean number of exchanges in flight at the upstream during the exchange, rounded",
    },
    Label { name: "position", meaning: "Where in the answer: a range of output token positions" },
    Label { name: "step", meaning: "What was done about a request's usage" },
    Label { name: "class", meaning: "`stream` for answers in frames, `body` for answers in one piece" },
    Label { name: "what", meaning: "What was lost" },
    Label { name: "objective", meaning: "The objective's name, as configured" },
    Label { name: "verdict", meaning: "What came of the objective in the exchange" },
    Label {
        name: "tenant",
        meaning: "Whose exchange it was: `default` where nobody is told apart; `_other` beyond a hundred",
    },
    Label { name: "upstream", meaning: "The inference server's name, as configured" },
    Label { name: "kind", meaning: "The kind of inference server, as configured or as it was recognised" },
    Label { name: "version", meaning: "The version of this program" },
    Label { name: "gen_ai_operation_name", meaning: "`gen_ai.operation.name` of the semantic convention" },
    Label {
        name: "gen_ai_provider_name",
        meaning: "`gen_ai.provider.name` of the semantic convention: the upstream's kind",
    },
    Label {
        name: "gen_ai_request_model",
        meaning: "`gen_ai.request.model` of the semantic convention; same values as `model`",
    },
];

/// The `reason` of `tokenmeter_no_first_token_total` for a success that did not come in frames.
pub const NOT_STREAMED: &str = "not_streamed";

/// The `what` of `tokenmeter_dropped_total` for an exchange counted under `_other`.
pub const LABEL_OVERFLOW: &str = "label_overflow";

/// Visible characters per second of one request. Four times the token edges, which is what a token
/// of English comes to, so that the two speeds can be laid side by side.
pub const CHARACTER_RATE: [f64; 15] =
    [4.0, 8.0, 20.0, 40.0, 60.0, 80.0, 120.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1200.0, 2000.0, 4000.0];

/// Writes the enum and the table from one list, so that neither can miss a line of the other.
macro_rules! table {
    ($($metric:ident: $kind:expr, $name:literal, $unit:ident, [$($label:literal),*], $meaning:literal;)*) => {
        /// A metric: the key of its line in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(#[doc = $meaning] $metric,)*
        }

        impl Metric {
            /// Every metric, in the order of the page.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// Its line in the table.
            pub fn entry(self) -> &'static Entry {
                &TABLE[self as usize]
            }
        }

        static TABLE: &[Entry] = &[$(Entry {
            name: $name,
            kind: $kind,
            unit: Unit::$unit,
            labels: &[$($label),*],
            meaning: $meaning,
        },)*];
    };
}

use Kind::{Counter, Gauge, Histogram};

table! {
    Exchanges: Counter, "tokenmeter_exchanges_total", Exchanges, ["model", "dialect", "ending"],
        "Exchanges that ended.";
    InFlight: Gauge, "tokenmeter_exchanges_in_flight", Exchanges, ["model"],
        "Exchanges that began and did not end yet.";
    Passthrough: Counter, "tokenmeter_passthrough_total", Requests, ["reason"],
        "Requests forwarded without being read; of those with a reason of the body (`encoding`, `content_type`) the exchange still counts.";
    Refused: Counter, "tokenmeter_refused_total", Requests, ["reason"],
        "Requests that the proxy answered itself.";

    Tokens: Counter, "tokenmeter_tokens_total", Tokens, ["model", "type", "provenance"],
        "Tokens of ended exchanges; the types are disjoint.";
    LiveTokens: Counter, "tokenmeter_live_output_tokens_total", Tokens, ["model"],
        "Output tokens as they are generated, by the best running count; an overshoot is held against the next tokens.";
    UsageProvenance: Counter, "tokenmeter_usage_provenance_total", Exchanges, ["direction", "provenance"],
        "Ended exchanges by how their token counts are known.";

    UsageSteps: Counter, "tokenmeter_usage_steps_total", Requests, ["step"],
        "Requests of the OpenAI dialects by what was done so that their answers carry usage.";

    GenAiFirstToken: Histogram(&edges::FIRST_TOKEN_S), "gen_ai_server_time_to_first_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"],
        "Time from the complete request to the first token of a streamed success.";
    GenAiPerToken: Histogram(&edges::PER_TOKEN_S), "gen_ai_server_time_per_output_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"],
        "Time per output token after the first of a streamed success: (duration - time to first token) / (output tokens - 1).";
    GenAiDuration: Histogram(&edges::DURATION_S), "gen_ai_server_request_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"],
        "Time from the complete request to the end of a success.";

    FirstToken: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_token_seconds", Seconds, ["model", "concurrency"],
        "Time from the complete request to the first token of any kind, however the exchange ended.";
    NoFirstToken: Counter, "tokenmeter_no_first_token_total", Exchanges, ["model", "reason"],
        "Ended exchanges without a time to first token.";
    FirstByte: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_byte_seconds", Seconds, ["model"],
        "Time from the complete request to the first byte of the response body.";
    FirstVisible: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_visible_token_seconds", Seconds, ["model"],
        "Time from the complete request to the first visible text, after any reasoning.";
    FirstTool: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_tool_call_seconds", Seconds, ["model"],
        "Time from the complete request to the first part of a tool call.";

    InterToken: Histogram(&edges::GAP_S), "tokenmeter_inter_token_seconds", Seconds, ["model", "weight"],
        "Time between successive tokens, observed once per token.";
    ChunkGap: Histogram(&edges::GAP_S), "tokenmeter_chunk_gap_seconds", Seconds, ["model", "weight"],
        "Time between successive frames with tokens, observed once per frame.";

    OutputRate: Histogram(&edges::OUTPUT_RATE), "tokenmeter_request_output_token_rate_per_second", PerSecond, ["model", "concurrency"],
        "Output tokens per second of one exchange, between its first and its last token.";
    InputRate: Histogram(&edges::INPUT_RATE), "tokenmeter_request_input_token_rate_per_second", PerSecond, ["model", "concurrency"],
        "Uncached prompt tokens per second of one exchange, until its first token.";
    CharacterRate: Histogram(&CHARACTER_RATE), "tokenmeter_visible_characters_rate_per_second", PerSecond, ["model"],
        "Visible characters per second of one exchange, between its first and its last token.";
    Characters: Counter, "tokenmeter_visible_characters_total", Characters, ["model"],
        "Characters of visible text in ended exchanges.";
    PositionTokens: Counter, "tokenmeter_output_position_tokens_total", Tokens, ["model", "position"],
        "Output tokens after the first, by their position in the answer.";
    PositionSeconds: Counter, "tokenmeter_output_position_seconds_total", Seconds, ["model", "position"],
        "Time spent on output tokens by their position in the answer.";

    ServerQueue: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_queue_seconds", Seconds, ["model"],
        "Time a request waited at the server, where the server says so.";
    ServerPrefill: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_prefill_seconds", Seconds, ["model"],
        "Time the server read the prompt, up to the first token, where it says so.";
    ServerDecode: Histogram(&edges::DURATION_S), "tokenmeter_upstream_decode_seconds", Seconds, ["model"],
        "Time the server generated the tokens after the first, where it says so.";

    Stalls: Counter, "tokenmeter_stalls_total", Things, ["model"],
        "Gaps between tokens over the stall limit.";
    Stalled: Counter, "tokenmeter_stalled_seconds_total", Seconds, ["model"],
        "Time spent in gaps over the stall limit.";
    ClientWait: Counter, "tokenmeter_client_wait_seconds_total", Seconds, ["model"],
        "Time in which a frame was ready and the client's socket was not.";

    ObjectiveExchanges: Counter, "tokenmeter_objective_exchanges_total", Exchanges, ["model", "objective", "verdict"],
        "Ended exchanges under an objective, by what came of it; clients that left and clients' own mistakes are not counted.";
    GoodputExchanges: Counter, "tokenmeter_goodput_exchanges_total", Exchanges, ["model", "objective"],
        "Ended exchanges that met their objective.";
    GoodputTokens: Counter, "tokenmeter_goodput_tokens_total", Tokens, ["model", "objective", "provenance"],
        "Output tokens of exchanges that met their objective.";
    ObjectiveTokens: Counter, "tokenmeter_objective_tokens_total", Tokens, ["model", "objective", "provenance"],
        "Output tokens of all exchanges that an objective was counted for.";
    TenantObjectiveExchanges: Counter, "tokenmeter_tenant_objective_exchanges_total", Exchanges, ["tenant", "objective", "verdict"],
        "The exchanges of `tokenmeter_objective_exchanges_total` again, by tenant.";
    ObjectiveFirstToken: Gauge, "tokenmeter_objective_first_token_seconds", Seconds, ["objective"],
        "The most time to the first token that the objective allows, as configured.";
    ObjectiveOutputRate: Gauge, "tokenmeter_objective_output_token_rate_per_second", PerSecond, ["objective"],
        "The least output tokens per second of one exchange that the objective allows, as configured.";
    ObjectiveTarget: Gauge, "tokenmeter_objective_target_ratio", Ratio, ["objective"],
        "The share of exchanges that are to meet the objective, as configured.";

    UpstreamUp: Gauge, "tokenmeter_upstream_up", Truth, ["upstream"],
        "Whether the upstream can be reached.";

    EngineUp: Gauge, "tokenmeter_engine_up", Truth, ["upstream"],
        "Whether the upstream's own metrics page could be read the last time; absent where it is not asked for.";
    EngineInfo: Gauge, "tokenmeter_engine_info", Truth, ["upstream", "kind"],
        "Always 1; the label says what kind of server the upstream is.";
    EngineRunning: Gauge, "tokenmeter_engine_running_requests", Requests, ["upstream"],
        "Requests in the server's running batch, by its own page.";
    EngineWaiting: Gauge, "tokenmeter_engine_waiting_requests", Requests, ["upstream"],
        "Requests that wait in the server's queue, by its own page.";
    EngineKvCache: Gauge, "tokenmeter_engine_kv_cache_usage_ratio", Ratio, ["upstream"],
        "Share of the server's KV cache in use, by its own page; the mean over its engines.";
    EnginePrefixCache: Gauge, "tokenmeter_engine_prefix_cache_hit_ratio", Ratio, ["upstream"],
        "Share of the prompt tokens looked up since the last reading that the server's prefix cache had, or the share the server itself states; absent without look-ups.";
    EnginePromptTokens: Gauge, "tokenmeter_engine_prompt_tokens", Tokens, ["upstream"],
        "Prompt tokens by the server's own counter since the baseline, cached ones included.";
    EngineGenerationTokens: Gauge, "tokenmeter_engine_generation_tokens", Tokens, ["upstream"],
        "Generated tokens by the server's own counter since the baseline.";
    EnginePreemptions: Gauge, "tokenmeter_engine_preemptions", Things, ["upstream"],
        "Requests that the server put back into its queue since the baseline, by its own counter.";
    EngineDrift: Gauge, "tokenmeter_engine_drift_tokens", Tokens, ["upstream", "direction"],
        "The server's own token count less ours, both since the baseline; positive is work that we did not see.";

    Overhead: Histogram(&edges::OVERHEAD_S), "tokenmeter_proxy_overhead_seconds", Seconds, ["class"],
        "The proxy's own time in one exchange.";
    Dropped: Counter, "tokenmeter_dropped_total", Things, ["what"],
        "Telemetry and work that was lost, by what it was.";
    BuildInfo: Gauge, "tokenmeter_build_info", Truth, ["version"],
        "Always 1; the labels say what is running.";

    ProcessMemory: Gauge, "process_resident_memory_bytes", Bytes, [],
        "Resident memory of this process.";
    ProcessCpu: Counter, "process_cpu_seconds_total", Seconds, [],
        "User and system CPU time of this process.";
    ProcessFiles: Gauge, "process_open_fds", Things, [],
        "Open file descriptors of this process.";
    ProcessStart: Gauge, "process_start_time_seconds", Seconds, [],
        "Start of this process, in seconds since 1970.";
}
