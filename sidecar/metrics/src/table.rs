//! The table of all metrics: name, kind, unit, labels and meaning. Invariant: code, manual (`metrics.md`)
//! and tests read only this table. A sample can only be written through a [`Metric`]. The collector's exhaustive
//! match over [`Metric`] writes every one, or leaves it to a [`Part`](crate::Part) of the process.

use meter::edges;

mod entry;
mod label;
mod otlp;
pub mod value;

pub use entry::{Entry, Kind, Unit};
pub use label::{LABELS, Label};
pub use otlp::{Instrument, attribute};

/// The `reason` of `tokenmeter_no_first_token_total` for a success that was not streamed.
pub const NOT_STREAMED: &str = "not_streamed";

/// The `what` of `tokenmeter_dropped_total` for an exchange counted under `_other`.
pub const LABEL_OVERFLOW: &str = "label_overflow";

/// Bucket edges of the visible characters per second of one exchange: four times the token edges, since an
/// English token has about four characters, so that the two speeds can be compared.
pub const CHARACTER_RATE: [f64; 19] = [
    4.0, 8.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 160.0, 200.0, 240.0, 300.0, 400.0, 500.0, 600.0, 800.0,
    1200.0, 2000.0, 4000.0,
];

/// Bucket edges of the tokens of one operation, as the semantic convention gives them.
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

/// Bucket edges of the joules per output token: from a small model in a full batch to a large one alone.
pub const ENERGY_PER_TOKEN_J: [f64; 11] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

