//! The effective settings and their origins, printed as an equivalent settings file.

use std::fmt::{self, Display, Write};

use budget::{Budget, Endpoint};
use metrics::Objective;
use origin::{Origin, file};
use relay::{ServerKind, Terms};
use text::{Glob, money};

use crate::plan::{BudgetsPlan, Telemetry};
use crate::settings::{
    AUTO, BUDGET_UNPRICED, Entry, Form, RawSettings, SETTINGS, Setting, UPSTREAM_TLS, Value, choice, setting,
};

/// The effective settings, in the order of the table.
#[derive(Clone, Debug)]
pub struct Effective {
    upstreams: Vec<Vec<Shown>>,
    /// The listed objectives; the setting `objective` is in `settings`.
    objectives: Vec<Vec<Shown>>,
    budgets: Vec<Vec<Shown>>,
    settings: Vec<Shown>,
    /// Consequences of other settings, printed as comments.
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Shown {
    key: &'static str,
    text: String,
    origin: Origin,
}

impl Effective {
    /// Derives the effective settings from `written` and its plan.
    pub(crate) fn of(
        written: &RawSettings,
        relay: &relay::Plan,
        servers: &servers::Plan,
        objectives: &[Objective],
        budgets: &BudgetsPlan,
        telemetry: &Telemetry,
        mut notes: Vec<String>,
    ) -> Self {
        notes.extend(telemetry.notes());
        let upstreams = relay.upstreams.iter().zip(&servers.targets).enumerate();
        let upstreams = upstreams
            .map(|(index, (upstream, server))| Self::upstream(written, index, upstream, server))
            .collect();
        let listed = written.objectives.as_ref().filter(|_| !written.values.contains_key("objective"));
        let entries = listed.into_iter().flat_map(|(_, entries)| entries);
        let settings = SETTINGS
            .iter()
            .filter(|setting| !PER_UPSTREAM.contains(&setting.key))
            .filter(|setting| !UPSTREAM_TLS.iter().any(|(key, _)| *key == setting.key))
            .filter(|setting| listed.is_none() || setting.key != "objective")
            .map(|row| match row.key {
                "workers" => {
                    let origin = origin_of(written, "workers");
                    Shown { key: row.key, text: relay.workers.to_string(), origin }
                }
                "upstream_connections" => {
                    let origin = origin_of(written, row.key);
                    Shown { key: row.key, text: relay.shares.upstream_connections.to_string(), origin }
                }
                "budget_webhook" => {
                    // Its path and query may hold a key.
                    let text = budgets.webhook.as_ref().map(|plan| plan.endpoint.to_string());
                    let origin = origin_of(written, row.key);
                    Shown { key: row.key, text: text.unwrap_or_default(), origin }
                }
                "usage_events" => {
                    let Shown { key, text, origin } = shown(written.values.get(row.key), row);
                    let text = Endpoint::parse(&text).map_or(text, |endpoint| endpoint.to_string());
                    Shown { key, text, origin }
                }
                "ledger" | "ledger_ship" => {
                    let Shown { key, text, origin } = shown(written.values.get(row.key), row);
                    let text = if text.contains("://") { ship::redact(&text) } else { text };
                    Shown { key, text, origin }
                }
                key => {
                    let standard = telemetry.standard.get(key);
                    shown(standard.or_else(|| written.values.get(key)), row)
                }
            })
            .collect();
        let objectives = entries.zip(objectives).map(|(entry, one)| Self::objective(entry, one)).collect();
        let entries = written.budgets.iter().flat_map(|(_, entries)| entries);
        let one = budgets.budgets.iter().zip(&budgets.terms);
        let budgets =
            entries.zip(one).map(|(entry, (one, terms))| Self::budget(entry, one, *terms)).collect();
        Self { upstreams, objectives, budgets, settings, notes }
    }

