//! The one table of every metric: its name, kind, unit, labels and meaning. The law: code, the
//! manual (`metrics.md`) and the tests read this table and nothing else. A sample can only be
//! written through a [`Metric`], and the collector's match over [`Metric`] leaves none unwritten.

use meter::edges;

mod entry;
mod label;
mod otlp;

pub use entry::{Entry, Kind, Unit};
pub use label::{LABELS, Label};
pub use otlp::{Instrument, attribute};

/// The `reason` of `tokenmeter_no_first_token_total` for a success that did not come in frames.
pub const NOT_STREAMED: &str = "not_streamed";

/// The `what` of `tokenmeter_dropped_total` for an exchange counted under `_other`.
pub const LABEL_OVERFLOW: &str = "label_overflow";

/// Visible characters per second of one request. Four times the token edges, which is what a token
/// of English comes to, so that the two speeds can be laid side by side.
pub const CHARACTER_RATE: [f64; 19] = [
    4.0, 8.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 160.0, 200.0, 240.0, 300.0, 400.0, 500.0, 600.0, 800.0,
    1200.0, 2000.0, 4000.0,
];

/// Tokens of one operation, as the semantic convention gives them.
pub const USAGE_TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Joules for one output token: from a small model on a full batch to a large one alone.
pub const ENERGY_PER_TOKEN_J: [f64; 11] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

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
    Exchanges: Counter, "tokenmeter_exchanges_total", Exchanges, ["model", "upstream", "dialect", "ending"],
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

    TenantTokens: Counter, "tokenmeter_tenant_tokens_total", Tokens, ["tenant", "type"],
        "The tokens of `tokenmeter_tokens_total` again, by tenant.";
    TenantExchanges: Counter, "tokenmeter_tenant_exchanges_total", Exchanges, ["tenant", "ending"],
        "The exchanges of `tokenmeter_exchanges_total` again, by tenant.";
    TenantRefused: Counter, "tokenmeter_tenant_refused_total", Requests, ["tenant", "reason"],
        "The requests of `tokenmeter_refused_total` again, by tenant, where one was known by then.";
    TenantUncounted: Counter, "tokenmeter_tenant_uncounted_prompts_total", Exchanges, ["tenant"],
        "Ended exchanges that the server may have worked on and whose prompt nothing counted, by tenant: what they cost lacks it.";
    TenantRule: Counter, "tokenmeter_tenant_rule_total", Requests, ["rule"],
        "Requests by the rule that said whose they are.";
    UntrustedHeaders: Counter, "tokenmeter_untrusted_tenant_headers_total", Things, [],
        "Header fields that would name a tenant, from peers that are not trusted to; they decided nothing.";
    UntrustedTokens: Counter, "tokenmeter_untrusted_tenant_tokens_total", Requests, ["reason"],
        "Requests with a token of which no rule believed any, by what was wrong with the one that got furthest.";

    GenAiFirstToken: Histogram(&edges::FIRST_TOKEN_S), "gen_ai_server_time_to_first_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time from the complete request to the first token of a streamed success.";
    GenAiPerToken: Histogram(&edges::PER_TOKEN_S), "gen_ai_server_time_per_output_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time per output token after the first of a streamed success: (duration - time to first token) / (output tokens - 1).";
    GenAiDuration: Histogram(&edges::DURATION_S), "gen_ai_server_request_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of the operation, failed ones included; `error_type` is empty for a success.";

    UsageInput: Counter, "gen_ai_client_inference_usage_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Prompt tokens spent, cached ones included, as the server reported them; an operation without a report adds 0.";
    UsageOutput: Counter, "gen_ai_client_inference_usage_output_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Generated tokens spent, those of reasoning included, as the server reported them; an operation without a report adds 0.";
    UsageCacheRead: Counter, "gen_ai_client_inference_usage_cache_read_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Of the prompt tokens spent, those read from a cache, as the server reported them.";
    UsageCacheWrite: Counter, "gen_ai_client_inference_usage_cache_write_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Of the prompt tokens spent, those written to a cache, as the server reported them.";
    UsageReasoning: Counter, "gen_ai_client_inference_usage_reasoning_output_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Of the generated tokens spent, those of reasoning, as the server reported them.";
    OperationInput: Histogram(&USAGE_TOKENS), "gen_ai_client_inference_operation_input_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Prompt tokens of one operation, cached ones included, failed operations included; 0 where the server reported none.";
    OperationOutput: Histogram(&USAGE_TOKENS), "gen_ai_client_inference_operation_output_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Generated tokens of one operation, those of reasoning included, failed operations included; 0 where the server reported none.";
    ClientDuration: Histogram(&edges::DURATION_S), "gen_ai_client_inference_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of an inference operation, failed ones included; the numbers of `gen_ai_server_request_duration_seconds` again.";
    ClientFirstChunk: Histogram(&edges::DURATION_S), "gen_ai_client_inference_time_to_first_chunk_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time from the complete request to the first frame of a stream, whatever it holds, however the stream ended.";
    ClientPerChunk: Histogram(&edges::GAP_S), "gen_ai_client_inference_time_per_output_chunk_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time between successive frames with tokens, observed once per frame; the numbers of `tokenmeter_chunk_gap_seconds` again.";
    EmbeddingsDuration: Histogram(&edges::DURATION_S), "gen_ai_client_embeddings_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of an embeddings operation, failed ones included; `error_type` is empty for a success.";
    EmbeddingsInput: Histogram(&USAGE_TOKENS), "gen_ai_client_embeddings_operation_input_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Tokens of the inputs of one embeddings operation, failed ones included; 0 where the server reported none.";
    ClientTokenUsage: Histogram(&USAGE_TOKENS), "gen_ai_client_token_usage", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_type"],
        "Tokens of one operation whose server reported them, under the semantic convention's former name; only on request.";

    FirstToken: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_token_seconds", Seconds, ["model", "upstream", "concurrency"],
        "Time from the complete request to the first token of any kind, however the exchange ended.";
    NoFirstToken: Counter, "tokenmeter_no_first_token_total", Exchanges, ["model", "upstream", "reason"],
        "Ended exchanges without a time to first token.";
    FirstByte: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_byte_seconds", Seconds, ["model", "upstream"],
        "Time from the complete request to the first byte of the response body.";
    FirstVisible: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_visible_token_seconds", Seconds, ["model", "upstream"],
        "Time from the complete request to the first visible text, after any reasoning.";
    FirstTool: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_tool_call_seconds", Seconds, ["model", "upstream"],
        "Time from the complete request to the first part of a tool call.";

    InterToken: Histogram(&edges::GAP_S), "tokenmeter_inter_token_seconds", Seconds, ["model", "upstream", "weight"],
        "Time between successive tokens, observed once per token.";
    ChunkGap: Histogram(&edges::GAP_S), "tokenmeter_chunk_gap_seconds", Seconds, ["model", "upstream", "weight"],
        "Time between successive frames with tokens, observed once per frame.";

    OutputRate: Histogram(&edges::OUTPUT_RATE), "tokenmeter_request_output_token_rate_per_second", PerSecond, ["model", "upstream", "concurrency"],
        "Output tokens per second of one exchange, between its first and its last token.";
    InputRate: Histogram(&edges::INPUT_RATE), "tokenmeter_request_input_token_rate_per_second", PerSecond, ["model", "upstream", "concurrency"],
        "Uncached prompt tokens per second of one exchange, until its first token.";
    CharacterRate: Histogram(&CHARACTER_RATE), "tokenmeter_visible_characters_rate_per_second", PerSecond, ["model", "upstream"],
        "Visible characters per second of one exchange, between its first and its last token.";
    Characters: Counter, "tokenmeter_visible_characters_total", Characters, ["model"],
        "Characters of visible text in ended exchanges.";
    PositionTokens: Counter, "tokenmeter_output_position_tokens_total", Tokens, ["model", "upstream", "position"],
        "Output tokens after the first, by their position in the answer.";
    PositionSeconds: Counter, "tokenmeter_output_position_seconds_total", Seconds, ["model", "upstream", "position"],
        "Time spent on output tokens by their position in the answer.";

    ServerQueue: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_queue_seconds", Seconds, ["model", "upstream"],
        "Time a request waited at the server, where the server says so.";
    ServerPrefill: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_prefill_seconds", Seconds, ["model", "upstream"],
        "Time the server read the prompt, up to the first token, where it says so.";
    ServerDecode: Histogram(&edges::DURATION_S), "tokenmeter_upstream_decode_seconds", Seconds, ["model", "upstream"],
        "Time the server generated the tokens after the first, where it says so.";
    DraftTokens: Counter, "tokenmeter_upstream_draft_tokens_total", Tokens, ["model", "upstream"],
        "Tokens that speculative decoding proposed, where the server counts them for each request.";
    AcceptedDraftTokens: Counter, "tokenmeter_upstream_accepted_draft_tokens_total", Tokens, ["model", "upstream"],
        "Those of them that the model accepted; both say nothing of requests for several answers.";

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

    LegExchanges: Counter, "tokenmeter_leg_exchanges_total", Exchanges, ["model", "role", "ending"],
        "Ended legs of requests whose prefill and decode run on two servers; a prefill leg is in no other count of exchanges or tokens.";
    LegDuration: Histogram(&edges::DURATION_S), "tokenmeter_leg_duration_seconds", Seconds, ["model", "role"],
        "Time from the complete request to the end of a leg, however it ended.";
    LegPromptTokens: Counter, "tokenmeter_leg_prompt_tokens_total", Tokens, ["model"],
        "Prompt tokens of ended prefill legs; their decode legs count the same prompts in `tokenmeter_tokens_total`.";

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
    EnginePromptSource: Gauge, "tokenmeter_engine_prompt_source_tokens", Tokens, ["upstream", "source"],
        "Prompt tokens since the baseline by where they came from, by the server's own counters.";
    EngineHiddenCached: Gauge, "tokenmeter_engine_hidden_cached_tokens", Tokens, ["upstream"],
        "The least number of prompt tokens since the baseline that the server's cache had and its usage did not report.";
    EnginePreemptions: Gauge, "tokenmeter_engine_preemptions", Things, ["upstream"],
        "Requests that the server put back into its queue since the baseline, by its own counter.";
    EngineRejections: Gauge, "tokenmeter_engine_admission_rejections", Requests, ["upstream"],
        "Requests that the server turned away for a limit of its queue since the baseline, by its own counter.";
    EngineDrift: Gauge, "tokenmeter_engine_drift_tokens", Tokens, ["upstream", "direction"],
        "The server's own token count less ours, both since the baseline; positive is work that we did not see.";

    HwUtilization: Gauge, "hw_gpu_utilization_ratio", Ratio, ["hw_id"],
        "Share of time in which anything ran on the device.";
    HwMemoryUsage: Gauge, "hw_gpu_memory_usage_bytes", Bytes, ["hw_id"],
        "Device memory in use.";
    HwMemoryLimit: Gauge, "hw_gpu_memory_limit_bytes", Bytes, ["hw_id"],
        "Device memory there is.";
    HwMemoryUtilization: Gauge, "hw_gpu_memory_utilization_ratio", Ratio, ["hw_id"],
        "Share of the device's memory in use.";
    HwPower: Gauge, "hw_power_watts", Watts, ["hw_id", "hw_type"],
        "Power the device draws.";
    HwEnergy: Counter, "hw_energy_joules_total", Joules, ["hw_id", "hw_type"],
        "Energy the device drew since the baseline.";
    HwTemperature: Gauge, "hw_temperature_celsius", Celsius, ["hw_id", "hw_type"],
        "Temperature of the device.";
    HwErrors: Counter, "hw_errors_total", Things, ["hw_id", "hw_type", "error_type"],
        "Memory errors that the device found.";
    GpuInfo: Gauge, "tokenmeter_gpu_info", Truth,
        ["hw_id", "hw_name", "hw_vendor", "hw_driver_version", "hw_parent", "source", "upstream", "shared"],
        "Always 1; the labels say what the device is and whom it serves, several upstreams with commas between.";
    GpuUp: Gauge, "tokenmeter_gpu_up", Truth, ["hw_id"],
        "Whether the device's last sample is fresh.";
    GpuActivity: Gauge, "tokenmeter_gpu_activity_ratio", Ratio, ["hw_id", "unit"],
        "Share of time in which a part of the device was busy.";
    GpuClock: Gauge, "tokenmeter_gpu_clock_hertz", Hertz, ["hw_id", "clock"],
        "Clock rates of the device.";
    GpuPowerLimit: Gauge, "tokenmeter_gpu_power_limit_watts", Watts, ["hw_id"],
        "Power the device may draw.";
    GpuThrottled: Counter, "tokenmeter_gpu_throttled_seconds_total", Seconds, ["hw_id", "reason"],
        "Time in which the device was held back.";
    GpuProcesses: Gauge, "tokenmeter_gpu_processes", Things, ["hw_id"],
        "Processes that use the device.";
    GpuResets: Counter, "tokenmeter_gpu_resets_total", Things, ["hw_id"],
        "How often the device's counters began again, or it was gone and came back.";
    GpuGap: Counter, "tokenmeter_gpu_gap_seconds_total", Seconds, ["hw_id"],
        "Time that no sample of the device covers.";

    EnergyAttributed: Counter, "tokenmeter_energy_attributed_joules_total", Joules, ["tenant"],
        "Energy of settled exchanges; with idle, unattributed and pending it is what the devices drew since the baseline.";
    EnergyIdle: Counter, "tokenmeter_energy_idle_joules_total", Joules, ["hw_id"],
        "Energy the device drew while nothing of ours ran.";
    EnergyUnattributed: Counter, "tokenmeter_energy_unattributed_joules_total", Joules, ["hw_id"],
        "Energy the device drew for work that was not ours or that nobody can tell.";
    EnergyPending: Gauge, "tokenmeter_energy_pending_joules", Joules, ["hw_id"],
        "Energy of exchanges that still run or are not settled.";
    EnergyModel: Counter, "tokenmeter_energy_model_joules_total", Joules, ["model"],
        "The attributed energy again, by model.";
    EnergyPerToken: Histogram(&ENERGY_PER_TOKEN_J), "tokenmeter_request_energy_per_output_token_joules", Joules, ["model"],
        "Energy of one settled exchange for each of its output tokens.";
    GpuSecondsAttributed: Counter, "tokenmeter_gpu_attributed_seconds_total", Seconds, ["tenant"],
        "Device time of settled exchanges.";
    GpuSecondsIdle: Counter, "tokenmeter_gpu_idle_seconds_total", Seconds, ["hw_id"],
        "Device time in which nothing of ours ran.";
    GpuSecondsUnattributed: Counter, "tokenmeter_gpu_unattributed_seconds_total", Seconds, ["hw_id"],
        "Device time of work that was not ours or that nobody can tell.";
    GpuSecondsPending: Gauge, "tokenmeter_gpu_pending_seconds", Seconds, ["hw_id"],
        "Device time of exchanges that still run or are not settled.";
    GpuCost: Counter, "tokenmeter_gpu_cost_usd_total", Usd, ["tenant", "part"],
        "What settled exchanges cost in device hours and energy, where prices are set.";
    GpuIdleCost: Counter, "tokenmeter_gpu_idle_cost_usd_total", Usd, ["hw_id", "part"],
        "What the device cost while nothing of ours ran, where prices are set.";
    GpuUnattributedCost: Counter, "tokenmeter_gpu_unattributed_cost_usd_total", Usd, ["hw_id", "part"],
        "What the device cost for work that was not ours or that nobody can tell, where prices are set.";

    TenantSpend: Counter, "tokenmeter_tenant_spend_usd_total", Money, ["tenant", "basis"],
        "What ended exchanges cost, by tenant; on the basis `gpu`, always US dollars, once they are settled.";
    ModelSpend: Counter, "tokenmeter_model_spend_usd_total", Money, ["model", "basis"],
        "The spend of `tokenmeter_tenant_spend_usd_total` again, by model.";
    Unpriced: Counter, "tokenmeter_unpriced_exchanges_total", Exchanges, ["model", "reason"],
        "Ended exchanges of which nobody can say the price; they are in no spend on the basis `price`.";
    UnpricedTier: Counter, "tokenmeter_unpriced_tier_exchanges_total", Exchanges, ["model"],
        "Ended exchanges of a service tier that the price book has no prices for; they are charged as ordinary ones.";
    PriceBookInfo: Gauge, "tokenmeter_price_book_info", Truth, ["version", "hash", "currency"],
        "Always 1; the labels say which price book exchanges are charged by.";
    BudgetLimit: Gauge, "tokenmeter_budget_limit_usd", Money, ["tenant", "period", "limit"],
        "What a tenant may spend in the running period, as configured.";
    BudgetUsed: Gauge, "tokenmeter_budget_used_usd", Money, ["tenant", "period"],
        "What a tenant has spent in the running period, from its start on.";
    BudgetForecast: Gauge, "tokenmeter_budget_forecast_usd", Money, ["tenant", "period"],
        "What a tenant will have spent when the running period ends, at its pace so far; absent while it is too early to say.";
    BudgetAlerts: Counter, "tokenmeter_budget_alerts_total", Things, ["tenant", "period", "threshold"],
        "Thresholds that were reached, each once in a period.";
    BudgetWebhooks: Counter, "tokenmeter_budget_webhooks_total", Things, ["outcome"],
        "Messages about thresholds, by what became of them.";

    LedgerUp: Gauge, "tokenmeter_ledger_up", Truth, [],
        "Whether the ledger can be written; absent where there is none.";
    LedgerRows: Counter, "tokenmeter_ledger_rows_total", Things, [],
        "Rows that are on the disk: acknowledged, and lost by no crash.";
    LedgerLag: Gauge, "tokenmeter_ledger_commit_lag_seconds", Seconds, [],
        "Age of the oldest row that is not on the disk yet; 0 if there is none.";
    LedgerQueued: Gauge, "tokenmeter_ledger_queued_rows", Things, [],
        "What waits for the disk: rows, and what GPUs did for them or for nobody.";
    LedgerShed: Counter, "tokenmeter_ledger_shed_rows_total", Things, [],
        "Rows whose detail was given up for want of room; their totals by day, tenant and model are kept.";
    LedgerLost: Counter, "tokenmeter_ledger_lost_rows_total", Things, [],
        "Rows of which not even the totals were kept.";
    LedgerBytes: Gauge, "tokenmeter_ledger_bytes", Bytes, ["file"],
        "Size of the open month's file, and of its write-ahead log.";
    LedgerGaps: Counter, "tokenmeter_ledger_gaps_total", Things, [],
        "Gap markers written: times of which the ledger says itself that it may lack rows.";
    LedgerQuarantined: Counter, "tokenmeter_ledger_quarantined_total", Things, [],
        "Files that were found corrupt and set aside.";
    LedgerFaults: Counter, "tokenmeter_ledger_faults_total", Things, ["fault"],
        "Writes that failed, by what was the matter; their rows are tried again.";

    ShipUp: Gauge, "tokenmeter_ship_up", Truth, [],
        "Whether the central store took the last rows; absent where none is set, and before the first try.";
    ShipRows: Counter, "tokenmeter_ship_rows_total", Things, [],
        "Rows that the central store has confirmed.";
    ShipPending: Gauge, "tokenmeter_ship_pending_rows", Things, [],
        "Rows in the ledger that the central store has not confirmed.";
    ShipLag: Gauge, "tokenmeter_ship_lag_seconds", Seconds, [],
        "Age of the oldest row that the central store has not confirmed; 0 if there is none.";
    ShipFailures: Counter, "tokenmeter_ship_failures_total", Things, ["reason"],
        "Tries to ship rows that failed; the rows are tried again.";

    ReloadSuccess: Gauge, "tokenmeter_config_last_reload_success", Truth, ["file"],
        "Whether the file was taken when it was last read; if not, what was read before it stays in force.";
    Reloads: Counter, "tokenmeter_config_reloads_total", Things, ["file", "outcome"],
        "How often a file was read, and whether it was taken.";

    OtlpItems: Counter, "tokenmeter_otlp_items_total", Things, ["signal", "outcome"],
        "Data points, spans and log records by what became of them.";
    OtlpQueued: Gauge, "tokenmeter_otlp_queued_items", Things, ["signal"],
        "Data points, spans and log records that wait for the collector.";
    OtlpUp: Gauge, "tokenmeter_otlp_up", Truth, ["signal"],
        "Whether the collector took the last export; absent before the first.";
    OtlpExport: Histogram(&edges::DURATION_S), "tokenmeter_otlp_export_seconds", Seconds, ["signal"],
        "Time that one export took, retries included.";
    Connections: Gauge, "tokenmeter_connections", Things, [],
        "Connections of clients that are open.";
    ConnectionsLimit: Gauge, "tokenmeter_connections_limit", Things, [],
        "Connections of clients that may be open.";
    UpstreamConnections: Gauge, "tokenmeter_upstream_connections", Things, ["upstream"],
        "Connections to the upstream that carry a request.";
    UpstreamConnectionsLimit: Gauge, "tokenmeter_upstream_connections_limit", Things, ["upstream"],
        "Connections to the upstream that may carry a request.";
    GatheredBytes: Gauge, "tokenmeter_gathered_bytes", Bytes, [],
        "Memory taken by request bodies that are read whole before they go on.";
    GatheredLimit: Gauge, "tokenmeter_gathered_limit_bytes", Bytes, [],
        "Memory that such request bodies may take.";

    Scrapes: Counter, "tokenmeter_scrapes_total", Things, ["format"],
        "Pages that were asked for, by form.";

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
