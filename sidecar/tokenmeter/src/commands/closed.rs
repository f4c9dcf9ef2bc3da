//! Renders the result of `ledger close` as text, from the signed document.
//!
//! Law: the text states only what the document or the ledger holds; for a month that was closed before, it states
//! that nothing changed.

use std::path::Path;

use ledger::{Range, Source};
use ledger::{SignOff, Store, utc};
use report::notes::{Notes, shell_word};
use text::group_thousands;

/// Renders the sign-off of a month. `now_us` is the time of the command.
pub(crate) fn summary(sign_off: &SignOff, ledger: &Path, now_us: i64) -> String {
    let folder = ledger.parent().unwrap_or(Path::new(""));
    let file = sign_off.document["file"].as_str().unwrap_or("?");
    let signed = Path::new(file).with_extension("json");
    // In a ledger without an extension, the month at the end is no extension.
    let signed = match ledger.extension() {
        Some(_) => signed,
        None => format!("{file}.json").into(),
    };
    let place = [
        ("file", format!("{}, read-only", folder.join(file).display())),
        ("sign-off", folder.join(signed).display().to_string()),
    ];
    let gaps = match sign_off.document["gaps"].as_u64().unwrap_or(0) {
        0 => "none".to_owned(),
        gaps => gaps_of(sign_off.month, ledger).unwrap_or_else(|| count(gaps, "gap")),
    };
    lines(sign_off, &place, gaps, now_us)
}

/// Renders a sign-off, with its place and its gaps.
fn lines(sign_off: &SignOff, place: &[(&str, String)], gaps: String, now_us: i64) -> String {
    let document = &sign_off.document;
    let text = |name: &str| document[name].as_str().unwrap_or("?");
    let number = |name: &str| document[name].as_u64().unwrap_or(0);
    let (month, at, by) = (text("month"), text("closed_at"), text("closed_by"));
    // The clock of a store may be ahead.
    let mut lines = vec![match at >= &*utc(now_us) {
        true => format!("{month} is closed, at {at} by {by}"),
        false => format!("{month} was already closed, at {at} by {by}: nothing changed"),
    }];
    let mut line = |name: &str, text: String| lines.push(format!("  {name:<12} {text}"));
    for (name, text) in place {
        line(name, text.clone());
    }
    line("digest", sign_off.digest.clone());
    line("exchanges", group_thousands(&number("exchanges").to_string()));
    line(
        "rows",
        format!(
            "{}, {}, {} of GPU use",
            count(number("rows"), "exchange"),
            count(number("correction_rows"), "correction"),
            group_thousands(&number("energy_rows").to_string())
        ),
    );
    let costs = document["cost"].as_object().into_iter().flatten();
    let costs: Vec<_> =
        costs.map(|(code, cost)| format!("{} {code}", cost.as_str().unwrap_or("?"))).collect();
    line(
        "cost",
        if costs.is_empty() { "none: no exchange has a price".to_owned() } else { costs.join(", ") },
    );
    line(
        "no price",
        match number("unpriced_exchanges") {
            0 => "none".to_owned(),
            unpriced => format!("{}, in no total", count(unpriced, "exchange")),
        },
    );
    line(
        "totals only",
        match number("shed_exchanges") {
            0 => "none".to_owned(),
            lacking => {
                format!("{} without a row, because the ledger's queue was full", count(lacking, "exchange"))
            }
        },
    );
    line("gaps", gaps);
    lines.join("\n")
}

