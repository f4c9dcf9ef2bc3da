//! Renders the output of the command `prices` as text and JSON. Money is text in both: most JSON parsers read
//! a number as a float.

use std::fmt::Write;

use ::price::diff::{Change, diff as differences};
use ::price::litellm::Import;
use ::price::{About, Book, Entry, Models, Offer, Rate, TenantTerm, Warning, WarningKind, instant, key_of};
use ::text::{money, nearest, per_million, table};
use meter::TokenType;
use origin::Diagnostic;
use serde_json::{Value, json};

use super::Show;

/// The result of reading a price file.
type Read = Result<(Book, Vec<Warning>), Vec<Diagnostic>>;

pub(super) fn lint(file: &str, read: &Read) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    match read {
        Ok((book, warnings)) => {
            for warning in warnings {
                let _ = writeln!(text, "{file}:{}: warning: {}", warning.line, warning.message);
            }
            let _ = writeln!(
                text,
                "{file}: version {}, {}, {}, {}, {}, hash {}",
                book.version(),
                book.currency().code(),
                counted(book.entries().len(), "entry", "entries"),
                counted(book.rates().count(), "rate", "rates"),
                counted(warnings.len(), "warning", "warnings"),
                book.hash()
            );
        }
        Err(errors) => {
            for error in errors {
                let _ = writeln!(text, "{error}");
            }
            let _ = writeln!(text, "{file}: {}", counted(errors.len(), "error", "errors"));
        }
    }
    text
}

pub(super) fn lint_json(file: &str, read: &Read) -> String {
    pretty(&match read {
        Ok((book, warnings)) => json!({
            "file": file,
            "right": true,
            "version": **book.version(),
            "hash": **book.hash(),
            "currency": book.currency().code(),
            "entries": book.entries().len(),
            "rates": book.rates().count(),
            "problems": [],
            "warnings": warnings.iter().map(|warning| {
                json!({"line": warning.line, "kind": kind(warning.kind), "what": warning.message})
            }).collect::<Vec<_>>(),
        }),
        Err(errors) => json!({
            "file": file,
            "right": false,
            "problems": errors.iter().map(|error| {
                json!({"line": error.line, "what": error.message, "remedy": error.remedy})
            }).collect::<Vec<_>>(),
            "warnings": [],
        }),
    })
}

fn kind(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::Rounded => "rounded",
        WarningKind::Tiny => "tiny",
        WarningKind::NeverCharged => "never_charged",
        WarningKind::Inherited => "kept",
        WarningKind::Ambiguous => "ambiguous",
        WarningKind::LeftBehind => "left_behind",
        WarningKind::Large => "large",
        WarningKind::Unpriced => "unpriced",
        WarningKind::Cheaper => "cheaper",
        WarningKind::Ended => "ended",
        WarningKind::Empty => "empty",
    }
}

pub(super) fn diff(old: &Book, new: &Book) -> String {
    let changes = differences(old, new);
    let mut text =
        format!("{} -> {}, {} per million tokens\n", old.version(), new.version(), new.currency().code());
    for Change { entry, kind, facts } in &changes {
        let _ = writeln!(text, "{} {entry}", kind.name());
        let width = facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or(0);
        for fact in facts {
            let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let _ = writeln!(text, "  {:width$}  {} -> {}", fact.name, side(&fact.old), side(&fact.new));
        }
    }
    if changes.is_empty() {
        text.push_str("nothing differs\n");
    }
    text
}

pub(super) fn diff_json(old: &Book, new: &Book) -> String {
    let head = |book: &Book| json!({"version": **book.version(), "hash": **book.hash(), "currency": book.currency().code()});
    let changes = differences(old, new).into_iter().map(|change| {
        let facts =
            change.facts.into_iter().map(|fact| json!({"what": fact.name, "old": fact.old, "new": fact.new}));
        json!({"entry": change.entry, "change": change.kind.name(), "facts": facts.collect::<Vec<_>>()})
    });
    pretty(&json!({"old": head(old), "new": head(new), "changes": changes.collect::<Vec<_>>()}))
}

