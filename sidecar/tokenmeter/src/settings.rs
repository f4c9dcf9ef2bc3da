//! The settings as written: one table of all there are, and what was written for each.
//!
//! Each setting can be written in four places; the first that has it counts: flag, environment,
//! file, default. Flag, variable, key, help text and check all come from its row in [`SETTINGS`],
//! so none can be missing or differ. Values stay text here; `plan` gives them meaning.

mod list;
mod written;

use budget::Period;
use metrics::PRESETS;
use relay::{Kind, UnknownPaths};

use crate::file;

pub use list::{BUDGET_LIST, List, OBJECTIVE_LIST, UPSTREAMS};
pub use written::{Entry, Value, Written};

/// A setting there is.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file; the flag and the variable are made of it.
    pub key: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// The value it has if none is written; empty if that is worked out.
    pub default: &'static str,
    /// What it means, in one sentence without a full stop.
    pub help: &'static str,
}

/// What a setting's value looks like.
#[derive(Debug)]
pub enum Form {
    /// Text; the word shown for it in the help.
    Text(&'static str),
    /// A whole number of something, within bounds.
    Number {
        /// Of what, in the plural.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A decimal number of something, not negative; empty if there is none.
    Decimal {
        /// Of what, in the plural.
        unit: &'static str,
    },
    /// `true` or `false`.
    Switch,
    /// One of these.
    Choice(&'static [&'static str]),
}

impl Setting {
    /// Its flag.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// Its environment variable.
    pub fn variable(&self) -> String {
        variable(self.key)
    }
}

/// The environment variable that mirrors a key.
pub fn variable(key: &str) -> String {
    format!("TOKENMETER_{}", key.to_ascii_uppercase())
}

/// Every setting, in the order of the help and of `check-config`.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "upstream",
        form: Form::Text("URL"),
        default: "",
        help: "The inference server behind us, as http://HOST:PORT[/PREFIX]; \
               for several, list them under `upstreams` in the file",
    },
    Setting {
        key: "kind",
        form: Form::Choice(&KINDS),
        default: "auto",
        help: "What kind of server it is; the provider label of its metrics; auto asks it, \
               and is openai until it is known",
    },
    Setting {
        key: "usage",
        form: Form::Choice(&USAGE),
        default: "inject",
        help: "What is done so that streams carry token counts: inject asks the server for usage when \
               the client did not, and takes exactly that out of the answer; continuous also asks for \
               running counts, which makes aborted streams exact on vLLM, llama.cpp, SGLang, TensorRT-LLM and LMDeploy; \
               observe touches nothing; while a budget is enforced, the default is continuous",
    },
    Setting {
        key: "role",
        form: Form::Choice(&ROLES),
        default: "whole",
        help: "The part of a request that the server does, where prefill and decode run on two: whole, prefill or \
               decode; auto goes by kv_transfer_params of requests from trusted_peers (vLLM, llm-d). A prefill leg \
               is in no count of tokens and in no spend",
    },
    Setting {
        key: "listen",
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9800",
        help: "Where clients reach the upstream through us, as ADDRESS:PORT; port 0 takes a free one",
    },
    Setting {
        key: "engine_metrics",
        form: Form::Choice(&SCRAPES),
        default: "auto",
        help: "Whether the server's own metrics page is read; auto does unless that disturbs others \
               who read it, as llama.cpp's would; off with a kind named asks the server nothing",
    },
    Setting {
        key: "engine_metrics_interval_ms",
        form: Form::Number { unit: "milliseconds", min: 1000, max: 3_600_000 },
        default: "15000",
        help: "How often it is read",
    },
    Setting {
        key: "admin",
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9464",
        help: "Where /metrics, /livez, /readyz and the live page are, as ADDRESS:PORT",
    },
    Setting {
        key: "admin_hosts",
        form: Form::Text("NAMES"),
        default: "",
        help: "Host names, separated by commas, under which the admin address may be asked, \
               besides IP addresses and localhost (a guard against DNS rebinding)",
    },
    Setting {
        key: "workers",
        form: Form::Number { unit: "threads", min: 1, max: 1024 },
        default: "",
        help: "Worker threads; by default one for each core we may use",
    },
    Setting {
        key: "connections",
        form: Form::Number { unit: "connections", min: 1, max: 1_000_000 },
        default: "4096",
        help: "Client connections served at once by each worker; beyond it the one that has been idle for \
               longest is closed, and if none is idle accepting pauses",
    },
    Setting {
        key: "upstream_connections",
        form: Form::Number { unit: "connections", min: 1, max: 1_000_000_000 },
        default: "",
        help: "Requests that each upstream is sent at once; beyond it clients get 503 with Retry-After; \
               by default as many as there may be client connections, and at most what half of the \
               process' descriptors allows",
    },
    Setting {
        key: "streams_per_connection",
        form: Form::Number { unit: "streams", min: 1, max: 1_000_000 },
        default: "256",
        help: "HTTP/2 streams open at once on one client connection",
    },
    Setting {
        key: "gather_memory_mib",
        form: Form::Number { unit: "mebibytes", min: 8, max: 1_048_576 },
        default: "64",
        help: "Memory for request bodies that are read whole before they go on; while another client waits \
               for it, one client has a quarter",
    },
    Setting {
        key: "descriptor_reserve",
        form: Form::Number { unit: "descriptors", min: 0, max: 1_000_000 },
        default: "256",
        help: "File descriptors of the process that sockets of clients and upstreams do not take, so that the \
               admin address and the ledger keep working; at most a quarter of the limit (ulimit -n)",
    },
    Setting {
        key: "pool_size",
        form: Form::Number { unit: "connections", min: 0, max: 100_000 },
        default: "256",
        help: "Idle upstream connections kept by each worker for each upstream",
    },
    Setting {
        key: "pool_idle_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 3_600_000 },
        default: "4000",
        help: "How long an idle upstream connection is kept; below uvicorn's 5000",
    },
    Setting {
        key: "connect_timeout_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 600_000 },
        default: "5000",
        help: "How long connecting to the upstream may take",
    },
    Setting {
        key: "head_timeout_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 600_000 },
        default: "10000",
        help: "How long a client may take to send a request head, the first one counted from its connection",
    },
    Setting {
        key: "body_idle_ms",
        form: Form::Number { unit: "milliseconds", min: 1000, max: 86_400_000 },
        default: "30000",
        help: "How long a client may be silent within a request body; then it gets 408. Silence of the \
               inference server, and of gRPC clients (HTTP/2, on a path that is not metered), is not limited",
    },
    Setting {
        key: "body_min_rate",
        form: Form::Number { unit: "bytes per second", min: 0, max: 1_000_000_000 },
        default: "128",
        help: "The least mean rate of a request body, or of an answer that its client is slow to take, after \
               30 seconds of waiting for the client",
    },
    Setting {
        key: "body_time_ms",
        form: Form::Number { unit: "milliseconds", min: 1000, max: 86_400_000 },
        default: "300000",
        help: "How long a client may take to send a request body, and 1 second more for each 4 KiB of it; then it \
               gets 408. Time in which the inference server does not take the body is not counted",
    },
    Setting {
        key: "client_stall_ms",
        form: Form::Number { unit: "milliseconds", min: 1000, max: 86_400_000 },
        default: "120000",
        help: "How long a client may take nothing of an answer that is ready for it; then it is cut off",
    },
    Setting {
        key: "stall_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 3_600_000 },
        default: "1000",
        help: "A longer gap between two tokens counts as a stall",
    },
    Setting {
        key: "objective",
        form: Form::Choice(&OBJECTIVES),
        default: "off",
        help: "What every model's streams are to keep, at least 99 of 100: voice is a first token within 250 ms, \
               then 100 tokens per second; chat 1 s and 30; reading 2.5 s and 15; floor 10 s and 10; \
               for others, or for some models only, list them under `objectives` in the file",
    },
    Setting {
        key: "max_tokens_claimed",
        form: Form::Number { unit: "tokens", min: 1, max: 9_007_199_254_740_992 },
        default: "10000000",
        help: "The most tokens one number of one exchange may claim; more is refused and counted",
    },
    Setting {
        key: "half_close",
        form: Form::Switch,
        default: "false",
        help: "Go on answering a client that closed its write side; off, it counts as gone",
    },
    Setting {
        key: "detached_work",
        form: Form::Choice(&DETACHED_WORK),
        default: AUTO,
        help: "Work that goes on after its client left, and cannot be counted then (batches, \
               Responses with background: true, llama.cpp's X-Conversation-Id): refuse answers 403 to the first two \
               and takes the last out of requests, allow lets all pass, auto refuses while a budget is enforced",
    },
    Setting {
        key: "drain_delay_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 3_600_000 },
        default: "5000",
        help: "After a stop signal: how long new connections are still served",
    },
    Setting {
        key: "drain_grace_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 86_400_000 },
        default: "25000",
        help: "After that: how long streams may take to finish before they are cut",
    },
    Setting {
        key: "max_models",
        form: Form::Number { unit: "models", min: 1, max: 10_000 },
        default: "50",
        help: "Models with labels of their own; the others share `_other`",
    },
    Setting {
        key: "outbox_records",
        form: Form::Number { unit: "records", min: 1, max: 1_000_000 },
        default: "4096",
        help: "Finished exchanges that may wait for the control plane; more are dropped and counted",
    },
    Setting {
        key: "tenants",
        form: Form::Text("FILE"),
        default: "",
        help: "The rules by which each exchange is somebody's: tokens, API keys, headers of trusted peers, \
               the body, the path or the peer (YAML, read again when it changes); without it all are `default`'s",
    },
    Setting {
        key: "hash_key_file",
        form: Form::Text("FILE"),
        default: "",
        help: "A secret of at least 32 random bytes, the same across a fleet, by which API keys, principals \
               and end users are hashed",
    },
    Setting {
        key: "tokenizers",
        form: Form::Text("MODEL=PATH"),
        default: "",
        help: "Tokenizers, separated by commas, for models whose server counts nothing: each a model's name \
               and its tokenizer.json or the folder that holds it",
    },
    Setting {
        key: "otlp_endpoint",
        form: Form::Text("URL"),
        default: "",
        help: "The OpenTelemetry collector to which metrics and traces are sent, as http(s)://HOST:PORT; \
               without it OTEL_EXPORTER_OTLP_ENDPOINT counts, and without either nothing is sent",
    },
    Setting {
        key: "otlp_protocol",
        form: Form::Choice(&OTLP_PROTOCOLS),
        default: AUTO,
        help: "What is spoken to it; auto is what OTEL_EXPORTER_OTLP_PROTOCOL says, or http/protobuf",
    },
    Setting {
        key: "otlp_signals",
        form: Form::Text("NAMES"),
        default: "",
        help: "What is sent, of metrics, traces and logs (a log record for each exchange), separated by commas; \
               by default metrics and traces, unless OTEL_METRICS_EXPORTER and its like say otherwise",
    },
    Setting {
        key: "trace_headers",
        form: Form::Choice(&[ON, OFF]),
        default: ON,
        help: "Where traces are sent: tell the upstream of them, by traceparent (W3C Trace Context)",
    },
    Setting {
        key: "semconv",
        form: Form::Choice(&SEMCONV),
        default: AUTO,
        help: "Metrics of the GenAI convention beside gen_ai.server.*: latest (tokens spent, tokens by operation, \
               embeddings), client (latest, and duration, chunk times and event name as a client has them), legacy \
               (gen_ai.client.token.usage), or both (latest and legacy); auto is what OTEL_SEMCONV_STABILITY_OPT_IN \
               says, or latest",
    },
    Setting {
        key: "gpu",
        form: Form::Choice(&GPU),
        default: AUTO,
        help: "Where readings of GPUs come from: nvml (the driver's library), exporter (dcgm-exporter or AMD's, \
               at gpu_exporter), off; auto takes the first that is there",
    },
    Setting {
        key: "gpu_exporter",
        form: Form::Text("URL"),
        default: "",
        help: "The metrics page of a dcgm-exporter or an AMD device-metrics-exporter, as http://HOST:PORT/metrics",
    },
    Setting {
        key: "gpu_exporter_hostname",
        form: Form::Text("NAME"),
        default: "",
        help: "The node whose GPUs are meant, as the exporter labels it: a Service may answer from another node; \
               by default what K8S_NODE_NAME or NODE_NAME says; empty, every GPU on the page counts",
    },
    Setting {
        key: "gpu_exporter_prefix",
        form: Form::Text("PREFIX"),
        default: "",
        help: "What the exporter's metrics begin with before their own names, as AMD's can be told to write",
    },
    Setting {
        key: "gpus",
        form: Form::Text("GPUS"),
        default: "",
        help: "Which GPUs the upstream uses, by index or UUID, separated by commas, or all; \
               none if it uses none; \
               by default, of one upstream, all that the driver shows, or an exporter's if it shows only one",
    },
    Setting {
        key: "gpu_sample_ms",
        form: Form::Number { unit: "milliseconds", min: 100, max: 60_000 },
        default: "1000",
        help: "How often GPUs are read",
    },
    Setting {
        key: "gpu_stale_ms",
        form: Form::Number { unit: "milliseconds", min: 200, max: 600_000 },
        default: "5000",
        help: "How old a reading may be before it is no longer shown, and for how long energy is attributed over \
               missing samples: at least two samples; by default 5000, or five samples if that is longer",
    },
    Setting {
        key: "gpu_hour_usd",
        form: Form::Decimal { unit: "dollars" },
        default: "",
        help: "What an hour of one GPU costs, in US dollars",
    },
    Setting {
        key: "kwh_usd",
        form: Form::Decimal { unit: "dollars" },
        default: "",
        help: "What a kilowatt-hour costs, in US dollars",
    },
    Setting {
        key: "pue",
        form: Form::Decimal { unit: "watts per watt" },
        default: "1",
        help: "Power usage effectiveness of the data centre, by which the energy's price is multiplied",
    },
    Setting {
        key: "ledger",
        form: Form::Text("PATH|URL"),
        default: "",
        help: "Where each exchange is kept for the bill: a file ending in .db, or postgres://USER@HOST/DATABASE for a \
               central store, with the file ledger_spool before it; without it nothing is kept",
    },
    Setting {
        key: "ledger_spool",
        form: Form::Text("PATH"),
        default: "tokenmeter.db",
        help: "Where the ledger names a central store: the file that rows are in until it has them",
    },
    Setting {
        key: "ledger_wait",
        form: Form::Switch,
        default: "false",
        help: "Start although another process of this host writes the ledger, and keep rows in memory until that \
               process ends",
    },
    Setting {
        key: "ledger_ship",
        form: Form::Text("URL"),
        default: "",
        help: "A central PostgreSQL that the ledger's rows are sent to, as postgres://USER@HOST:PORT/DATABASE; \
               encrypted, unless it is on this machine or the URL ends in ?sslmode=disable",
    },
    Setting {
        key: "ledger_ship_password_file",
        form: Form::Text("FILE"),
        default: "",
        help: "A file whose first line is the password for it; else the URL, PGPASSWORD or a .pgpass file has it",
    },
    Setting {
        key: "ledger_keep_days",
        form: Form::Number { unit: "days", min: 0, max: 36_500 },
        default: "0",
        help: "How long the ledger keeps rows after their month ended; daily totals stay for ever, and so does \
               everything with 0",
    },
    Setting {
        key: "budget_webhook",
        form: Form::Text("URL"),
        default: "",
        help: "Where it is posted that a budget's threshold was reached, as https://HOST[:PORT]/PATH; \
               the budgets are listed under `budgets` in the file",
    },
    Setting {
        key: "budget_webhook_secret_file",
        form: Form::Text("PATH"),
        default: "",
        help: "A file with the secret by which what is posted there is signed",
    },
    Setting {
        key: "prices",
        form: Form::Text("FILE"),
        default: "",
        help: "A price file: what tokens cost, and what each exchange is charged by (see `tokenmeter prices`)",
    },
    Setting {
        key: "access_log",
        form: Form::Switch,
        default: "false",
        help: "Log a line for each exchange: whose it was, counts, times and cost, never content",
    },
    Setting {
        key: "log_level",
        form: Form::Choice(&["error", "warn", "info", "debug", "trace"]),
        default: "info",
        help: "The least important messages that are logged",
    },
    Setting {
        key: "log_format",
        form: Form::Choice(&["auto", "text", "json"]),
        default: "auto",
        help: "How they look; auto is text on a terminal and JSON elsewhere",
    },
];

