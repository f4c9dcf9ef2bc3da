//! The lists of the settings file, which have no flag: their keys, and the keys of an entry.

/// A list in the settings file.
#[derive(Debug)]
pub struct List {
    /// The key of the list.
    pub key: &'static str,
    /// The noun for one entry, with its article.
    pub(super) noun: &'static str,
    /// The shortest entry, for error messages.
    pub(super) example: &'static str,
    /// The keys of one entry; `a.b` is the key `b` of a map under `a`.
    pub keys: &'static [&'static str],
}

impl List {
    /// Returns the remedy for a value that is not a list, or is empty.
    pub(crate) fn remedy(&self) -> String {
        let one = self.noun.split_once(' ').map_or(self.noun, |(_, one)| one);
        format!("write one `{}` for each {one} under it", self.example)
    }
}

/// The list of upstreams.
pub const UPSTREAMS: List = List {
    key: "upstreams",
    noun: "an upstream",
    example: "- url: http://HOST:PORT",
    keys: &[
        "name",
        "url",
        "tls.ca",
        "tls.cert",
        "tls.key",
        "tls.server_name",
        "tls.insecure_skip_verify",
        "proxy",
        "kind",
        "usage",
        "role",
        "listen",
        "listen_tls",
        "tls_cert",
        "tls_key",
        "tls_client_ca",
        "proxy_protocol",
        "engine_metrics",
        "gpus",
    ],
};

/// The TLS settings of the single upstream, and the keys of the same meaning in an entry of the list.
pub const UPSTREAM_TLS: [(&str, &str); 5] = [
    ("upstream_ca", "tls.ca"),
    ("upstream_cert", "tls.cert"),
    ("upstream_key", "tls.key"),
    ("upstream_server_name", "tls.server_name"),
    ("upstream_insecure_skip_verify", "tls.insecure_skip_verify"),
];

/// Settings that may be written as one map in the file: the key of the map, and each of its keys with the setting that
/// it stands for.
pub const MAPS: [(&str, &[(&str, &str)]); 2] = [
    (
        "listen_tls",
        &[
            ("address", "listen_tls"),
            ("cert", "tls_cert"),
            ("key", "tls_key"),
            ("client_ca", "tls_client_ca"),
        ],
    ),
    (
        "admin_tls",
        &[
            ("address", "admin_tls"),
            ("cert", "admin_tls_cert"),
            ("key", "admin_tls_key"),
            ("client_ca", "admin_tls_client_ca"),
        ],
    ),
];

/// The list of latency objectives.
pub const OBJECTIVE_LIST: List = List {
    key: "objectives",
    noun: "an objective",
    example: "- preset: chat",
    keys: &["name", "preset", "models", "tenants", "first_token_ms", "tokens_per_second", "target"],
};

/// The list of budgets.
pub const BUDGET_LIST: List = List {
    key: "budgets",
    noun: "a budget",
    example: "- name: NAME",
    keys: &[
        "name",
        "tenants",
        "max_budget",
        "soft_budget",
        "budget_duration",
        "shared",
        "enforce",
        "unpriced",
        "unknown_paths",
        "unknown_methods",
        "unreadable",
        "uncountable",
    ],
};