/// Returns the rates of the requested tier, by prompt length; those of the standard tier if the entry lacks it.
fn offers<'e>(entry: &'e Entry, args: &Show) -> Vec<&'e Offer> {
    let tier = args.tier.as_deref().unwrap_or(price::STANDARD);
    let offers = entry.all_offers();
    let first = entry.offers_for(tier, 0).next().unwrap_or(&entry.offers[0]);
    offers.filter(|offer| offer.rate.tier == first.rate.tier).collect()
}

pub(super) fn show(book: &Book, entry: &Entry, args: &Show, at_us: i64) -> String {
    let offers = offers(entry, args);
    let terms = args.tenant.as_deref().and_then(|tenant| book.terms_of(tenant));
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<9}{value}");
    };
    line("model", &args.model);
    line("entry", &format!("{}, line {}", entry.title(), entry.line));
    let About { developer, family, version } = book.about(&args.model, at_us);
    let facts: Vec<_> = [("developer", developer), ("family", family), ("version", version)]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value?)))
        .collect();
    if !facts.is_empty() {
        line("is", &facts.join(", "));
    }
    line("book", &format!("{}, hash {}", book.version(), book.hash()));
    line("at", &instant::written(at_us));
    let tier = &offers[0].rate.tier;
    match args.tier.as_deref().filter(|requested| !entry.has_tier(requested)) {
        Some(requested) => line("tier", &format!("{tier}: the entry has no prices for `{requested}`")),
        None => line("tier", tier),
    }
    let all: Vec<String> = book.tenants().iter().map(named).collect();
    match (&args.tenant, terms) {
        (Some(tenant), Some(terms)) => line("tenant", &format!("{}: {}", shown(tenant), named(terms))),
        (Some(tenant), None) => line("tenant", &format!("{}: no terms of its own", shown(tenant))),
        (None, _) if all.is_empty() => {}
        (None, _) => line("tenants", &format!("{}; --tenant NAME shows the prices of one", all.join(", "))),
    }
    for offer in &offers {
        let rate = offer.rate_for(terms);
        line("rate", &format!("{}{}", id(rate), length(rate)));
    }
    let currency = book.currency();
    let mut rows = vec![vec![format!("{} per", currency.code()), "million tokens".to_owned()]];
    rows[0].extend(offers.iter().skip(1).map(|offer| format!("above {}", offer.rate.above_input_tokens)));
    for (at, kind) in TokenType::ALL.into_iter().enumerate() {
        let mut row = vec![key_of(kind).to_owned()];
        row.extend(offers.iter().map(|offer| match offer.rate_for(terms).per_token[at] {
            Some(price) if offer.derived[at] => format!("{} *", per_million(price.into())),
            Some(price) => per_million(price.into()).to_string(),
            None => "unpriced".to_owned(),
        }));
        rows.push(row);
    }
    let mut row = vec!["one request".to_owned()];
    row.extend(offers.iter().map(|offer| money(offer.rate_for(terms).per_request.into()).to_string()));
    rows.push(row);
    text.push('\n');
    for line in table(&rows, |column| column > 0) {
        let _ = writeln!(text, "{line}");
    }
    if offers.iter().any(|offer| offer.derived.contains(&true)) {
        text.push_str(
            "* derived: cached_input, cache_write, input_image and input_video cost as much as input, cache_write_1h \
             as much as cache_write, cached_input_image as cached_input, cached_input_audio as input_audio, reasoning \
             as output\n",
        );
    }
    text
}

