//! Describes an attributes file in text: a line per tenant and date.

use std::fmt::Write;

use ledger::period;
use report::Attributes;

/// Describes the whole file.
pub(super) fn describe(attributes: &Attributes) -> String {
    let mut text = String::new();
    for (tenant, from, entry) in attributes.entries() {
        let from = from.map_or_else(String::new, |day| format!(" from {}", period::day(day)));
        let tag = |name: &str| if entry.tags.contains_key(name) { "tag." } else { "" };
        let value = |(name, value): (&str, &str)| {
            format!("{}{} {}", tag(name), name.escape_debug(), value.escape_debug())
        };
        let values: Vec<_> = entry.named().map(value).collect();
        let values = if values.is_empty() { "no attributes".to_owned() } else { values.join(", ") };
        // Writing to a String succeeds.
        let _ = writeln!(text, "{}{from}: {values}", tenant.escape_debug());
    }
    text
}

#[cfg(test)]
mod tests {
    use report::Attributes;

    #[test]
    fn each_entry_is_a_line() {
        let text = "tenants:\n- {tenant: acme, cost_center: 00417, owner: ann, tags: {env: prod}}\n\
                    - {tenant: acme, valid_from: 2026-11-01, department: Search}\n- {tenant: beta}\n";
        let said = super::describe(&Attributes::parse("a.yaml", text).unwrap());
        let expected = "acme: cost_center 00417, owner ann, tag.env prod\n\
                        acme from 2026-11-01: department Search\nbeta: no attributes\n";
        assert_eq!(said, expected);
    }
}