/// The kinds of server, values of `gen_ai.provider.name`; before them what finds them out.
pub const KINDS: [&str; Kind::ALL.len() + 1] = {
    let mut names = [AUTO; Kind::ALL.len() + 1];
    let mut at = 0;
    while at < Kind::ALL.len() {
        names[at + 1] = Kind::ALL[at].name();
        at += 1;
    }
    names
};

/// The kind that is found out.
pub const AUTO: &str = "auto";

/// Whether an upstream's own metrics page is read.
pub const SCRAPES: [&str; 3] = ["auto", "on", "off"];

/// The names of the usage policies.
pub const USAGE: [&str; 3] = ["inject", "continuous", "observe"];

/// The roles of an upstream.
pub const ROLES: [&str; 4] = ["whole", "prefill", "decode", AUTO];

/// What is spoken to a collector.
pub const OTLP_PROTOCOLS: [&str; 3] = [AUTO, "http/protobuf", "grpc"];

/// Vintages of the GenAI convention's token metrics.
pub const SEMCONV: [&str; 5] = [AUTO, "latest", "client", "legacy", "both"];

/// Where readings of GPUs come from.
pub const GPU: [&str; 4] = [AUTO, "nvml", "exporter", OFF];

/// The objectives with a name; before them that there is none.
pub const OBJECTIVES: [&str; PRESETS.len() + 1] = {
    let mut names = [OFF; PRESETS.len() + 1];
    let mut at = 0;
    while at < PRESETS.len() {
        names[at + 1] = PRESETS[at].name;
        at += 1;
    }
    names
};