    fn budget(entry: &Entry, budget: &Budget, terms: Terms) -> Vec<Shown> {
        let shown = |key: &'static str, text: String| {
            let written = entry.fields.get(key);
            Shown { key, text, origin: written.map_or(Origin::Default, |value| value.origin.clone()) }
        };
        let limits = [("max_budget", budget.hard), ("soft_budget", budget.soft)];
        let limits = limits.into_iter().filter_map(|(key, pico)| Some(shown(key, money(pico?).to_string())));
        let mut all = vec![
            shown("name", budget.name.to_string()),
            shown("tenants", names(&budget.tenants)),
            shown("budget_duration", budget.period.name().to_owned()),
            shown("shared", budget.shared.to_string()),
            shown("enforce", budget.enforce.to_string()),
            shown("unpriced", BUDGET_UNPRICED[usize::from(budget.refuse_unpriced)].to_owned()),
        ];
        all.splice(2..2, limits);
        if budget.enforce {
            let refused = |refuses: bool| BUDGET_UNPRICED[usize::from(refuses)].to_owned();
            all.extend([
                shown("unknown_paths", terms.unknown_paths.name().to_owned()),
                shown("unknown_methods", refused(terms.refuse_unknown_methods)),
                shown("unreadable", refused(terms.refuse_unreadable)),
                shown("uncountable", refused(terms.refuse_uncountable)),
            ]);
        }
        all
    }

    fn objective(entry: &Entry, objective: &Objective) -> Vec<Shown> {
        let shown = |key: &'static str, preset: bool, text: String| {
            let written = entry.fields.get(key).or(entry.fields.get("preset").filter(|_| preset));
            Shown { key, text, origin: written.map_or(Origin::Default, |value| value.origin.clone()) }
        };
        vec![
            shown("name", true, objective.name.to_string()),
            shown("models", false, names(&objective.models)),
            shown("tenants", false, names(&objective.tenants)),
            shown("first_token_ms", true, (objective.first_token_ns / 1_000_000).to_string()),
            shown("tokens_per_second", true, objective.output_rate.to_string()),
            shown("target", false, objective.target_ratio.to_string()),
        ]
    }

    fn upstream(
        written: &RawSettings,
        index: usize,
        upstream: &relay::Upstream,
        server: &servers::Target,
    ) -> Vec<Shown> {
        let single = written.values.get("upstream");
        let listed = written.upstreams.as_ref().filter(|_| single.is_none());
        let entry = listed.and_then(|(_, entries)| entries.get(index));
        let field = |key: &str| entry.and_then(|entry| entry.fields.get(key));
        let url = field("url").or(single).map_or(Origin::Default, |url| url.origin.clone());
        let fallback =
            |key: &'static str| field(key).map_or_else(|| origin_of(written, key), |v| v.origin.clone());
        let mut all = vec![
            Shown {
                key: "name",
                text: upstream.name.to_string(),
                origin: field("name").map_or(Origin::Default, |name| name.origin.clone()),
            },
            Shown { key: "url", text: format!("{}{}", upstream.target, upstream.prefix), origin: url },
        ];
        for (setting, key) in UPSTREAM_TLS {
            let value = entry.map_or_else(|| written.values.get(setting), |entry| entry.fields.get(key));
            let is_switch = matches!(self::setting(setting).form, Form::Switch);
            if let Some(Value { text, origin }) = value {
                let truth = file::truth(text).filter(|_| is_switch).map(|truth| truth.to_string());
                all.push(Shown { key, text: truth.unwrap_or_else(|| text.clone()), origin: origin.clone() });
            }
        }
        if let Some(value) = field("proxy").or(written.values.get("upstream_proxy"))
            && let Some(proxy) = upstream.target.proxy()
        {
            // Without its password.
            let text = if value.text == "env" { value.text.clone() } else { proxy.to_string() };
            all.push(Shown { key: "proxy", text, origin: value.origin.clone() });
        }
        all.extend([
            Shown {
                key: "kind",
                text: server.kind.map_or(AUTO, ServerKind::name).to_owned(),
                origin: fallback("kind"),
            },
            Shown { key: "usage", text: upstream.usage.name().to_owned(), origin: fallback("usage") },
            Shown { key: "role", text: upstream.role.name().to_owned(), origin: fallback("role") },
        ]);
        for listen in &upstream.listen {
            let text = listen.address.to_string();
            if listen.tls.is_none() {
                all.push(Shown { key: "listen", text, origin: fallback("listen") });
                continue;
            }
            all.push(Shown { key: "listen_tls", text, origin: fallback("listen_tls") });
            for key in ["tls_cert", "tls_key", "tls_client_ca"] {
                if let Some(file) = field(key).or(written.values.get(key)) {
                    all.push(Shown { key, text: file.text.clone(), origin: file.origin.clone() });
                }
            }
        }
        if upstream.listen.iter().any(|listen| listen.proxy_protocol) {
            all.push(Shown {
                key: "proxy_protocol",
                text: true.to_string(),
                origin: fallback("proxy_protocol"),
            });
        }
        all.push(Shown {
            key: "engine_metrics",
            text: scrape(server.scrape).to_owned(),
            origin: fallback("engine_metrics"),
        });
        // Without the key, a single upstream uses all GPUs.
        if let Some(gpus) = field("gpus").or(written.values.get("gpus")) {
            all.push(Shown { key: "gpus", text: gpus.text.clone(), origin: gpus.origin.clone() });
        }
        all
    }

    /// Renders YAML, with the origins as comments if `origins` is set.
    pub fn show(&self, origins: bool) -> String {
        let mut lines = Vec::new();
        for (list, entries) in
            [("upstreams:", &self.upstreams), ("objectives:", &self.objectives), ("budgets:", &self.budgets)]
        {
            if !entries.is_empty() {
                lines.push((list.to_owned(), None));
            }
            for entry in entries {
                let mut outer = "";
                for (index, shown) in entry.iter().enumerate() {
                    let bullet = if index == 0 { "  - " } else { "    " };
                    let (within, key) = shown.key.split_once('.').unwrap_or(("", shown.key));
                    if within != outer && !within.is_empty() {
                        lines.push((format!("{bullet}{within}:"), None));
                    }
                    outer = within;
                    let indent = if within.is_empty() { bullet } else { "      " };
                    lines.push((format!("{indent}{key}: {}", Scalar(&shown.text)), Some(&shown.origin)));
                }
            }
        }
        for shown in &self.settings {
            lines.push((format!("{}: {}", shown.key, Scalar(&shown.text)), Some(&shown.origin)));
        }
        let widest = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (line, origin) in lines {
            match origin.filter(|_| origins) {
                Some(origin) => writeln!(text, "{line:<widest$}  # {origin}"),
                None => writeln!(text, "{line}"),
            }
            .expect("writing to a String succeeds");
        }
        for note in &self.notes {
            writeln!(text, "# {note}").expect("writing to a String succeeds");
        }
        text
    }
}