/// Generates the enum and the table from one list, so that they always agree.
macro_rules! table {
    ($($metric:ident: $kind:expr, $name:literal, $unit:ident, [$($label:literal),*], $meaning:literal;)*) => {
        /// A metric: the key of its entry in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(#[doc = $meaning] $metric,)*
        }

        impl Metric {
            /// Every metric, in the order of the page.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// Returns its entry in the table.
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
        "Finished exchanges.";
    InFlight: Gauge, "tokenmeter_exchanges_in_flight", Exchanges, ["model"],
        "Exchanges in flight.";
    Passthrough: Counter, "tokenmeter_passthrough_total", Requests, ["reason"],
        "Requests forwarded unmetered; with the reasons `encoding` and `content_type` only the body is unmetered and the exchange is counted.";
    Mislabelled: Counter, "tokenmeter_mislabelled_responses_total", Exchanges, ["stated"],
        "Exchanges whose response has another form than its content type says; they are counted by the form of the body.";
    Refused: Counter, "tokenmeter_refused_total", Requests, ["reason"],
        "Requests that the proxy itself answered with an error.";

    Tokens: Counter, "tokenmeter_tokens_total", Tokens, ["model", "type", "provenance"],
        "Tokens of finished exchanges; the types are disjoint.";
    LiveTokens: Counter, "tokenmeter_live_output_tokens_total", Tokens, ["model"],
        "Output tokens as they are generated, by the best running count; an overcount is subtracted from later tokens.";
    UsageProvenance: Counter, "tokenmeter_usage_provenance_total", Exchanges, ["direction", "provenance"],
        "Finished exchanges, by the source of their token counts.";

    UsageDisagreements: Counter, "tokenmeter_usage_disagreements_total", Exchanges, ["model", "upstream", "dialect", "disagreement"],
        "Finished exchanges whose server contradicts itself in its token counts; prefill legs included.";

    UsageSteps: Counter, "tokenmeter_usage_steps_total", Requests, ["step"],
        "Requests of the OpenAI dialects, by the step taken to obtain usage in the response.";

    UnknownUsage: Counter, "tokenmeter_unknown_usage_total", Exchanges, ["dialect", "member"],
        "Finished exchanges whose usage has a number of tokens above zero at a member that is not read; counts and costs may lack them.";

    TenantTokens: Counter, "tokenmeter_tenant_tokens_total", Tokens, ["tenant", "type"],
        "The tokens of `tokenmeter_tokens_total`, by tenant.";
    TenantExchanges: Counter, "tokenmeter_tenant_exchanges_total", Exchanges, ["tenant", "ending"],
        "The exchanges of `tokenmeter_exchanges_total`, by tenant.";
    TenantRefused: Counter, "tokenmeter_tenant_refused_total", Requests, ["tenant", "reason"],
        "The requests of `tokenmeter_refused_total`, by tenant, if the tenant was known.";
    TenantUncounted: Counter, "tokenmeter_tenant_uncounted_prompts_total", Exchanges, ["tenant"],
        "Finished exchanges that the server may have processed and whose prompt was not counted, by tenant; a cost by tokens lacks the prompt.";
    TenantRule: Counter, "tokenmeter_tenant_rule_total", Requests, ["rule"],
        "Requests, by the kind of tenant rule that matched.";
    UntrustedHeaders: Counter, "tokenmeter_untrusted_tenant_headers_total", Things, [],
        "Header fields that name a tenant, received from untrusted peers and ignored.";
    UntrustedTokens: Counter, "tokenmeter_untrusted_tenant_tokens_total", Requests, ["reason"],
        "Requests whose tokens no rule accepted, by the error of the token that passed the most checks.";

    GenAiFirstToken: Histogram(&edges::FIRST_TOKEN_S), "gen_ai_server_time_to_first_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time from the complete request to the first token of a streamed success.";
    GenAiPerToken: Histogram(&edges::PER_TOKEN_S), "gen_ai_server_time_per_output_token_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time per output token after the first of a streamed success: (duration - time to first token) / (output tokens - 1).";
    GenAiDuration: Histogram(&edges::DURATION_S), "gen_ai_server_request_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of the operation, failed operations included; `error_type` is empty for a success.";

    UsageInput: Counter, "gen_ai_client_inference_usage_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Prompt tokens, cached ones included, as the server reported them; an operation without a report adds 0.";
    UsageOutput: Counter, "gen_ai_client_inference_usage_output_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Generated tokens, reasoning included, as the server reported them; an operation without a report adds 0.";
    UsageCacheRead: Counter, "gen_ai_client_inference_usage_cache_read_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Prompt tokens read from a cache, as the server reported them; part of the input tokens.";
    UsageCacheWrite: Counter, "gen_ai_client_inference_usage_cache_write_input_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Prompt tokens written to a cache, as the server reported them; part of the input tokens.";
    UsageReasoning: Counter, "gen_ai_client_inference_usage_reasoning_output_tokens_total", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_modality"],
        "Generated reasoning tokens, as the server reported them; part of the output tokens.";
    OperationInput: Histogram(&USAGE_TOKENS), "gen_ai_client_inference_operation_input_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Prompt tokens of one operation, cached ones included, failed operations included; 0 without a report of the server.";
    OperationOutput: Histogram(&USAGE_TOKENS), "gen_ai_client_inference_operation_output_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Generated tokens of one operation, reasoning included, failed operations included; 0 without a report of the server.";
    ClientDuration: Histogram(&edges::DURATION_S), "gen_ai_client_inference_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of an inference operation, failed operations included; the same values as `gen_ai_server_request_duration_seconds`.";
    ClientFirstChunk: Histogram(&edges::DURATION_S), "gen_ai_client_inference_time_to_first_chunk_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time from the complete request to the first frame of a stream, for any content and any ending.";
    ClientPerChunk: Histogram(&edges::DURATION_S), "gen_ai_client_inference_time_per_output_chunk_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port"],
        "Time between the ends of successive frames of a stream, for any content and any ending, observed once per frame after the first.";
    EmbeddingsDuration: Histogram(&edges::DURATION_S), "gen_ai_client_embeddings_duration_seconds", Seconds,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Time from the complete request to the end of an embeddings operation, failed operations included; `error_type` is empty for a success.";
    EmbeddingsInput: Histogram(&USAGE_TOKENS), "gen_ai_client_embeddings_operation_input_tokens", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "error_type"],
        "Input tokens of one embeddings operation, failed operations included; 0 without a report of the server.";
    ClientTokenUsage: Histogram(&USAGE_TOKENS), "gen_ai_client_token_usage", Tokens,
        ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address", "server_port", "gen_ai_token_type"],
        "Tokens of one operation, as the server reported them, under the former name of the semantic convention; off by default.";

    FirstToken: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_time_to_first_token_seconds", Seconds, ["model", "upstream", "concurrency"],
        "Time from the complete request to the first token of any kind, for every ending.";
    NoFirstToken: Counter, "tokenmeter_no_first_token_total", Exchanges, ["model", "upstream", "reason"],
        "Finished exchanges without a time to first token.";
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
        "Characters of visible text in finished exchanges.";
    PositionTokens: Counter, "tokenmeter_output_position_tokens_total", Tokens, ["model", "upstream", "position"],
        "Output tokens after the first, by their position in the response.";
    PositionSeconds: Counter, "tokenmeter_output_position_seconds_total", Seconds, ["model", "upstream", "position"],
        "Time spent on output tokens, by their position in the response.";

    ServerQueue: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_queue_seconds", Seconds, ["model", "upstream"],
        "Time a request waited in the server's queue, as the server reports it.";
    ServerPrefill: Histogram(&edges::FIRST_TOKEN_S), "tokenmeter_upstream_prefill_seconds", Seconds, ["model", "upstream"],
        "Time the server took for prefill, up to the first token, as the server reports it.";
    ServerDecode: Histogram(&edges::DURATION_S), "tokenmeter_upstream_decode_seconds", Seconds, ["model", "upstream"],
        "Time the server took to generate the tokens after the first, as the server reports it.";
    DraftTokens: Counter, "tokenmeter_upstream_draft_tokens_total", Tokens, ["model", "upstream"],
        "Tokens proposed by speculative decoding, where the server reports them per request; requests for several answers are left out.";
    AcceptedDraftTokens: Counter, "tokenmeter_upstream_accepted_draft_tokens_total", Tokens, ["model", "upstream"],
        "Proposed tokens that the model accepted, where the server reports them per request; requests for several answers are left out.";

    Stalls: Counter, "tokenmeter_stalls_total", Things, ["model"],
        "Gaps between tokens longer than the stall limit.";
    Stalled: Counter, "tokenmeter_stalled_seconds_total", Seconds, ["model"],
        "Time spent in gaps between tokens longer than the stall limit.";
    ClientWait: Counter, "tokenmeter_client_wait_seconds_total", Seconds, ["model"],
        "Time in which a frame was ready and the client's socket was not writable.";

    ObjectiveExchanges: Counter, "tokenmeter_objective_exchanges_total", Exchanges, ["model", "objective", "verdict"],
        "Finished exchanges under an objective, by verdict; exchanges without a verdict are left out.";
    GoodputExchanges: Counter, "tokenmeter_goodput_exchanges_total", Exchanges, ["model", "objective"],
        "Finished exchanges that met their objective.";
    GoodputTokens: Counter, "tokenmeter_goodput_tokens_total", Tokens, ["model", "objective", "provenance"],
        "Output tokens of exchanges that met their objective.";
    ObjectiveTokens: Counter, "tokenmeter_objective_tokens_total", Tokens, ["model", "objective", "provenance"],
        "Output tokens of all exchanges with a verdict.";
    TenantObjectiveExchanges: Counter, "tokenmeter_tenant_objective_exchanges_total", Exchanges, ["tenant", "objective", "verdict"],
        "The exchanges of `tokenmeter_objective_exchanges_total`, by tenant.";
    ObjectiveFirstToken: Gauge, "tokenmeter_objective_first_token_seconds", Seconds, ["objective"],
        "Maximum time to first token that the objective allows, as configured.";
    ObjectiveOutputRate: Gauge, "tokenmeter_objective_output_token_rate_per_second", PerSecond, ["objective"],
        "Minimum output tokens per second of one exchange that the objective allows, as configured.";
    ObjectiveTarget: Gauge, "tokenmeter_objective_target_ratio", Ratio, ["objective"],
        "Target share of exchanges that meet the objective, as configured.";

    LegExchanges: Counter, "tokenmeter_leg_exchanges_total", Exchanges, ["model", "role", "ending"],
        "Finished legs of requests whose prefill and decode run on two servers; a prefill leg is in no other count of exchanges or tokens.";
    LegDuration: Histogram(&edges::DURATION_S), "tokenmeter_leg_duration_seconds", Seconds, ["model", "role"],
        "Time from the complete request to the end of a leg, for every ending.";
    LegPromptTokens: Counter, "tokenmeter_leg_prompt_tokens_total", Tokens, ["model"],
        "Prompt tokens of finished prefill legs; their decode legs count the same prompts in `tokenmeter_tokens_total`.";

    UpstreamUp: Gauge, "tokenmeter_upstream_up", Truth, ["upstream"],
        "1 if the upstream is reachable, else 0.";
    UpstreamTlsVerified: Gauge, "tokenmeter_upstream_tls_verified", Truth, ["upstream"],
        "1 if the certificate of an https upstream is verified, 0 if a setting turns that off; absent without TLS.";
    RateLimit: Gauge, "tokenmeter_rate_limit", Things, ["model", "upstream", "quota"],
        "Limit of a quota, from the last response that reported it; quotas are per API key, so with several keys the value is that of the key used last.";
    RateLimitRemaining: Gauge, "tokenmeter_rate_limit_remaining", Things, ["model", "upstream", "quota"],
        "Remainder of a quota, from the last response that reported it, for the API key used last; the value does not rise at the reset without another response.";
    RateLimitReset: Gauge, "tokenmeter_rate_limit_reset_timestamp_seconds", Seconds, ["model", "upstream", "quota"],
        "Time at which a quota is reset, in seconds since 1970, from the last response that reported it, for the API key used last.";
    RetryAfter: Gauge, "tokenmeter_retry_after_seconds", Seconds, ["model", "upstream"],
        "Delay before another attempt that the last `Retry-After` of the upstream requested.";

    EngineUp: Gauge, "tokenmeter_engine_up", Truth, ["upstream"],
        "1 if the last read of the upstream's metrics page succeeded, else 0; absent if the page is not read.";
    EngineInfo: Gauge, "tokenmeter_engine_info", Truth, ["upstream", "kind"],
        "Always 1; the label `kind` names the server software.";
    EngineRunning: Gauge, "tokenmeter_engine_running_requests", Requests, ["upstream"],
        "Requests in the server's running batch, from its metrics page.";
    EngineWaiting: Gauge, "tokenmeter_engine_waiting_requests", Requests, ["upstream"],
        "Requests in the server's queue, from its metrics page.";
    EngineKvCache: Gauge, "tokenmeter_engine_kv_cache_usage_ratio", Ratio, ["upstream"],
        "Share of the server's KV cache in use, from its metrics page; the mean over its engines.";
    EnginePrefixCache: Gauge, "tokenmeter_engine_prefix_cache_hit_ratio", Ratio, ["upstream"],
        "Hit rate of the server's prefix cache, in prompt tokens since the last read, or as the server itself \
         reports it; absent without look-ups.";
    EnginePromptTokens: Gauge, "tokenmeter_engine_prompt_tokens", Tokens, ["upstream"],
        "Prompt tokens counted by the server since the baseline, cached ones included.";
    EngineGenerationTokens: Gauge, "tokenmeter_engine_generation_tokens", Tokens, ["upstream"],
        "Generated tokens counted by the server since the baseline.";
    EnginePromptSource: Gauge, "tokenmeter_engine_prompt_source_tokens", Tokens, ["upstream", "source"],
        "Prompt tokens counted by the server since the baseline, by source.";
    EngineHiddenCached: Gauge, "tokenmeter_engine_hidden_cached_tokens", Tokens, ["upstream"],
        "Lower bound of the cached prompt tokens since the baseline that the server's usage did not report.";
    EnginePreemptions: Gauge, "tokenmeter_engine_preemptions", Things, ["upstream"],
        "Requests that the server preempted and queued again since the baseline, from its metrics page.";
    EngineRejections: Gauge, "tokenmeter_engine_admission_rejections", Requests, ["upstream"],
        "Requests that the server rejected because of a queue limit since the baseline, from its metrics page.";
    EngineDrift: Gauge, "tokenmeter_engine_drift_tokens", Tokens, ["upstream", "direction"],
        "Tokens counted by the server minus tokens counted by tokenmeter, both since the baseline; positive \
         is work that this process did not see.";

    HwUtilization: Gauge, "hw_gpu_utilization_ratio", Ratio, ["hw_id"],
        "Share of time in which the device was busy.";
    HwMemoryUsage: Gauge, "hw_gpu_memory_usage_bytes", Bytes, ["hw_id"],
        "Device memory in use.";
    HwMemoryLimit: Gauge, "hw_gpu_memory_limit_bytes", Bytes, ["hw_id"],
        "Total device memory.";
    HwMemoryUtilization: Gauge, "hw_gpu_memory_utilization_ratio", Ratio, ["hw_id"],
        "Share of the device's memory in use.";
    HwPower: Gauge, "hw_power_watts", Watts, ["hw_id", "hw_type"],
        "Power drawn by the device.";
    HwEnergy: Counter, "hw_energy_joules_total", Joules, ["hw_id", "hw_type"],
        "Energy drawn by the device since the baseline.";
    HwTemperature: Gauge, "hw_temperature_celsius", Celsius, ["hw_id", "hw_type"],
        "Temperature of the device.";
    HwErrors: Counter, "hw_errors_total", Things, ["hw_id", "hw_type", "error_type"],
        "Memory errors detected by the device.";
    GpuInfo: Gauge, "tokenmeter_gpu_info", Truth,
        ["hw_id", "hw_name", "hw_vendor", "hw_driver_version", "hw_parent", "source", "upstream", "shared"],
        "Always 1; the labels describe the device and list the upstreams it serves, separated by commas.";
    GpuUp: Gauge, "tokenmeter_gpu_up", Truth, ["hw_id"],
        "1 if the device's last sample is fresh, else 0.";
    GpuActivity: Gauge, "tokenmeter_gpu_activity_ratio", Ratio, ["hw_id", "unit"],
        "Share of time in which a unit of the device was busy.";
    GpuClock: Gauge, "tokenmeter_gpu_clock_hertz", Hertz, ["hw_id", "clock"],
        "Clock rate of the device.";
    GpuPowerLimit: Gauge, "tokenmeter_gpu_power_limit_watts", Watts, ["hw_id"],
        "Power limit of the device.";
    GpuThrottled: Counter, "tokenmeter_gpu_throttled_seconds_total", Seconds, ["hw_id", "reason"],
        "Time in which the device was throttled, by reason.";
    GpuProcesses: Gauge, "tokenmeter_gpu_processes", Things, ["hw_id"],
        "Processes that use the device.";
    GpuResets: Counter, "tokenmeter_gpu_resets_total", Things, ["hw_id"],
        "Restarts of the device's counters, and returns of a device that was lost.";
    GpuGap: Counter, "tokenmeter_gpu_gap_seconds_total", Seconds, ["hw_id"],
        "Time that no sample of the device covers.";

    EnergyAttributed: Counter, "tokenmeter_energy_attributed_joules_total", Joules, ["tenant"],
        "Energy of settled exchanges; with idle, unattributed and pending energy it sums to the energy drawn since the baseline.";
    EnergyIdle: Counter, "tokenmeter_energy_idle_joules_total", Joules, ["hw_id"],
        "Energy drawn by the device while no exchange was in flight.";
    EnergyUnattributed: Counter, "tokenmeter_energy_unattributed_joules_total", Joules, ["hw_id"],
        "Energy drawn by the device for work that belongs to no known exchange.";
    EnergyPending: Gauge, "tokenmeter_energy_pending_joules", Joules, ["hw_id"],
        "Energy of exchanges in flight or not settled.";
    EnergyModel: Counter, "tokenmeter_energy_model_joules_total", Joules, ["model"],
        "The attributed energy, by model.";
    EnergyPerToken: Histogram(&ENERGY_PER_TOKEN_J), "tokenmeter_request_energy_per_output_token_joules", Joules, ["model"],
        "Energy of one settled exchange per output token.";
    GpuSecondsAttributed: Counter, "tokenmeter_gpu_attributed_seconds_total", Seconds, ["tenant"],
        "Device time of settled exchanges.";
    GpuSecondsIdle: Counter, "tokenmeter_gpu_idle_seconds_total", Seconds, ["hw_id"],
        "Device time in which no exchange was in flight.";
    GpuSecondsUnattributed: Counter, "tokenmeter_gpu_unattributed_seconds_total", Seconds, ["hw_id"],
        "Device time of work that belongs to no known exchange.";
    GpuSecondsPending: Gauge, "tokenmeter_gpu_pending_seconds", Seconds, ["hw_id"],
        "Device time of exchanges in flight or not settled.";
    GpuCost: Counter, "tokenmeter_gpu_cost_usd_total", Usd, ["tenant", "part"],
        "Cost of settled exchanges in device hours and energy, if prices are configured.";
    GpuIdleCost: Counter, "tokenmeter_gpu_idle_cost_usd_total", Usd, ["hw_id", "part"],
        "Cost of the device while no exchange was in flight, if prices are configured.";
    GpuUnattributedCost: Counter, "tokenmeter_gpu_unattributed_cost_usd_total", Usd, ["hw_id", "part"],
        "Cost of the device for work that belongs to no known exchange, if prices are configured.";

    TenantSpend: Counter, "tokenmeter_tenant_spend_usd_total", Money, ["tenant", "basis"],
        "Cost of finished exchanges, by tenant; on the basis `gpu` in US dollars, added when the exchange is settled.";
    ModelSpend: Counter, "tokenmeter_model_spend_usd_total", Money, ["model", "basis"],
        "The cost of `tokenmeter_tenant_spend_usd_total`, by model.";
    Unpriced: Counter, "tokenmeter_unpriced_exchanges_total", Exchanges, ["model", "reason"],
        "Finished exchanges without a price, by reason; the spend on the basis `price` does not include them.";
    UnpricedTier: Counter, "tokenmeter_unpriced_tier_exchanges_total", Exchanges, ["model"],
        "Finished exchanges of a service tier without prices in the price book; they are charged at the base prices of their entry.";
    PriceBookInfo: Gauge, "tokenmeter_price_book_info", Truth, ["version", "hash", "currency"],
        "Always 1; the labels identify the price book in force.";
    BudgetLimit: Gauge, "tokenmeter_budget_limit_usd", Money, ["tenant", "period", "limit"],
        "Spending limit of a tenant for the current period, as configured.";
    BudgetUsed: Gauge, "tokenmeter_budget_used_usd", Money, ["tenant", "period"],
        "Spend of a tenant in the current period, since its start.";
    BudgetForecast: Gauge, "tokenmeter_budget_forecast_usd", Money, ["tenant", "period"],
        "Forecast spend of a tenant at the end of the current period, at its rate so far; absent until there is enough data.";
    BudgetAlerts: Counter, "tokenmeter_budget_alerts_total", Things, ["tenant", "period", "threshold"],
        "Budget thresholds reached, each counted once per period.";
    BudgetWebhooks: Counter, "tokenmeter_budget_webhooks_total", Things, ["outcome"],
        "Webhook messages about budget thresholds, by outcome.";

    LedgerUp: Gauge, "tokenmeter_ledger_up", Truth, [],
        "1 if the ledger is writable, else 0; absent without a ledger.";
    LedgerRows: Counter, "tokenmeter_ledger_rows_total", Things, [],
        "Rows committed to the disk; no crash loses them.";
    LedgerLag: Gauge, "tokenmeter_ledger_commit_lag_seconds", Seconds, [],
        "Age of the oldest row that is not on the disk; 0 if there is none.";
    LedgerQueued: Gauge, "tokenmeter_ledger_queued_rows", Things, [],
        "Rows, exchange energies and idle shares of devices that wait to be written to the disk.";
    LedgerShed: Counter, "tokenmeter_ledger_shed_rows_total", Things, [],
        "Rows that are not kept, and only their totals by day, tenant and model: the queue was full, or exchanges without a tenant failed more often than 60 times a minute.";
    LedgerLost: Counter, "tokenmeter_ledger_lost_rows_total", Things, [],
        "Rows dropped together with their totals.";
    LedgerBytes: Gauge, "tokenmeter_ledger_bytes", Bytes, ["file"],
        "Size of the current month's database file and of its write-ahead log.";
    LedgerGaps: Counter, "tokenmeter_ledger_gaps_total", Things, [],
        "Gap markers written; a gap is a time in which the ledger may lack rows.";
    LedgerQuarantined: Counter, "tokenmeter_ledger_quarantined_total", Things, [],
        "Files found corrupt and quarantined.";
    LedgerFaults: Counter, "tokenmeter_ledger_faults_total", Things, ["fault"],
        "Failed writes, by cause; their rows are retried.";

    ShipUp: Gauge, "tokenmeter_ship_up", Truth, [],
        "1 if the central store accepted the last rows, else 0; absent without a store and before the first attempt.";
    ShipRows: Counter, "tokenmeter_ship_rows_total", Things, [],
        "Rows confirmed by the central store.";
    ShipPending: Gauge, "tokenmeter_ship_pending_rows", Things, [],
        "Rows in the ledger that the central store has not confirmed.";
    ShipLag: Gauge, "tokenmeter_ship_lag_seconds", Seconds, [],
        "Age of the oldest row that the central store has not confirmed; 0 if there is none.";
    ShipFailures: Counter, "tokenmeter_ship_failures_total", Things, ["reason"],
        "Failed attempts to ship rows, by reason; the rows are retried.";

    EventsUp: Gauge, "tokenmeter_usage_events_up", Truth, [],
        "1 if the last attempt to send usage events succeeded, else 0; absent without a receiver.";
    EventsSent: Counter, "tokenmeter_usage_events_sent_total", Things, [],
        "Usage events that the receiver accepted.";
    EventsPending: Gauge, "tokenmeter_usage_events_pending", Things, [],
        "Rows in the ledger whose usage events are not accepted yet.";
    EventsFailures: Counter, "tokenmeter_usage_events_failures_total", Things, ["reason"],
        "Failed attempts to send usage events, by reason; the events are retried.";

    ReloadSuccess: Gauge, "tokenmeter_config_last_reload_success", Truth, ["file"],
        "1 if the file was accepted when it was last read, else 0; a rejected file leaves the previous content in force.";
    Reloads: Counter, "tokenmeter_config_reloads_total", Things, ["file", "outcome"],
        "Reads of a file, by outcome.";
    CertificateExpiry: Gauge, "tokenmeter_certificate_expiry_timestamp_seconds", Seconds, ["listener"],
        "Earliest expiry in the certificate chain of the listener, in seconds since 1970.";

    OtlpItems: Counter, "tokenmeter_otlp_items_total", Things, ["signal", "outcome"],
        "Data points, spans and log records, by outcome.";
    OtlpQueued: Gauge, "tokenmeter_otlp_queued_items", Things, ["signal"],
        "Data points, spans and log records that wait to be exported.";
    OtlpUp: Gauge, "tokenmeter_otlp_up", Truth, ["signal"],
        "1 if the collector accepted the last export, else 0; absent before the first.";
    OtlpExport: Histogram(&edges::DURATION_S), "tokenmeter_otlp_export_seconds", Seconds, ["signal"],
        "Duration of one export, retries included.";
    Connections: Gauge, "tokenmeter_connections", Things, [],
        "Open client connections.";
    ConnectionsLimit: Gauge, "tokenmeter_connections_limit", Things, [],
        "Maximum number of open client connections.";
    UpstreamConnections: Gauge, "tokenmeter_upstream_connections", Things, ["upstream"],
        "Connections to the upstream that carry a request.";
    UpstreamConnectionsLimit: Gauge, "tokenmeter_upstream_connections_limit", Things, ["upstream"],
        "Maximum number of connections to the upstream that carry a request.";
    GatheredBytes: Gauge, "tokenmeter_gathered_bytes", Bytes, [],
        "Memory used by request bodies that are buffered whole before they are forwarded.";
    GatheredLimit: Gauge, "tokenmeter_gathered_limit_bytes", Bytes, [],
        "Maximum memory for buffered request bodies.";

    Scrapes: Counter, "tokenmeter_scrapes_total", Things, ["format"],
        "Scrapes of the metrics page, by format.";

    Overhead: Histogram(&edges::OVERHEAD_S), "tokenmeter_proxy_overhead_seconds", Seconds, ["class"],
        "Processing time of the proxy itself in one exchange.";
    Dropped: Counter, "tokenmeter_dropped_total", Things, ["what"],
        "Lost telemetry and work, by kind.";
    BuildInfo: Gauge, "tokenmeter_build_info", Truth, ["version"],
        "Always 1; the label `version` names the running version.";

    ProcessMemory: Gauge, "process_resident_memory_bytes", Bytes, [],
        "Resident memory of this process.";
    ProcessCpu: Counter, "process_cpu_seconds_total", Seconds, [],
        "User and system CPU time of this process.";
    ProcessFiles: Gauge, "process_open_fds", Things, [],
        "Open file descriptors of this process.";
    ProcessStart: Gauge, "process_start_time_seconds", Seconds, [],
        "Start time of this process, in seconds since 1970.";
}
