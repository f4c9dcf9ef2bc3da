//! `configuration.md`, generated: the introduction is below, the rest is the table of settings.
//! `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write;
use std::path::Path;

use super::{Form, Group, SETTINGS, Setting};

#[test]
fn configuration_page_matches_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configuration.md");
    harness::golden::compare(&path, &page()).unwrap();
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in Group::ALL {
        write!(
            page,
            "\n## {}\n\n| Setting | Value | Default | Meaning |\n|---|---|---|---|\n",
            group.title()
        )
        .unwrap();
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            page += &row(setting);
        }
    }
    page
}

fn row(setting: &Setting) -> String {
    let names = [setting.key.to_owned(), setting.flag(), setting.variable()];
    let names = names.map(|name| format!("`{name}`")).join("<br>");
    let default = match setting.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    format!("| {names} | {} | {default} | {} |\n", value(&setting.form), cell(setting.help))
}

fn value(form: &Form) -> String {
    match form {
        Form::Text(shape) => format!("`{}`", cell(shape)),
        Form::Number { unit, min, max } => format!("{min} to {max} {unit}"),
        Form::Decimal { unit } => format!("decimal, {unit}"),
        Form::Switch => "`true`, `false`".to_owned(),
        Form::Choice(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = r#"# Configuration

<!-- Generated from the table in src/settings.rs by src/settings/page_tests.rs.
`UPDATE_GOLDEN=1 cargo test -p tokenmeter --lib configuration_page` rewrites it. -->

A setting is written as a flag, an environment variable or a key of a YAML file; `tokenmeter run` and
`tokenmeter check-config` take the same. The first place that has a setting counts: flag, variable, file, default. The
tables below name all three forms, the values and the default.

```sh
tokenmeter check-config --config tokenmeter.yaml --show-origin   # what is in force, and where it was written
tokenmeter run --config tokenmeter.yaml --stall-ms 500
```

Paths in the file are relative to the directory in which tokenmeter is started. Settings are read at the start; the
tenants file and the price file are read again when they change.

## Lists of the file

Three lists have no flag.

```yaml
upstreams:
  - { name: chat, url: "http://127.0.0.1:8000", kind: vllm, usage: continuous, listen: "127.0.0.1:9800", gpus: [0] }
  - { name: code, url: "http://127.0.0.1:8080", engine_metrics: on, listen: "127.0.0.1:9801", gpus: [1] }
objectives:
  - { name: gold, preset: voice, models: "qwen*", target: 0.999 }
  - { name: batch, first_token_ms: 20000, tokens_per_second: 5, target: 0.9 }
budgets:
  - { name: teams, tenants: "team-*", max_budget: 500, budget_duration: month }
  - { name: trials, tenants: "trial-*", max_budget: 5, budget_duration: day, enforce: true }
```

- **`upstreams`**: several servers, each with a listener of its own. A key of an entry overrides the setting of the same
  name; flags and variables fill in what the entry leaves out. Keys: `name`, `url`,
  [`tls`](operations.md#how-an-upstream-is-reached) with `ca`, `cert`, `key`, `server_name` and `insecure_skip_verify`
  (the settings `upstream_…` below are for a single upstream), `proxy`, `kind`, `usage`,
  [`role`](../../proxy/relay/legs.md), `listen`, `listen_tls` (a map with `address`, `cert`, `key`, `client_ca`, or the
  settings of the table; [TLS](operations.md#tls)), `tls_cert`, `tls_key`, `tls_client_ca`, `proxy_protocol`,
  `engine_metrics`, [`gpus`](../gpu/sources.md).
- **`objectives`**: which exchanges count as good, by model and tenant
  ([how an objective is judged](../metrics/metrics.md#objectives)). Keys: `name`, `preset`, `models`, `tenants`,
  `first_token_ms`, `tokens_per_second`, `target`.
- **`budgets`**: limits on spend by tenant and period ([keys](../budget/budgets.md#configuration)).

The `OTEL_*` variables count where no setting is written ([list](../otlp/otlp.md#variables)). The tenants file and the
price file have pages of their own: [tenants.md](../../proxy/tenant/tenants.md), [prices.md](../price/prices.md).
"#;
