//! The settings as written: the table of all settings, and the value given for each.
//!
//! Each setting can be given in four places; the first that has it applies: flag, environment, file, default. Flag,
//! variable, key, help text and check all come from its row in [`SETTINGS`]. Values stay text here; `plan` parses them.

mod choices;
pub mod file;
mod group;
mod list;
mod raw;
mod row;

pub use choices::{
    APPEND, AUTO, BUDGET_DURATIONS, BUDGET_UNKNOWN_PATHS, BUDGET_UNPRICED, DETACHED_WORK, FOCUS_BILLING,
    FORWARDED, GPU, KINDS, OBJECTIVES, OFF, ON, OTLP_DETAILS, OTLP_PROTOCOLS, ROLES, SCRAPES, SEMCONV, USAGE,
};
pub(crate) use choices::{choice, one_of};
pub use group::Group;
pub use list::{BUDGET_LIST, List, MAPS, OBJECTIVE_LIST, UPSTREAM_TLS, UPSTREAMS};
pub use raw::{Entry, RawSettings, Value};
pub use row::{Form, Setting, variable};

/// All settings, in the order of the help and of `check-config`.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "upstream",
        group: Group::Proxy,
        form: Form::Text("URL"),
        default: "",
        help: "URL of the inference server, http(s)://HOST[:PORT][/PREFIX] or unix:PATH; for several servers, list \
               them under `upstreams` in the file",
    },
    Setting::proxy_file(
        "upstream_ca",
        "Trusted root certificates of an https upstream (PEM), in place of the system's",
    ),
    Setting::proxy_file(
        "upstream_cert",
        "Client certificate with its chain (PEM), for an https upstream that requires one; read again when it changes",
    ),
    Setting::proxy_file("upstream_key", "Private key of the client certificate (PEM)"),
    Setting {
        key: "upstream_server_name",
        group: Group::Proxy,
        form: Form::Text("NAME"),
        default: "",
        help: "Name that the upstream's certificate must have, also sent as SNI; by default the URL's host",
    },
    Setting::proxy_switch(
        "upstream_insecure_skip_verify",
        "Accept every certificate of the upstream, for tests only: anyone on the network path can then read and \
               change all requests",
    ),
    Setting {
        key: "upstream_proxy",
        group: Group::Proxy,
        form: Form::Text("URL"),
        default: "",
        help: "HTTP proxy for https upstreams (CONNECT), http://[USER:PASSWORD@]HOST:PORT, or env to use HTTPS_PROXY \
               and NO_PROXY; these variables have no effect on upstreams otherwise",
    },
    Setting {
        key: "kind",
        group: Group::Proxy,
        form: Form::Choice(&KINDS),
        default: "auto",
        help: "Type of the server, which sets the provider label of its metrics; auto recognises a hosted provider by \
               the URL's host and detects any other server; until then the label is openai",
    },
    Setting {
        key: "usage",
        group: Group::Counting,
        form: Form::Choice(&USAGE),
        default: "inject",
        help: "How streams get token counts: inject adds a usage request where the client sent none, and removes the \
               added usage from the response; continuous also requests running counts, which makes aborted streams \
               exact on vLLM, llama.cpp, SGLang, TensorRT-LLM and LMDeploy; observe changes nothing; while a budget \
               is enforced, the default is continuous",
    },
    Setting {
        key: "role",
        group: Group::Counting,
        form: Form::Choice(&ROLES),
        default: "whole",
        help: "Role of the server if prefill and decode of a request run on two servers: whole (both), prefill or \
               decode; auto reads it from kv_transfer_params of requests from trusted_peers (vLLM, llm-d). Token \
               counts and spend exclude prefill requests",
    },
    Setting {
        key: "listen",
        group: Group::Proxy,
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9800",
        help: "Address on which clients reach the upstream, ADDRESS:PORT; port 0 takes a free one; or unix:PATH",
    },
    Setting {
        key: "listen_mode",
        group: Group::Proxy,
        form: Form::Text("MODE"),
        default: "0660",
        help: "Permission bits of the Unix sockets that `listen` names, in octal; users with write permission can connect",
    },
    Setting {
        key: "listen_tls",
        group: Group::Proxy,
        form: Form::Text("ADDR"),
        default: "",
        help: "Address on which clients reach the upstream by TLS (HTTP/2 or HTTP/1.1), ADDRESS:PORT; with it, \
               `listen` has no default",
    },
    Setting::proxy_file("tls_cert", "Certificate chain of `listen_tls`, PEM; read again when it changes"),
    Setting::proxy_file("tls_key", "Private key of `tls_cert`, PEM; read again when it changes"),
    Setting::proxy_file(
        "tls_client_ca",
        "Trusted root certificates of client certificates, PEM; with it, clients of `listen_tls` must present one",
    ),
    Setting::proxy_switch(
        "proxy_protocol",
        "Require a PROXY protocol header, version 1 or 2, in which a load balancer names the client; connections \
               without one, or from peers that are not in `trusted_peers`, are closed",
    ),
    Setting {
        key: "forwarded",
        group: Group::Proxy,
        form: Form::Choice(&FORWARDED),
        default: OFF,
        help: "append adds the client's address, protocol and host to requests, in Forwarded and X-Forwarded-For, \
               -Proto and -Host, and removes such fields of peers that are not in `trusted_peers`",
    },
    Setting::proxy_switch(
        "transparent",
        "Serve connections that `tokenmeter redirect` sends to `listen`: each goes to the upstream whose port its \
               client addressed; others are closed",
    ),
    Setting {
        key: "engine_metrics",
        group: Group::Telemetry,
        form: Form::Choice(&SCRAPES),
        default: "auto",
        help: "Scraping of the server's own metrics page: auto scrapes unless that disturbs other scrapers, as on \
               llama.cpp; off reads no page, and if `kind` is set too, tokenmeter itself sends the server no requests",
    },
    Setting {
        key: "engine_metrics_interval_ms",
        group: Group::Telemetry,
        form: Form::Number { unit: "milliseconds", min: 1000, max: 3_600_000 },
        default: "15000",
        help: "Interval at which the server's metrics page is scraped",
    },
    Setting {
        key: "admin",
        group: Group::Proxy,
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9464",
        help: "Address of /metrics, /livez, /readyz and the live page, ADDRESS:PORT",
    },
    Setting {
        key: "admin_tls",
        group: Group::Proxy,
        form: Form::Text("ADDR"),
        default: "",
        help: "Additional address with TLS for the same pages as `admin`, ADDRESS:PORT",
    },
    Setting::proxy_file(
        "admin_tls_cert",
        "Certificate chain of `admin_tls`, PEM; read again when it changes",
    ),
    Setting::proxy_file("admin_tls_key", "Private key of `admin_tls_cert`, PEM; read again when it changes"),
    Setting::proxy_file(
        "admin_tls_client_ca",
        "Trusted root certificates of client certificates, PEM; with it, clients of `admin_tls` must present a \
               certificate, probes included",
    ),
    Setting {
        key: "admin_hosts",
        group: Group::Proxy,
        form: Form::Text("NAMES"),
        default: "",
        help: "Host names, separated by commas, that requests to the admin address may carry besides IP addresses and \
               localhost (protects against DNS rebinding)",
    },
    Setting::proxy_file(
        "admin_token_file",
        "File with the token that requests for /metrics and the live page's numbers must send; created with a random \
               token if it does not exist; without this setting no token is required",
    ),
    Setting::proxy_number(
        "workers",
        ("threads", 1, 1024),
        "",
        "Worker threads; by default one per available core",
    ),
    Setting::proxy_number(
        "connections",
        ("connections", 1, 1_000_000),
        "4096",
        "Maximum number of client connections per worker; at the limit, the connection that has been idle longest is \
               closed, else a slow one; if there is neither, new connections wait",
    ),
    Setting::proxy_number(
        "upstream_connections",
        ("connections", 1, 1_000_000_000),
        "",
        "Maximum number of concurrent requests per upstream, of which one client gets at most three quarters; further \
               requests wait up to 5 s, then get 503 with Retry-After; by default the client connections of all \
               workers, but at most half of the file descriptors that sockets may use",
    ),
    Setting::proxy_number(
        "streams_per_connection",
        ("streams", 1, 1_000_000),
        "256",
        "Maximum number of concurrent HTTP/2 streams per client connection",
    ),
    Setting::proxy_number(
        "gather_memory_mib",
        ("mebibytes", 8, 1_048_576),
        "64",
        "Memory for request bodies that are read whole before they are forwarded; one client gets at most three \
               quarters of it",
    ),
    Setting::proxy_number(
        "descriptor_reserve",
        ("descriptors", 0, 1_000_000),
        "256",
        "File descriptors reserved for the admin address and the ledger, which sockets of clients and upstreams do \
               not use; at most a quarter of the limit (ulimit -n)",
    ),
    Setting::proxy_number(
        "pool_size",
        ("connections", 0, 100_000),
        "256",
        "Maximum number of idle upstream connections kept per worker and upstream",
    ),
    Setting::proxy_number(
        "pool_idle_ms",
        ("milliseconds", 0, 3_600_000),
        "4000",
        "Idle timeout of upstream connections, below uvicorn's 5000; twelve times as long for HTTP/2",
    ),
    Setting::proxy_number(
        "connect_timeout_ms",
        ("milliseconds", 1, 600_000),
        "5000",
        "Timeout for connecting to the upstream",
    ),
    Setting::proxy_number(
        "head_timeout_ms",
        ("milliseconds", 1, 600_000),
        "10000",
        "Timeout for a client to send a request head; for the first request, counted from the start of the connection",
    ),
    Setting::proxy_number(
        "body_idle_ms",
        ("milliseconds", 1000, 86_400_000),
        "30000",
        "Longest pause of a client within a request body; then the client gets 408; pauses of the inference server, \
               and of gRPC clients (HTTP/2, on a path that is not metered), are not limited",
    ),
    Setting::proxy_number(
        "body_min_rate",
        ("bytes per second", 0, 1_000_000_000),
        "128",
        "Minimum mean rate at which a client sends a request body or reads a response; in force after 30 seconds of \
               waiting for the client",
    ),
    Setting::proxy_number(
        "body_time_ms",
        ("milliseconds", 1000, 86_400_000),
        "300000",
        "Timeout for a client to send a request body; then the client gets 408; each 4 KiB of the body adds 1 second; \
               time in which the inference server does not read is not counted",
    ),
    Setting::proxy_number(
        "client_stall_ms",
        ("milliseconds", 1000, 86_400_000),
        "120000",
        "Longest time in which a client reads nothing of a response that is ready; then its connection is closed",
    ),
    Setting {
        key: "stall_ms",
        group: Group::Telemetry,
        form: Form::Number { unit: "milliseconds", min: 1, max: 3_600_000 },
        default: "1000",
        help: "A longer gap between two tokens counts as a stall",
    },
    Setting {
        key: "objective",
        group: Group::Telemetry,
        form: Form::Choice(&OBJECTIVES),
        default: "off",
        help: "Latency objective of every model's streams, to be met by 99 of 100: voice is a first token within 250 \
               ms, then 100 tokens per second; chat 1 s and 30; reading 2.5 s and 15; floor 10 s and 10; for other \
               bounds, or for some models only, list them under `objectives` in the file",
    },
    Setting {
        key: "max_tokens_claimed",
        group: Group::Counting,
        form: Form::Number { unit: "tokens", min: 1, max: 9_007_199_254_740_992 },
        default: "10000000",
        help: "Largest token count accepted from a response; a larger one is discarded and counted as dropped",
    },
    Setting::proxy_switch(
        "half_close",
        "Keep answering a client that closed its write side; if off, it counts as disconnected",
    ),
    Setting {
        key: "detached_work",
        group: Group::Counting,
        form: Form::Choice(&DETACHED_WORK),
        default: AUTO,
        help: "Work that continues after its client disconnects and cannot be counted then (batches, Responses with \
               background: true, llama.cpp's X-Conversation-Id): refuse rejects the first two with 403 and removes \
               the last from requests; allow forwards all; auto refuses while a budget is enforced",
    },
    Setting::proxy_number(
        "drain_delay_ms",
        ("milliseconds", 0, 3_600_000),
        "5000",
        "Time after a stop signal in which new connections are still served",
    ),
    Setting::proxy_number(
        "drain_grace_ms",
        ("milliseconds", 0, 86_400_000),
        "25000",
        "Time after the drain delay in which streams may finish before they are cut",
    ),
    Setting::proxy_file(
        "drain_token_file",
        "File with the token that permits `tokenmeter drain` and POST /drain of the admin address; created with a \
               random token if it does not exist; without it only signals drain",
    ),
    Setting {
        key: "max_models",
        group: Group::Telemetry,
        form: Form::Number { unit: "models", min: 1, max: 10_000 },
        default: "50",
        help: "Maximum number of models with labels of their own; the others share `_other`",
    },
    Setting {
        key: "outbox_records",
        group: Group::Telemetry,
        form: Form::Number { unit: "records", min: 1, max: 1_000_000 },
        default: "4096",
        help: "Maximum number of finished exchanges queued for accounting; more are billed by their workers, without access log and export",
    },
    Setting::spend_text(
        "tenants",
        "FILE",
        "Tenant rules file (YAML, read again when it changes): how the tenant of a request is determined, by tokens, \
               API keys, headers of trusted peers, the body, the path or the peer; without it every request belongs \
               to `default`",
    ),
    Setting::spend_text(
        "hash_key_file",
        "FILE",
        "File with a secret of at least 32 random bytes, the same across a fleet, that keys the hashes of API keys, \
               principals and end users",
    ),
    Setting {
        key: "tokenizers",
        group: Group::Counting,
        form: Form::Text("MODEL=PATH"),
        default: "",
        help: "Tokenizers for models whose server reports no counts, separated by commas: the model's name and its \
               tokenizer.json or the folder that holds it",
    },
    Setting {
        key: "otlp_endpoint",
        group: Group::Telemetry,
        form: Form::Text("URL"),
        default: "",
        help: "OpenTelemetry collector for metrics and traces, http(s)://HOST:PORT; without it \
               OTEL_EXPORTER_OTLP_ENDPOINT applies, and without either nothing is exported",
    },
    Setting {
        key: "otlp_protocol",
        group: Group::Telemetry,
        form: Form::Choice(&OTLP_PROTOCOLS),
        default: AUTO,
        help: "OTLP transport; auto is OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf",
    },
    Setting {
        key: "otlp_signals",
        group: Group::Telemetry,
        form: Form::Text("NAMES"),
        default: "",
        help: "Exported signals, of metrics, traces and logs (one log record per exchange), separated by commas; by \
               default metrics and traces, unless OTEL_METRICS_EXPORTER, OTEL_TRACES_EXPORTER or OTEL_LOGS_EXPORTER \
               is set",
    },
    Setting {
        key: "otlp_detail",
        group: Group::Telemetry,
        form: Form::Choice(&OTLP_DETAILS),
        default: OTLP_DETAILS[0],
        help: "Extent of exported log records; full adds the buckets and sums from which tokenmeter makes its \
               histograms and shares",
    },
    Setting {
        key: "trace_headers",
        group: Group::Telemetry,
        form: Form::Choice(&[ON, OFF]),
        default: ON,
        help: "While traces are exported, send traceparent (W3C Trace Context) to the upstream",
    },
    Setting {
        key: "semconv",
        group: Group::Telemetry,
        form: Form::Choice(&SEMCONV),
        default: AUTO,
        help: "GenAI convention metrics beside gen_ai.server.*: latest (tokens used, tokens by operation, \
               embeddings), client (latest, and the duration, chunk times and event name of a client), legacy \
               (gen_ai.client.token.usage), or both (latest and legacy); auto is OTEL_SEMCONV_STABILITY_OPT_IN, or \
               latest",
    },
    Setting {
        key: "gpu",
        group: Group::Gpu,
        form: Form::Choice(&GPU),
        default: AUTO,
        help: "Source of GPU readings: nvml (the driver's library), exporter (dcgm-exporter or AMD's, at \
               gpu_exporter), off; auto takes the first available",
    },
    Setting::gpu_text(
        "gpu_exporter",
        "URL",
        "Metrics page of a dcgm-exporter or an AMD device-metrics-exporter, http(s)://HOST:PORT/metrics",
    ),
    Setting::gpu_text(
        "gpu_exporter_hostname",
        "NAME",
        "Node whose GPUs are read, as the exporter labels it: a Service may answer from another node; by default \
               K8S_NODE_NAME or NODE_NAME; if empty, every GPU on the page",
    ),
    Setting::gpu_text(
        "gpu_exporter_prefix",
        "PREFIX",
        "Prefix before the exporter's metric names, where one is configured (AMD)",
    ),
    Setting::gpu_text(
        "gpus",
        "GPUS",
        "GPUs of the upstream, by index or UUID, separated by commas, or all; empty if it uses none; the default for \
               a single upstream is all GPUs that the driver shows, or the only GPU that an exporter shows",
    ),
    Setting {
        key: "gpu_sample_ms",
        group: Group::Gpu,
        form: Form::Number { unit: "milliseconds", min: 100, max: 60_000 },
        default: "1000",
        help: "Sampling interval of GPUs",
    },
    Setting {
        key: "gpu_stale_ms",
        group: Group::Gpu,
        form: Form::Number { unit: "milliseconds", min: 200, max: 600_000 },
        default: "5000",
        help: "Age at which a GPU reading is no longer shown, and the longest gap between samples across which energy \
               is attributed; at least two sampling intervals; by default 5000, or five intervals if that is longer",
    },
    Setting {
        key: "gpu_hour_usd",
        group: Group::Gpu,
        form: Form::Decimal { unit: "dollars" },
        default: "",
        help: "Price of one GPU hour, in US dollars",
    },
    Setting {
        key: "kwh_usd",
        group: Group::Gpu,
        form: Form::Decimal { unit: "dollars" },
        default: "",
        help: "Price of a kilowatt-hour, in US dollars",
    },
    Setting {
        key: "pue",
        group: Group::Gpu,
        form: Form::Decimal { unit: "watts per watt" },
        default: "1",
        help: "Power usage effectiveness of the data centre, a factor of the energy price",
    },
    Setting::spend_text(
        "ledger",
        "PATH|URL",
        "Ledger of exchanges for billing: a file ending in .db, or postgres://USER@HOST/DATABASE for a central store, \
               buffered in the file ledger_spool; without it exchanges are not stored",
    ),
    Setting {
        key: "ledger_spool",
        group: Group::Spend,
        form: Form::Text("PATH"),
        default: "tokenmeter.db",
        help: "File that holds rows until they are in the central store, if `ledger` is one",
    },
    Setting {
        key: "ledger_wait",
        group: Group::Spend,
        form: Form::Switch,
        default: "false",
        help: "Start even if another process of this host writes the ledger, and keep rows in memory until that \
               process ends",
    },
    Setting::spend_text(
        "ledger_ship",
        "URL",
        "Central PostgreSQL that receives the ledger's rows, postgres://USER@HOST:PORT/DATABASE; encrypted, unless it \
               is on this machine or the URL ends in ?sslmode=disable",
    ),
    Setting::spend_text(
        "ledger_ship_password_file",
        "FILE",
        "File whose first line is the password of the central store; by default that of the URL, PGPASSWORD or a .pgpass file",
    ),
    Setting {
        key: "ledger_keep_days",
        group: Group::Spend,
        form: Form::Number { unit: "days", min: 0, max: 36_500 },
        default: "0",
        help: "Retention of ledger rows after the end of their month; 0 keeps rows forever. Daily totals are always kept",
    },
    Setting::spend_text(
        "ledger_time_zone",
        "NAME",
        "Time zone of ledger and budgets, as in Europe/Berlin, by default UTC; a change begins with the next month",
    ),
    Setting::spend_text(
        "usage_events",
        "URL",
        "URL that receives an event of each exchange in the ledger, as CloudEvents, https://HOST[:PORT]/PATH",
    ),
    Setting::spend_text(
        "usage_events_token_file",
        "PATH",
        "File whose first line is the bearer token for the receiver of usage events; it is read at each attempt",
    ),
    Setting::spend_text(
        "usage_events_since",
        "TIME",
        "Start of usage events: a month (2026-10), a day or a time in UTC; by default all rows are sent",
    ),
    Setting::spend_text(
        "budget_webhook",
        "URL",
        "URL that receives budget alerts, https://HOST[:PORT]/PATH; budgets are listed under `budgets` in the file",
    ),
    Setting::spend_text(
        "budget_webhook_secret_file",
        "PATH",
        "File with the secret that signs budget alerts",
    ),
    Setting::spend_text(
        "prices",
        "FILE",
        "Price file: the token prices by which exchanges are charged (see `tokenmeter prices`)",
    ),
    Setting::spend_text(
        "attributes",
        "FILE",
        "Attributes file of tenants (YAML): cost centre, department, owner and tags, for the reports of `tokenmeter \
               spend`; the proxy only checks it at the start",
    ),
    Setting::spend_choice(
        "focus_billing",
        &FOCUS_BILLING,
        "BilledCost of FOCUS exports: 0 with showback, the cost with chargeback",
    ),
    Setting {
        key: "access_log",
        group: Group::Logging,
        form: Form::Switch,
        default: "false",
        help: "Log a line per exchange: tenant, counts, times and cost, never content",
    },
    Setting {
        key: "log_level",
        group: Group::Logging,
        form: Form::Choice(&["error", "warn", "info", "debug", "trace"]),
        default: "info",
        help: "Least severe level that is logged",
    },
    Setting {
        key: "log_format",
        group: Group::Logging,
        form: Form::Choice(&["auto", "text", "json"]),
        default: "auto",
        help: "Format of log lines; auto is text on a terminal and JSON elsewhere",
    },
];

/// Returns the row of `key`. Panics if the table has none.
pub fn setting(key: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.key == key).expect("the key is in the table")
}

#[cfg(test)]
mod page_tests;
#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
