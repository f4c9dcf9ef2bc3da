//! The page: HTML with its style, without script, images or links.

use ledger::{Closure, month, period};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use price::Rate;
use report::table::known;
use report::{Basis, Group, Report, Value};
use text::{per_million, printable};

use crate::Statement;
use crate::amount::{self, count};
use crate::chart::chart;
use crate::style::STYLE;

/// Writes the page.
pub(crate) fn page(statement: &Statement) -> Markup {
    let Statement { number, .. } = statement;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Statement " (number) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(statement))
                h2 { "Charges" }
                (charges(statement))
                @if !statement.adjustments.is_empty() {
                    h2 { "Adjustments" }
                    (adjustments(statement))
                }
                h2 { "Usage by model" }
                (usage(&statement.by_model, "Model", statement.round))
                h2 { "Cost by day" }
                (days(statement))
                @if !statement.rates.is_empty() {
                    h2 { "Prices" }
                    (prices(statement))
                }
                h2 { "Sources of the token counts" }
                (provenance(statement))
                h2 { "Notes" }
                ul { @for note in statement.notes() { li { (printable(&note)) "." } } }
                h2 { "Sign-off" }
                (sign_off(statement))
            }
        }
    }
}

fn head(statement: &Statement) -> Markup {
    let month = month::name(statement.month);
    let last = period::day(month::first_day(statement.month + 1) - 1);
    html! {
        h1 { "Statement of LLM usage" }
        @match &statement.closure {
            Closure::Closed { digest: Some(_), .. } => {}
            Closure::Closed { digest: None, .. } => p.draft {
                "Draft: " (month) " is closed, but its sign-off is not complete."
            }
            Closure::Open => p.draft { "Draft: " (month) " is not closed, and its charges may still change." }
            Closure::Unknown => p.draft {
                "Draft: this store does not know whether " (month) " is closed, so its charges may still change."
            }
        }
        dl {
            dt { "Number" } dd { (statement.number) }
            dt { "Issued by" } dd { (printable(&statement.issuer)) }
            dt { "Issued to" } dd { (printable(&statement.tenant)) }
            dt { "Billing period" } dd { (month) "-01 to " (last) ", " (statement.zone().name()) }
            dt { "Total" }
            dd {
                @for total in &statement.charges.totals {
                    @match (total.cost(Basis::Price), total.currency) {
                        (Some(cost), Some(currency)) => div.due {
                            (amount::one(cost, statement.round)) " " (currency.code())
                        }
                        _ => div { (count(total.sums.exchanges)) " exchanges without a price" }
                    }
                }
            }
        }
    }
}

/// Writes the charges by class and month of usage.
fn charges(statement: &Statement) -> Markup {
    let name = |group: &Group| {
        let class = group.values.first().map(ToString::to_string).unwrap_or_default();
        let month = group.values.get(1).map(ToString::to_string).unwrap_or_default();
        let what = match class.as_str() {
            "usage" => "Usage".to_owned(),
            "shed" => "Usage recorded in totals only".to_owned(),
            "correction" if statement.adjustments.is_empty() => "Corrections of charges".to_owned(),
            "correction" => "Corrections and adjustments of charges".to_owned(),
            _ => printable(&class),
        };
        format!("{what} of {month}")
    };
    let report = &statement.charges;
    let costs = costs(report, statement.round);
    html! {
        table {
            thead { tr { th { "Charge" } th.n { "Exchanges" } th.n { "Amount" } } }
            tbody {
                @for (group, cost) in report.groups.iter().zip(&costs) {
                    tr {
                        td { (name(group)) }
                        td.n { (count(group.sums.exchanges)) }
                        td.n { (cost) }
                    }
                }
            }
            tfoot {
                @for (total, cost) in report.totals.iter().zip(costs.iter().skip(report.groups.len())) {
                    tr {
                        td { "Total" }
                        td.n { (count(total.sums.exchanges)) }
                        td.n { (cost) }
                    }
                }
            }
        }
    }
}

/// Writes the adjustments, which are among the charges, with their reasons.
fn adjustments(statement: &Statement) -> Markup {
    let adjustments = &statement.adjustments;
    let amounts = amount::column(adjustments.iter().map(|line| Some(line.pico)), statement.round);
    html! {
        table {
            thead { tr { th { "Reason" } th { "Month" } th.n { "Amount, in the charges above" } } }
            tbody {
                @for (line, amount) in adjustments.iter().zip(amounts) {
                    tr {
                        td { (printable(&line.reason)) }
                        td.k { (month::name(line.month)) }
                        td.n { (amount) " " (line.currency.code()) }
                    }
                }
            }
        }
    }
}