/// Renders the sign-off of a month of a central store.
pub(crate) fn central_summary(sign_off: &SignOff, store: &str, now_us: i64) -> String {
    let document = &sign_off.document;
    let files = document["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lacking = files.iter().filter(|file| file["is_shipped_to_its_end"] == false).count();
    let mut of_files = group_thousands(&files.len().to_string());
    if lacking > 0 {
        let lacking = group_thousands(&lacking.to_string());
        of_files.push_str(&format!(
            ", {lacking} of them not completely shipped: rows that arrive later are billed in the open month"
        ));
    }
    let place = [("store", store.to_owned()), ("ledger files", of_files)];
    let gaps = match document["gaps"].as_u64().unwrap_or(0) {
        0 => "none".to_owned(),
        gaps => count(gaps, "gap"),
    };
    lines(sign_off, &place, gaps, now_us)
}

/// Returns the month's gaps, one per line; `None` if the ledger cannot be read.
fn gaps_of(month: i32, ledger: &Path) -> Option<String> {
    let store = Store::open_read(ledger).ok()?;
    let range = Range::of_month(&store.calendar(), month);
    let gaps = store.gaps(&range).ok()?;
    let sentences = Notes { gaps, ..Notes::default() }.sentences(&range);
    (!sentences.is_empty()).then(|| sentences.join(&format!("\n  {:<12} ", "")))
}

/// Returns the warning about exchanges without a price, with its remedy.
pub(crate) fn unpriced(exchanges: u64, month: &str, ledger: &Path) -> String {
    let ledger = shell_word(&ledger.display().to_string()).unwrap_or_else(|| "PATH".to_owned());
    let (have, are) = if exchanges == 1 { ("has", "is") } else { ("have", "are") };
    format!(
        "{} of its exchanges {have} no price and {are} in no total: `tokenmeter spend --ledger {ledger} --month {month} \
         --by model,unpriced --where 'unpriced!='` lists their models, and `ledger reprice` charges them by \
         corrections",
        group_thousands(&exchanges.to_string())
    )
}

/// Renders a count with its noun, which takes an `s` in the plural.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", group_thousands(&number.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use super::{count, summary, unpriced};

    #[test]
    fn summary_tells_new_and_earlier_closing_apart() {
        let folder = std::env::temp_dir().join(format!("closed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.db");
        let noon_us = 1_790_942_400_000_000;
        let clock: ledger::Clock = Arc::new(move || noon_us);
        let ledger = ledger::start(ledger::Plan { clock, ..ledger::Plan::new(&path) });
        assert!(ledger.shutdown(Duration::from_secs(30)), "{:?}", ledger.status());
        let later_us = noon_us + 40 * 86_400_000_000;
        let sign_off = ledger::close(&path, 681, "ann", later_us).unwrap();
        let first = summary(&sign_off, &path, later_us);
        let again = ledger::close(&path, 681, "bob", later_us + 5_000_000).unwrap();
        let second = summary(&again, &path, later_us + 5_000_000);
        let signed = folder.join("x-2026-10.json");
        assert!(signed.is_file());
        std::fs::remove_dir_all(&folder).unwrap();
        for line in [
            "2026-10 is closed, at 2026-11-11T12:00:00Z by ann\n",
            &format!("  sign-off     {}\n", signed.display()),
            &format!("  digest       {}\n", sign_off.digest),
            "  exchanges    0\n",
            "  cost         none: no exchange has a price\n",
            "  gaps         none",
        ] {
            assert!(first.contains(line), "{line:?} is not in {first}");
        }
        let already = "2026-10 was already closed, at 2026-11-11T12:00:00Z by ann: nothing changed\n";
        assert!(second.starts_with(already), "{second}");
        assert_eq!(first.lines().skip(1).collect::<Vec<_>>(), second.lines().skip(1).collect::<Vec<_>>());
    }

    #[test]
    fn summary_has_cost_gaps_and_unpriced_exchanges() {
        let document = serde_json::json!({
            "month": "2026-10", "file": "x-2026-10.db", "closed_at": "2026-11-01T00:00:00Z", "closed_by": "ann",
            "rows": 1, "energy_rows": 0, "correction_rows": 1_234, "gaps": 1, "exchanges": 3,
            "shed_exchanges": 2, "unpriced_exchanges": 1, "cost": {"EUR": "0.50", "USD": "12.25"},
        });
        let sign_off = ledger::SignOff { month: 681, digest: "ab".into(), document };
        let text = summary(&sign_off, Path::new("/nowhere/x.db"), 0);
        for part in [
            "  rows         1 exchange, 1,234 corrections, 0 of GPU use\n",
            "  cost         0.50 EUR, 12.25 USD\n",
            "  no price     1 exchange, in no total\n",
            "  totals only  2 exchanges without a row",
            "  gaps         1 gap",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        let warning = unpriced(1, "2026-10", Path::new("my ledger.db"));
        assert!(warning.starts_with(
            "1 of its exchanges has no price and is in no total: `tokenmeter spend --ledger 'my ledger.db' --month 2026-10 "
        ));
        assert_eq!((count(1, "row"), count(2_000, "row")), ("1 row".into(), "2,000 rows".into()));
    }
}