/// What is done.
pub const ON: &str = "on";

/// What is not: no objective, nothing read, nothing told.
pub const OFF: &str = "off";

/// The treatment of work that goes on after its client left.
pub const DETACHED_WORK: [&str; 3] = [AUTO, "allow", "refuse"];

/// The treatments of requests for a model without a price, of unreadable requests and of streams that cannot be
/// counted; the first is the default.
pub const BUDGET_UNPRICED: [&str; 2] = ["allow", "refuse"];

/// The treatments of requests to unknown paths; the first is the default.
pub const BUDGET_UNKNOWN_PATHS: [&str; UnknownPaths::ALL.len()] = {
    let mut names = [""; UnknownPaths::ALL.len()];
    let mut at = 0;
    while at < UnknownPaths::ALL.len() {
        names[at] = UnknownPaths::ALL[at].name();
        at += 1;
    }
    names
};

/// How long budgets last.
pub const BUDGET_DURATIONS: [&str; Period::ALL.len()] = {
    let mut names = [""; Period::ALL.len()];
    let mut at = 0;
    while at < Period::ALL.len() {
        names[at] = Period::ALL[at].name();
        at += 1;
    }
    names
};

/// Returns the one of `known` that a text names; `on` and `off` also as YAML's other words for true and false.
pub(crate) fn choice(text: &str, known: &[&'static str]) -> Option<&'static str> {
    let named = |word: &str| known.iter().copied().find(|known| *known == word);
    named(text).or_else(|| named(if file::truth(text)? { ON } else { OFF }))
}

/// The row of a key that is known to be in the table.
pub fn setting(key: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.key == key).expect("the caller names a row of the table")
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