/// Writes the usage by the only key of a report.
fn usage(report: &Report, head: &str, round: Option<u32>) -> Markup {
    let costs = costs(report, round);
    let has_unpriced = report.totals.iter().any(|total| total.sums.unpriced != 0);
    let row = |group: &Group, cost: &str| {
        let name = match group.values.first() {
            None => "Total".to_owned(),
            Some(Value::Null) => "–".to_owned(),
            Some(value) => printable(&value.to_string()),
        };
        let sums = &group.sums;
        html! {
            tr {
                td { (name) }
                td.n { (count(sums.exchanges)) }
                @if has_unpriced { td.n { (count(sums.unpriced)) } }
                td.n { (count(sums.input())) }
                td.n { (count(sums.cached())) }
                td.n { (count(sums.output())) }
                td.n { (cost) }
            }
        }
    };
    html! {
        table {
            thead {
                tr {
                    th { (head) }
                    th.n { "Exchanges" }
                    @if has_unpriced { th.n { "Without price" } }
                    th.n { "Input tokens" }
                    th.n { "of which cached" }
                    th.n { "Output tokens" }
                    th.n { "Amount" }
                }
            }
            tbody {
                @for (group, cost) in report.groups.iter().zip(&costs) { (row(group, cost)) }
            }
            tfoot {
                @for (total, cost) in report.totals.iter().zip(costs.iter().skip(report.groups.len())) {
                    (row(total, cost))
                }
            }
        }
    }
}

fn days(statement: &Statement) -> Markup {
    html! {
        @for total in &statement.by_day.totals {
            @if let Some(currency) = total.currency {
                @if let Some(chart) = chart(statement.month, currency, &statement.days_of(total), statement.round) {
                    (chart)
                }
            }
        }
        (usage(&statement.by_day, &format!("Day ({})", statement.zone()), statement.round))
    }
}

fn prices(statement: &Statement) -> Markup {
    let list = |rate: &Rate| {
        let mut prices: Vec<String> =
            rate.prices().map(|(key, pico)| format!("{key} {}", per_million(pico.into()))).collect();
        if rate.per_request != 0 {
            prices.push(format!("per_request {}", amount::one(rate.per_request.into(), None)));
        }
        format!("{}: {}", rate.currency.code(), prices.join(", "))
    };
    let holds = |rate: &Rate| match rate.above_input_tokens {
        0 => printable(&rate.tier),
        above => format!("{}, prompts of more than {} tokens", printable(&rate.tier), count(above.into())),
    };
    html! {
        table {
            thead {
                tr {
                    th { "Price of" }
                    th { "Tier" }
                    th { "Price list" }
                    th { "Prices of a million tokens, and of a request (per_request)" }
                }
            }
            tbody {
                @for rate in &statement.rates {
                    tr {
                        td { (printable(&rate.entry)) }
                        td.k { (holds(rate)) }
                        td.k { (printable(&rate.version)) }
                        td { (list(rate)) }
                    }
                }
            }
        }
    }
}

fn provenance(statement: &Statement) -> Markup {
    let report = &statement.by_model;
    html! {
        table {
            thead { tr { th { "Model" } th { "Input tokens" } th { "Output tokens" } } }
            tbody {
                @for group in report.groups.iter().filter(|group| group.sums.exchanges != 0) {
                    tr {
                        td { (group.values.first().map(|name| printable(&name.to_string())).unwrap_or_default()) }
                        td { (known(&group.sums.input_known)) }
                        td { (known(&group.sums.output_known)) }
                    }
                }
            }
        }
    }
}

fn sign_off(statement: &Statement) -> Markup {
    let month = month::name(statement.month);
    html! {
        @match &statement.closure {
            Closure::Closed { digest: Some(digest), instances } => {
                p { "The month is closed under the digest " code { (printable(digest)) } "." }
                @if instances.len() > 1 {
                    p { "It covers the digests of " (instances.len()) " instances:" }
                    ul { @for digest in instances { li { code { (printable(digest)) } } } }
                }
                p.small {
                    code { "tokenmeter ledger verify" } " computes it again from the ledger, and "
                    code { "tokenmeter spend --billed " (month) " --where tenant=NAME --by model" }
                    " shows the same amounts."
                }
            }
            Closure::Closed { digest: None, .. } => {
                p { "It is not complete. " code { "tokenmeter ledger close " (month) } " completes it." }
            }
            Closure::Open | Closure::Unknown => {
                p { "There is none: the month is not closed. " code { "tokenmeter ledger close " (month) }
                    " closes it once it is over." }
            }
        }
    }
}

/// Returns the costs of a report's groups and then of its totals, as one column.
fn costs(report: &Report, round: Option<u32>) -> Vec<String> {
    let all = || report.groups.iter().chain(&report.totals);
    let amounts = amount::column(all().map(|group| group.cost(Basis::Price)), round);
    let with_code = |(group, amount): (&Group, String)| match group.currency {
        Some(currency) => format!("{amount} {}", currency.code()),
        None => amount,
    };
    all().zip(amounts).map(with_code).collect()
}