pub(super) fn show_json(book: &Book, entry: &Entry, args: &Show, at_us: i64) -> String {
    let terms = args.tenant.as_deref().and_then(|tenant| book.terms_of(tenant));
    let rates = offers(entry, args).into_iter().map(|offer| {
        let rate = offer.rate_for(terms);
        let types = TokenType::ALL.into_iter().zip(rate.per_token).zip(offer.derived);
        let prices: serde_json::Map<_, _> = types
            .map(|((kind, price), derived)| {
                let price = price.map(|price| per_million(price.into()).to_string());
                (key_of(kind).to_owned(), json!({"per_million": price, "named": price.is_some() && !derived}))
            })
            .collect();
        json!({
            "id": id(rate),
            "tier": *rate.tier,
            "above_input_tokens": rate.above_input_tokens,
            "tokens": prices,
            "per_request": money(rate.per_request.into()).to_string(),
        })
    });
    let about = book.about(&args.model, at_us);
    pretty(&json!({
        "model": args.model,
        "developer": about.developer.as_deref(),
        "family": about.family.as_deref(),
        "model_version": about.version.as_deref(),
        "at": instant::written(at_us),
        "entry": **entry.models.text(),
        "pattern": matches!(entry.models, Models::Pattern(_)),
        "provider": entry.provider.as_deref(),
        "upstream": entry.upstream.as_deref(),
        "line": entry.line,
        "version": **book.version(),
        "hash": **book.hash(),
        "currency": book.currency().code(),
        "tenant": args.tenant,
        "terms": terms.map(|terms| &*terms.text),
        "rates": rates.collect::<Vec<_>>(),
    }))
}

/// Explains why a model has no price, and suggests others.
pub(super) fn unpriced(book: &Book, file: &str, args: &Show, at_us: i64) -> String {
    let mut text = format!(
        "`{}` is unpriced on {}: {} has no entry for it",
        args.model.escape_debug(),
        instant::written(at_us),
        file
    );
    let is_named = |entry: &&Entry| {
        **entry.models.text() == *args.model || entry.aliases.iter().any(|alias| **alias == *args.model)
    };
    let elsewhere: Vec<String> = book.entries().iter().filter(is_named).map(Entry::title).collect();
    if !elsewhere.is_empty() {
        let _ = write!(
            text,
            " with these flags, but has {}; see --at, --provider and --upstream",
            elsewhere.join("; ")
        );
    } else {
        let names = book.entries().iter().flat_map(|entry| {
            std::iter::once(&**entry.models.text()).chain(entry.aliases.iter().map(|alias| &**alias))
        });
        match nearest(&args.model, names) {
            Some(near) => {
                let _ = write!(text, "; did you mean `{}`?", near.escape_debug());
            }
            None => text.push_str("; add one, or an alias or a pattern that matches"),
        }
    }
    text
}

pub(super) fn import(import: &Import) -> String {
    let mut text = format!(
        "{} imported; {} without a price for tokens or requests\n",
        counted(import.models, "model", "models"),
        counted(import.without_price, "model", "models")
    );
    for rounded in &import.rounded {
        let _ = writeln!(
            text,
            "rounded: {}: {}: {} to {} per million",
            rounded.model,
            rounded.field,
            rounded.written,
            per_million(rounded.taken.into())
        );
    }
    for skipped in &import.skipped {
        let _ = writeln!(text, "left out: {skipped}");
    }
    for (field, (models, one)) in &import.uncharged {
        let _ =
            writeln!(text, "not imported: {field} of {}, such as {one}", counted(*models, "model", "models"));
    }
    if !import.free.is_empty() {
        let shown: Vec<_> = import.free.iter().take(FREE_SHOWN).map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{} nothing, which in that map can mean that the price is unknown: {}{}",
            counted(import.free.len(), "model costs", "models cost"),
            shown.join(", "),
            if import.free.len() > FREE_SHOWN { ", ..." } else { "" }
        );
    }
    text
}

/// Models without a cost that are listed.
const FREE_SHOWN: usize = 10;

/// Returns the terms of tenants with their name or pattern.
fn named(terms: &TenantTerm) -> String {
    format!("{} {}", shown(terms.tenants.text()), terms.text)
}

fn shown(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

fn length(rate: &Rate) -> String {
    match rate.above_input_tokens {
        0 => String::new(),
        above => format!(" above {above} prompt tokens"),
    }
}

fn id(rate: &Rate) -> String {
    rate.id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
