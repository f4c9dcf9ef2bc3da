//! The planned budgets, and the text of every error.

use std::collections::BTreeMap;

use budget::{Budget, Period};
use origin::{Origin, file};
use text::{Glob, money};

use crate::plan::Plan;
use crate::plan::machine::Alone;
use crate::settings::{BUDGET_DURATIONS, RawSettings, Value};

/// Merges the file with these settings.
fn written(yaml: &str, beside: &[(&'static str, &str)]) -> RawSettings {
    let flags: BTreeMap<_, _> =
        [("upstream", "http://gpu:8000".to_owned()), ("kind", "vllm".to_owned())].into();
    let mut written = RawSettings::merge(&flags, &|_| None, Some(file::parse("t.yaml", yaml).unwrap()));
    for (key, text) in beside {
        let origin = Origin::Flag(format!("--{}", key.replace('_', "-")));
        written.values.insert(key, Value { text: (*text).to_owned(), origin });
    }
    written
}

/// The settings that budgets require.
const REQUIREMENTS: [(&str, &str); 2] =
    [("prices", concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prices.yaml")), ("ledger", "spend.db")];

fn plan_of(written: &RawSettings) -> Plan {
    Plan::make(written, &Alone(&[])).unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan(yaml: &str) -> Plan {
    plan_of(&written(yaml, &REQUIREMENTS))
}

fn errors_of(written: &RawSettings) -> Vec<String> {
    let errors = Plan::make(written, &Alone(&[])).expect_err("these budgets are invalid");
    errors.0.iter().map(ToString::to_string).collect()
}

fn errors(yaml: &str) -> Vec<String> {
    errors_of(&written(yaml, &REQUIREMENTS))
}

fn warnings(written: &RawSettings) -> Vec<String> {
    plan_of(written).warnings.iter().map(ToString::to_string).collect()
}

fn summary(budget: &Budget) -> String {
    let globs = budget.tenants.iter().map(Glob::text).collect::<Vec<_>>().join("|");
    let limit = |pico: Option<i128>| pico.map_or("-".to_owned(), |pico| money(pico).to_string());
    format!(
        "{} [{globs}] {} {} {}{}{}{}",
        budget.name,
        budget.period.name(),
        limit(budget.soft),
        limit(budget.hard),
        if budget.shared { " shared" } else { "" },
        if budget.enforce { " enforced" } else { "" },
        if budget.refuse_unpriced { " priced" } else { "" },
    )
}

const LIST: &str = "\
budgets:
  - { name: gold, tenants: [gold, \"team-*\"], max_budget: 250.10, budget_duration: month, enforce: true, unpriced: refuse }
  - name: everybody
    soft_budget: 0.000000000001
    max_budget: \"100000000000\"
    budget_duration: 30d
    shared: true
    tenants: \"*\"
";

#[test]
fn list_keeps_its_order() {
    let plan = plan(LIST);
    assert_eq!(
        plan.budgets.budgets.iter().map(summary).collect::<Vec<_>>(),
        [
            "gold [gold|team-*] month - 250.10 enforced priced",
            "everybody [] 30d 0.000000000001 100000000000.00 shared"
        ]
    );
    assert!(plan.budgets.webhook.is_none());
    assert!(Plan::make(&written("", &[]), &Alone(&[])).unwrap().budgets.budgets.is_empty());
}

#[test]
fn documented_example_is_valid() {
    let document = include_str!("../../../budget/budgets.md");
    let example = document.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let plan = plan(example);
    let expected = ["teams [team-*] month 400.00 500.00", "trial [trial-*] day - 20.00 shared enforced"];
    assert_eq!(plan.budgets.budgets.iter().map(summary).collect::<Vec<_>>(), expected);
    assert!(plan.budgets.webhook.is_some());
}

#[test]
fn printed_budgets_parse_to_the_same() {
    let first = plan(LIST);
    let shown = first.effective.show(false);
    let list = &shown[shown.find("budgets:").unwrap()..];
    let list: String = list.split_inclusive('\n').take(1 + 10 + 8).collect();
    assert_eq!(plan(&list).budgets.budgets, first.budgets.budgets, "{list}");
    let origins = first.effective.show(true);
    let line = |key: &str| origins.lines().find(|line| line.contains(key)).unwrap().to_owned();
    assert!(line("max_budget: 250.10").ends_with("# t.yaml:2"), "{origins}");
    assert!(line("shared: true").ends_with("# t.yaml:7"), "{origins}");
    assert!(line("enforce: false").ends_with("# default"), "{origins}");
    assert!(line("unpriced: refuse").ends_with("# t.yaml:2"), "{origins}");
    assert!(line("unpriced: allow").ends_with("# default"), "{origins}");
}

#[test]
fn terms_follow_the_treatments() {
    use relay::{Terms, UnknownPaths};
    let meters = Terms { unknown_paths: UnknownPaths::Meter, ..Terms::default() };
    for (written, terms) in [
        ("", meters),
        (", unpriced: refuse", Terms { refuse_unreadable: true, ..meters }),
        (", unpriced: refuse, unreadable: allow", meters),
        (", unreadable: refuse", Terms { refuse_unreadable: true, ..meters }),
        (", uncountable: refuse", Terms { refuse_uncountable: true, ..meters }),
        (
            ", unknown_paths: refuse",
            Terms { unknown_paths: UnknownPaths::Refuse, refuse_unknown_methods: true, ..meters },
        ),
        (
            ", unknown_paths: refuse, unknown_methods: allow",
            Terms { unknown_paths: UnknownPaths::Refuse, ..meters },
        ),
        (", unknown_methods: refuse", Terms { refuse_unknown_methods: true, ..meters }),
        (", unknown_paths: pass", Terms { unknown_paths: UnknownPaths::Pass, ..meters }),
    ] {
        let yaml = format!(
            "budgets:\n  - {{name: a, max_budget: 1, budget_duration: day, enforce: true{written}}}\n"
        );
        let plan = plan(&yaml);
        assert_eq!(plan.budgets.terms, [terms], "{written}");
        let shown = plan.effective.show(false);
        assert!(shown.contains(&format!("unknown_paths: {}", terms.unknown_paths.name())), "{shown}");
    }
}

#[test]
fn durations_are_the_periods() {
    assert_eq!(BUDGET_DURATIONS, ["day", "week", "month", "30d"]);
    for (name, period) in BUDGET_DURATIONS.into_iter().zip(Period::ALL) {
        let yaml = format!("budgets:\n  - {{name: a, max_budget: 1, budget_duration: {name}}}\n");
        assert_eq!(plan(&yaml).budgets.budgets[0].period, period);
    }
}

#[test]
fn errors_have_their_line() {
    for (entry, expected) in [
        (
            "max_budget: 1\n    budget_duration: day",
            "t.yaml:2: a budget has no `name`; add one; alerts and rejections name it",
        ),
        (
            "name: a\n    budget_duration: day",
            "t.yaml:2: a budget has no limit; add `max_budget`, `soft_budget` or both, in the price book's currency",
        ),
        (
            "name: a\n    max_budget: 1",
            "t.yaml:2: a budget has no `budget_duration`; add it: one of day, week, month, 30d",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: mont",
            "t.yaml:4: `mont` is not one of day, week, month, 30d; did you mean `month`?",
        ),
        (
            "name: a\n    max_budget: 1\n    soft_budget: 1\n    budget_duration: day",
            "t.yaml:4: `soft_budget` is not below `max_budget`, so it never warns first; lower it, or remove it",
        ),
        (
            "name: a\n    soft_budget: 1\n    budget_duration: day\n    enforce: true",
            "t.yaml:5: there is no `max_budget` to enforce; add one, or remove the line",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    unpriced: refuse",
            "t.yaml:5: a budget that is not enforced refuses nothing; add `enforce: true`, or remove the line",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    unknown_paths: refuse",
            "t.yaml:5: a budget that is not enforced refuses nothing; add `enforce: true`, or remove the line",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    unreadable: refuse",
            "t.yaml:5: a budget that is not enforced refuses nothing; add `enforce: true`, or remove the line",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    uncountable: refuse",
            "t.yaml:5: a budget that is not enforced refuses nothing; add `enforce: true`, or remove the line",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    unknown_paths: allow",
            "t.yaml:5: `allow` is not one of meter, refuse, pass; write one of these",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    unpriced: true",
            "t.yaml:5: `true` is not one of allow, refuse; write one of these",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    shared: 3",
            "t.yaml:5: `3` is neither true nor false; write true or false",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    tenants: []",
            "t.yaml:5: `tenants` names none; name some (`*` matches any text), or remove the line to mean all",
        ),
        (
            "name: a\n    max_budget: 1\n    budget_duration: day\n    period: day",
            "t.yaml:5: a budget has no key `period`; known are name, tenants, max_budget, soft_budget, \
             budget_duration, shared, enforce, unpriced, unknown_paths, unknown_methods, unreadable, \
             uncountable",
        ),
        (
            "{name: a, max_budget: 1, budget_duration: day}\n  - {name: a, max_budget: 1, budget_duration: week}",
            "t.yaml:3: two budgets are named `a`; give each a `name` of its own",
        ),
    ] {
        assert_eq!(errors(&format!("budgets:\n  - {entry}\n")), [expected], "{entry}");
    }
    assert_eq!(
        errors("budgets: []\n"),
        ["t.yaml:1: `budgets` is empty; write one `- name: NAME` for each budget under it"]
    );
    let many: String =
        (0..65).map(|at| format!("  - {{name: n{at}, max_budget: 1, budget_duration: day}}\n")).collect();
    assert_eq!(
        errors(&format!("budgets:\n{many}")),
        ["t.yaml:1: 65 budgets are listed; keep 64; one budget limits each tenant that it covers separately"]
    );
}

#[test]
fn inexact_amount_is_an_error() {
    for (text, pico) in [
        ("1", Some(1_000_000_000_000)),
        ("0.1", Some(100_000_000_000)),
        ("0.000000000001", Some(1)),
        ("123.456789012345", Some(123_456_789_012_345)),
        ("1234.456789012345", Some(1_234_456_789_012_345)),
        ("123.456789012", Some(123_456_789_012_000)),
        ("\"123456789012.34\"", Some(123_456_789_012_340_000_000_000)),
        ("1234567890123456.789", Some(1_234_567_890_123_456_789_000_000_000)),
        ("123456789012345678", None),
        ("0.1000000000000000055511151231257827", None),
        ("0.0000000000001", None),
        ("0", None),
        ("-5", None),
        ("ten", None),
        ("1e3", Some(1_000_000_000_000_000)),
        ("1E+3", Some(1_000_000_000_000_000)),
        ("5e-1", Some(500_000_000_000)),
        ("\"1e1_0\"", None),
        ("\"+007.\"", Some(7_000_000_000_000)),
        (".5", Some(500_000_000_000)),
        ("1_000", Some(1_000_000_000_000_000)),
        ("1_0.2_5", Some(10_250_000_000_000)),
        ("_1", None),
        ("\"-_1\"", None),
        ("\" 1\"", None),
        ("\"1 \"", None),
        ("\".\"", None),
        ("79228162514264337", Some(79_228_162_514_264_337_000_000_000_000)),
        ("79228162514264338", None),
        ("4820407372275192.67072282501800", Some(4_820_407_372_275_192_670_722_825_018)),
        ("4430728205974.11881515892616583e4", None),
        ("-0.5", None),
        ("\"1,000\"", None),
        ("$5", None),
    ] {
        let yaml = format!("budgets:\n  - name: a\n    max_budget: {text}\n    budget_duration: day\n");
        match pico {
            Some(pico) => assert_eq!(plan(&yaml).budgets.budgets[0].hard, Some(pico), "{text}"),
            None => {
                let errors = errors(&yaml);
                assert_eq!(errors.len(), 1, "{errors:?}");
                assert!(errors[0].starts_with("t.yaml:3: `"), "{errors:?}");
                let remedy = " is not an amount above 0; write it as in 250 or 0.50: at most 16 digits before \
                              the point and 12 after";
                assert!(errors[0].ends_with(remedy), "{errors:?}");
            }
        }
    }
}

#[test]
fn all_errors_are_reported() {
    let yaml = "budgets:\n  - nmae: a\n    max_budget: x\n    enforce: 5\n  - {}\n";
    let places: Vec<_> =
        errors(yaml).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    let expected =
        ["t.yaml:2", "t.yaml:2", "t.yaml:3", "t.yaml:4", "t.yaml:2", "t.yaml:5", "t.yaml:5", "t.yaml:5"];
    assert_eq!(places, expected);
}

#[test]
fn budgets_need_prices_and_should_have_a_ledger() {
    assert_eq!(
        errors_of(&written(LIST, &REQUIREMENTS[1..])),
        [
            "t.yaml:1: budgets are listed, but there are no prices, so nothing is charged; set `prices` to a price \
          file"
        ]
    );
    assert_eq!(
        warnings(&written(&LIST.replace("[gold, \"team-*\"]", "default"), &REQUIREMENTS[..1])),
        [
            "t.yaml:1: budgets are listed, but there is no ledger, so a restart forgets the spend; set `ledger` to a \
          file"
        ]
    );
}

#[test]
fn webhook_and_secret_are_checked_and_hidden() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-budgets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (good, short) = (file("good", "0123456789abcdef0123456789abcdef\n"), file("short", "hunter2\n"));
    let with = |url: &'static str, file: &str| {
        let beside = [("budget_webhook", url), ("budget_webhook_secret_file", file)];
        written(LIST, &[&REQUIREMENTS[..], &beside].concat())
    };
    let written = with("https://hooks.example.com/T0/hunter2?key=hunter2", &good);
    let plan = plan_of(&written);
    let webhook = plan.budgets.webhook.as_ref().unwrap();
    assert_eq!(webhook.endpoint.to_string(), "https://hooks.example.com/…");
    assert!(webhook.secret.is_some());
    let shown = plan.effective.show(true);
    assert!(shown.contains("budget_webhook: \"https://hooks.example.com/…\" "), "{shown}");
    assert!(!format!("{shown} {plan:?}").contains("hunter2"));

    let short_error = format!(
        "--budget-webhook-secret-file: no secret can be read from `{short}`: a secret has 16 to 4096 bytes; \
         write one, as by \
         `openssl rand -hex 32`, or remove --budget-webhook-secret-file"
    );
    assert_eq!(
        errors_of(&with("https://me:hunter2@example.com/", &short)),
        [
            &*short_error,
            "--budget-webhook: the webhook's URL is invalid: it contains a user name or a password; \
             remove them, put the secret into a file, and name the file in its own setting",
        ]
    );
    assert!(errors_of(&with("https://example.com/", "/nonexistent"))[0].contains("No such file"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn budget_that_covers_no_tenant_is_a_warning() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-covers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let beside_rules = |rules: &str| {
        let path = folder.join("tenants.yaml");
        std::fs::write(&path, rules).unwrap();
        warnings(&written(LIST, &[&REQUIREMENTS[..], &[("tenants", path.to_str().unwrap())]].concat()))
    };
    let team = "  - {peer: 192.0.2.0/24, tenant: team-a}\n";
    let write = "write a tenant of the rules, or add a rule for this one";
    assert_eq!(
        warnings(&written(LIST, &REQUIREMENTS)),
        [
            "t.yaml:2: no tenant of the rules matches `gold` or `team-*`, of budget `gold`; set `tenants`: without \
          rules, every request belongs to the default tenant"
        ]
    );
    assert_eq!(
        beside_rules(&format!("rules:\n{team}")),
        [format!("t.yaml:2: no tenant of the rules matches `gold`, of budget `gold`; {write}")]
    );
    assert_eq!(beside_rules(&format!("rules:\n{team}  - {{path: /gold, tenant: gold}}\n")), [""; 0]);
    assert_eq!(beside_rules(&format!("default: gold\nrules:\n{team}")), [""; 0]);
    // A rule that takes any name can match every budget.
    assert_eq!(beside_rules("rules:\n  - body: user\n"), [""; 0]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn unencrypted_webhook_is_a_warning() {
    let yaml = LIST.replace("[gold, \"team-*\"]", "default");
    let with = |url| warnings(&written(&yaml, &[&REQUIREMENTS[..], &[("budget_webhook", url)]].concat()));
    assert_eq!(
        with("http://hooks.example.com/T0/hunter2"),
        [
            "--budget-webhook: the webhook is http://, so anyone on the network path can read the spend of tenants and \
          a key in the URL; use https:// unless the receiver is local"
        ]
    );
    assert_eq!(with("http://127.0.0.1:9093/"), [""; 0]);
    assert_eq!(with("https://hooks.example.com/"), [""; 0]);
}

#[test]
fn prices_chosen_by_name_are_a_warning() {
    let path = std::env::temp_dir().join(format!("tokenmeter-names-{}.yaml", std::process::id()));
    let of = |kind: &str, enforce: bool, models: &str| {
        std::fs::write(&path, format!("version: v\ncurrency: USD\nmodels:\n{models}")).unwrap();
        let budget = format!("  - {{name: a, max_budget: 1, budget_duration: day, enforce: {enforce}}}\n");
        let beside = [("prices", path.to_str().unwrap()), ("ledger", "spend.db"), ("kind", kind)];
        warnings(&written(&format!("budgets:\n{budget}"), &beside))
    };
    let two = "  - {name: cheap, input: 1, output: 1}\n  - {name: dear, input: 9, output: 9}\n";
    assert_eq!(
        of("llama_cpp", true, two),
        [
            "prices: a budget is enforced, and the upstream `gpu:8000` accepts any model name, so its clients choose their \
             price; give the price file one entry for it, `pattern: \"*\"` with `upstream: \"gpu:8000\"`"
        ]
    );
    let unknown = of("auto", true, two);
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0].contains("whose `kind` is not set") && unknown[0].ends_with(", or set its `kind`"));
    assert_eq!(of("vllm", true, two), [""; 0]);
    assert_eq!(of("llama_cpp", false, two), [""; 0]);
    assert_eq!(of("llama_cpp", true, "  - {name: only, input: 1, output: 1}\n"), [""; 0]);
    let all = format!("{two}  - {{pattern: \"*\", upstream: \"gpu:8000\", input: 9, output: 9}}\n");
    assert_eq!(of("llama_cpp", true, &all), [""; 0]);
    let named = format!("{all}  - {{name: cheap, upstream: \"gpu:8000\", input: 2, output: 2}}\n");
    assert_eq!(of("llama_cpp", true, &named).len(), 1, "an entry of the upstream for one name");
    let elsewhere = "  - {name: dear, input: 9, output: 9}\n  - {name: cheap, input: 1, output: 1, upstream: other}\n  - {name: c, input: 1, output: 1, provider: openai}\n";
    assert_eq!(of("llama_cpp", true, elsewhere), [""; 0]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn setting_without_effect_is_a_warning() {
    assert_eq!(
        warnings(&written("", &[("budget_webhook", "https://example.com/")])),
        ["--budget-webhook: has no effect without `budgets`; list some in the file, or remove the webhook"]
    );
    assert_eq!(
        warnings(&written("", &[("budget_webhook_secret_file", "/nonexistent")])),
        [
            "--budget-webhook-secret-file: has no effect without `budget_webhook`; set a webhook, or remove the \
          file"
        ]
    );
}