/// Settings that are printed with their upstream.
const PER_UPSTREAM: [&str; 13] = [
    "upstream",
    "upstream_proxy",
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
];

fn names(globs: &[Glob]) -> String {
    match globs {
        [] => "*".to_owned(),
        globs => globs.iter().map(Glob::text).collect::<Vec<_>>().join(","),
    }
}

fn scrape(scrape: servers::Scrape) -> &'static str {
    match scrape {
        servers::Scrape::Auto => "auto",
        servers::Scrape::On => "on",
        servers::Scrape::Off => "off",
    }
}

fn origin_of(written: &RawSettings, key: &str) -> Origin {
    written.values.get(key).map_or(Origin::Default, |value| value.origin.clone())
}

fn shown(written: Option<&Value>, row: &'static Setting) -> Shown {
    let (text, origin) = match written {
        Some(value) => (value.text.clone(), value.origin.clone()),
        None => (row.default.to_owned(), Origin::Default),
    };
    // 007 and +7 are printed as 7.
    let spelling = match row.form {
        Form::Choice(names) => choice(&text, names).map(str::to_owned),
        Form::Number { .. } => file::number(&text).map(|number| number.to_string()),
        Form::Switch => file::truth(&text).map(|truth| truth.to_string()),
        Form::Text(_) | Form::Decimal { .. } => None,
    };
    Shown { key: row.key, text: spelling.unwrap_or(text), origin }
}

/// A text as a YAML scalar, quoted where YAML could read it as another type.
struct Scalar<'a>(&'a str);

impl Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._:/-%".contains(c);
        let first = self.0.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
        let is_null = self.0.eq_ignore_ascii_case("null");
        if first && !is_null && self.0.chars().all(plain) && !self.0.ends_with(':') {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(character)?;
        }
        f.write_char('"')
    }
}
