//! The lists of the settings file, which no flag mirrors: their keys and those of one entry.

/// A list in the file, which no flag mirrors.
#[derive(Debug)]
pub struct List {
    /// The key of the list.
    pub key: &'static str,
    /// The noun for one entry, with its article.
    pub(super) noun: &'static str,
    /// An entry, as short as can be.
    pub(super) example: &'static str,
    /// The keys of one entry.
    pub keys: &'static [&'static str],
}

impl List {
    /// Returns the advice for a list that is none, or empty.
    pub(crate) fn remedy(&self) -> String {
        let one = self.noun.split_once(' ').map_or(self.noun, |(_, one)| one);
        format!("write one `{}` for each {one} under it", self.example)
    }
}

/// The inference servers.
pub const UPSTREAMS: List = List {
    key: "upstreams",
    noun: "an upstream",
    example: "- url: http://HOST:PORT",
    keys: &["name", "url", "kind", "usage", "role", "listen", "engine_metrics", "gpus"],
};

/// The objectives of models and tenants.
pub const OBJECTIVE_LIST: List = List {
    key: "objectives",
    noun: "an objective",
    example: "- preset: chat",
    keys: &["name", "preset", "models", "tenants", "first_token_ms", "tokens_per_second", "target"],
};

/// The budgets of tenants.
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
        "unreadable",
        "uncountable",
    ],
};
