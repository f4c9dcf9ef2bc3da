//! Writes the imported prices as a price file.

use std::collections::BTreeMap;
use std::fmt::Write;

use text::{money, per_million};

use crate::charge::Pico;
use crate::currency::Currency;
use crate::prices::{KEYS, PER_REQUEST};

use super::{Sheet, Tiers};

/// Returns the whole file, models sorted by name.
pub(super) fn file(
    version: &str,
    currency: Currency,
    models: &BTreeMap<&str, (Tiers, Option<String>)>,
) -> String {
    let mut text = format!(
        "# Imported from LiteLLM's price map. Prices are for a million tokens. Check them against your\n\
         # providers' offers; give the models you use the names your requests have, by `aliases`.\n\
         version: {}\ncurrency: {}\nunit: per_million\nmodels:{}\n",
        quoted(version),
        currency.code(),
        if models.is_empty() { " []" } else { "" }
    );
    for (name, (tiers, provider)) in models {
        model(&mut text, name, tiers, provider.as_deref());
    }
    text
}

fn model(text: &mut String, name: &str, tiers: &Tiers, provider: Option<&str>) {
    let provider = provider.map_or(String::new(), |provider| format!("  # {provider}"));
    // Writing into a String cannot fail.
    let _ = writeln!(text, "  - name: {}{provider}", quoted(name));
    if let Some(sheet) = tiers.get("") {
        for (key, price) in &sheet.own {
            let _ = writeln!(text, "    {}", named(*key, *price));
        }
        if !sheet.contexts.is_empty() {
            text.push_str("    context_tiers:\n");
            for context in contexts(sheet) {
                let _ = writeln!(text, "      - {context}");
            }
        }
    }
    let others: Vec<_> = tiers.iter().filter(|(tier, _)| !tier.is_empty()).collect();
    if !others.is_empty() {
        text.push_str("    tiers:\n");
    }
    for (tier, sheet) in others {
        let mut parts = inline(&sheet.own);
        parts.extend(sheet.multiply.iter().map(|factor| format!("multiply: {factor}")));
        let contexts: Vec<String> = contexts(sheet).collect();
        if !contexts.is_empty() {
            parts.push(format!("context_tiers: [{}]", contexts.join(", ")));
        }
        let _ = writeln!(text, "      {tier}: {{{}}}", parts.join(", "));
    }
}

fn contexts(sheet: &Sheet) -> impl Iterator<Item = String> {
    sheet.contexts.iter().map(|(above, prices)| {
        let mut parts = vec![format!("above_input_tokens: {above}")];
        parts.extend(inline(prices));
        format!("{{{}}}", parts.join(", "))
    })
}

fn inline(prices: &BTreeMap<usize, Pico>) -> Vec<String> {
    prices.iter().map(|(key, price)| named(*key, *price)).collect()
}

fn named(key: usize, price: Pico) -> String {
    match KEYS.get(key) {
        Some((key, _)) => format!("{key}: {}", per_million(price.into())),
        None => format!("{PER_REQUEST}: {}", money(price.into())),
    }
}

/// Returns a text in double quotes; a JSON string is a YAML string too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
