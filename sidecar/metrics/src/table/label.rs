//! The labels of the table.

/// A label and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The label's name.
    pub name: &'static str,
    /// The meaning of its values; the manual adds the list of a closed label.
    pub meaning: &'static str,
}

/// All labels, each once.
pub const LABELS: &[Label] = &[
    Label {
        name: "model",
        meaning: "Model named in the request, at most 128 bytes; `_other` beyond the cap, `_unknown` before it is known",
    },
    Label { name: "dialect", meaning: "JSON shape of the endpoint" },
    Label { name: "ending", meaning: "Ending of the exchange; it names the party that caused it" },
    Label { name: "reason", meaning: "Reason; each metric has its own closed list" },
    Label { name: "stated", meaning: "Form that the content type says" },
    Label { name: "quota", meaning: "Quantity that the provider limits" },
    Label { name: "role", meaning: "Part of the request that the leg performs" },
    Label { name: "type", meaning: "Token type; types are disjoint" },
    Label { name: "provenance", meaning: "Source of the token count" },
    Label { name: "direction", meaning: "`input` (the prompt) or `output` (the response)" },
    Label {
        name: "weight",
        meaning: "`exact` if the token count of each frame is known, `spread` if the total is divided over the frames",
    },
    Label {
        name: "concurrency",
        meaning: "Mean number of exchanges in flight to the upstream through this process during the exchange, rounded",
    },
    Label { name: "position", meaning: "Range of output token positions" },
    Label { name: "disagreement", meaning: "Contradiction in the token counts of the server" },
    Label { name: "step", meaning: "Step taken to obtain usage in the response" },
    Label {
        name: "member",
        meaning: "Member of the server's usage object; `_other` for a name of more than 64 bytes, and beyond 32 names of a dialect",
    },
    Label { name: "class", meaning: "`stream` for streamed responses, `body` for the others" },
    Label { name: "what", meaning: "Kind of loss" },
    Label { name: "objective", meaning: "Name of the objective, as configured" },
    Label { name: "rule", meaning: "Kind of tenant rule that matched; `default` if none did" },
    Label {
        name: "basis",
        meaning: "`price`: tokens by the price book; `gpu`: device hours and energy, in US dollars",
    },
    Label { name: "hash", meaning: "Content hash of the price book" },
    Label { name: "currency", meaning: "ISO 4217 code of the price book's currency" },
    Label { name: "period", meaning: "Period of the budget; `30d` is a sliding window of thirty days" },
    Label { name: "limit", meaning: "Kind of the budget's limit" },
    Label {
        name: "threshold",
        meaning: "Percentage of the limit that was reached, `soft` for the soft limit below a hard one, or `forecast` if the forecast exceeds the limit",
    },
    Label { name: "file", meaning: "File; each metric has its own closed list" },
    Label { name: "listener", meaning: "Address of the listener, as configured" },
    Label { name: "fault", meaning: "Cause of the failed write" },
    Label { name: "verdict", meaning: "Verdict of the objective on the exchange" },
    Label {
        name: "tenant",
        meaning: "Tenant of the exchange; `default` without tenant rules, `_other` beyond a hundred tenants",
    },
    Label { name: "upstream", meaning: "Name of the inference server, as configured" },
    Label { name: "kind", meaning: "Inference server software, as configured or detected" },
    Label { name: "version", meaning: "Version of this program, or of the price book as stated in its file" },
    Label { name: "gen_ai_operation_name", meaning: "`gen_ai.operation.name` of the semantic convention" },
    Label {
        name: "gen_ai_provider_name",
        meaning: "`gen_ai.provider.name` of the semantic convention: the hosted provider, else the upstream's kind",
    },
    Label {
        name: "gen_ai_request_model",
        meaning: "`gen_ai.request.model` of the semantic convention; same values as `model`",
    },
    Label {
        name: "gen_ai_token_modality",
        meaning: "`gen_ai.token.modality` of the semantic convention; `unknown` if the server does not report it",
    },
    Label { name: "gen_ai_token_type", meaning: "`gen_ai.token.type` of the semantic convention" },
    Label { name: "hw_id", meaning: "`hw.id` of the semantic convention: the device's UUID" },
    Label { name: "hw_type", meaning: "`hw.type` of the semantic convention" },
    Label {
        name: "hw_name",
        meaning: "`hw.name` of the semantic convention: the vendor's name for the device",
    },
    Label { name: "hw_vendor", meaning: "`hw.vendor` of the semantic convention" },
    Label { name: "hw_driver_version", meaning: "`hw.driver_version` of the semantic convention" },
    Label {
        name: "hw_parent",
        meaning: "`hw.parent` of the semantic convention: the device of which it is a partition",
    },
    Label {
        name: "error_type",
        meaning: "`error.type` of the semantic convention: an HTTP status (`503`) or one of these; empty for a success. Of `hw_errors_total`: `corrected` or `uncorrected`",
    },
    Label {
        name: "server_address",
        meaning: "`server.address` of the semantic convention: the host of the upstream, as configured",
    },
    Label {
        name: "server_port",
        meaning: "`server.port` of the semantic convention: the port of the upstream, as configured",
    },
    Label {
        name: "source",
        meaning: "Of a device: where its samples come from; `power` means that energy is integrated from power. Of a prompt token: where it came from",
    },
    Label {
        name: "shared",
        meaning: "`true` if several upstreams run on the device, or the exporter names several pods that use it",
    },
    Label { name: "unit", meaning: "Unit of the device" },
    Label { name: "clock", meaning: "Clock of the device" },
    Label { name: "part", meaning: "Component of the cost: device hours or energy" },
    Label { name: "signal", meaning: "OTLP signal" },
    Label { name: "outcome", meaning: "Outcome; each metric has its own closed list" },
    Label { name: "format", meaning: "Format of the metrics page" },
];
