//! Every label of the table, described once.

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
    Label { name: "role", meaning: "The part of a request that a leg is" },
    Label { name: "type", meaning: "The kind of token; kinds are disjoint" },
    Label { name: "provenance", meaning: "How the count is known" },
    Label { name: "direction", meaning: "`input` (the prompt) or `output` (the answer)" },
    Label {
        name: "weight",
        meaning: "Whether each frame's token count was known or the total was spread over the frames",
    },
    Label {
        name: "concurrency",
        meaning: "Mean number of exchanges in flight to the upstream through this process during the exchange, rounded",
    },
    Label { name: "position", meaning: "Where in the answer: a range of output token positions" },
    Label { name: "step", meaning: "What was done about a request's usage" },
    Label { name: "class", meaning: "`stream` for answers in frames, `body` for answers in one piece" },
    Label { name: "what", meaning: "What was lost" },
    Label { name: "objective", meaning: "The objective's name, as configured" },
    Label { name: "rule", meaning: "Which rule said whose a request is; `default` where none did" },
    Label {
        name: "basis",
        meaning: "`price`: tokens by the price book; `gpu`: device hours and energy, in US dollars",
    },
    Label { name: "hash", meaning: "The content hash of the price book" },
    Label { name: "currency", meaning: "The currency of the price book, by ISO 4217" },
    Label { name: "period", meaning: "The period of the budget; `30d` is the last thirty days, whenever" },
    Label { name: "limit", meaning: "Which of the budget's two limits" },
    Label {
        name: "threshold",
        meaning: "Per cent of the limit that were reached, the `soft` limit below a hard one, or `forecast`: at this pace the limit will be",
    },
    Label { name: "file", meaning: "Which file; each metric has its own closed list" },
    Label { name: "fault", meaning: "What the disk or the file would not do" },
    Label { name: "verdict", meaning: "What came of the objective in the exchange" },
    Label {
        name: "tenant",
        meaning: "Whose exchange it was: `default` where nobody is told apart; `_other` beyond a hundred",
    },
    Label { name: "upstream", meaning: "The inference server's name, as configured" },
    Label { name: "kind", meaning: "The kind of inference server, as configured or as it was recognised" },
    Label {
        name: "version",
        meaning: "The version: of this program, or of the price book as its file names it",
    },
    Label { name: "gen_ai_operation_name", meaning: "`gen_ai.operation.name` of the semantic convention" },
    Label {
        name: "gen_ai_provider_name",
        meaning: "`gen_ai.provider.name` of the semantic convention: the upstream's kind",
    },
    Label {
        name: "gen_ai_request_model",
        meaning: "`gen_ai.request.model` of the semantic convention; same values as `model`",
    },
    Label {
        name: "gen_ai_token_modality",
        meaning: "`gen_ai.token.modality` of the semantic convention; `unknown` where the server does not tell",
    },
    Label { name: "gen_ai_token_type", meaning: "`gen_ai.token.type` of the semantic convention" },
    Label { name: "hw_id", meaning: "`hw.id` of the semantic convention: the device's UUID" },
    Label { name: "hw_type", meaning: "`hw.type` of the semantic convention" },
    Label {
        name: "hw_name",
        meaning: "`hw.name` of the semantic convention: what its maker calls the device",
    },
    Label { name: "hw_vendor", meaning: "`hw.vendor` of the semantic convention" },
    Label { name: "hw_driver_version", meaning: "`hw.driver_version` of the semantic convention" },
    Label {
        name: "hw_parent",
        meaning: "`hw.parent` of the semantic convention: the device it is a slice of",
    },
    Label {
        name: "error_type",
        meaning: "`error.type` of the semantic convention; of an exchange how it failed, empty for a success",
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
        meaning: "Of a device: who says so, `power` where the energy is reckoned from the power; of a prompt token: where it came from",
    },
    Label { name: "shared", meaning: "Whether others but these upstreams use the device" },
    Label { name: "unit", meaning: "Which part of the device" },
    Label { name: "clock", meaning: "Which of the device's clocks" },
    Label { name: "part", meaning: "What was paid for: the device's hours, or its energy" },
    Label { name: "signal", meaning: "What was exported by OTLP" },
    Label { name: "outcome", meaning: "What became of it; each metric has its own closed list" },
    Label { name: "format", meaning: "The form of the page" },
];
