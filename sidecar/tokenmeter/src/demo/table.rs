//! Prints the demonstration: plain lines of fixed columns, on terminals and in logs. Only a terminal has a line that is
//! overwritten in place.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use metrics::Snapshot;
use report::{self as spend, table};
use simulator::load::Report;

use super::ClientTotals;

/// Prints the addresses, that of the live page first, and then the notes about them.
pub(super) fn introduce(out: &mut impl Write, listen: SocketAddr, admin: SocketAddr, notes: &[String]) {
    let notes: String = notes.iter().flat_map(|note| [note, "\n"]).collect();
    let top = match cfg!(feature = "top") {
        true => format!("\x20 terminal    tokenmeter top --admin {admin}\n"),
        false => String::new(),
    };
    print(
        out,
        &format!(
            "http://{admin}/\n\
             \n\
             The live page of: clients -> tokenmeter -> a simulated server. Look at\n\
             \x20 the curve: with 1, 10, 25 and 50 clients, each gets slower and all together faster\n\
             \x20 time to first token (TTFT) and tokens/s of each request, beside the objective `chat`\n\
             \x20 the spend of the tenants search, support and research, at invented prices\n\
             \n\
             {top}\
             \x20 metrics     http://{admin}/metrics\n\
             \x20 try it      curl -N http://{listen}/v1/chat/completions -H 'Content-Type: application/json' -d '{{\"model\": \"mine\", \
             \"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": \"hello\"}}]}}'\n\
             {notes}\
             \n\
             The table has tokens/s of each client (median), and of all together.\n"
        ),
    );
}

/// Prints the head of a cycle.
pub(super) fn head(out: &mut impl Write) {
    print(
        out,
        &format!(
            "\n{:>8}  {:>9}  {:>9}  {:>13}  {:>12}  {:>8}  {:>6}\n",
            "clients", "TTFT p50", "TTFT p99", "tokens/s each", "tokens/s all", "requests", "errors"
        ),
    );
}

/// Prints a finished step.
pub(super) fn row(out: &mut impl Write, concurrency: u32, report: &Report) {
    let ttft = |q| milliseconds(report.time_to_first_token.quantile(q));
    print(
        out,
        &format!(
            "{concurrency:>8}  {:>9}  {:>9}  {:>13}  {:>12}  {:>8}  {:>6}\n",
            ttft(0.5),
            ttft(0.99),
            rate(report.tokens_per_second.quantile(0.5)),
            rate(report.aggregate_tokens_per_second()),
            report.completed + report.failed(),
            report.failed(),
        ),
    );
}

/// Prints the counts of the meter beside those of the clients.
pub(super) fn compare(out: &mut impl Write, client_totals: &ClientTotals, counted: &Snapshot) {
    let exchanges = super::exchanges(counted);
    let tokens: u64 = counted.models.iter().map(|model| model.output_tokens).sum();
    let ours = client_totals.completed + client_totals.failed;
    let others = match exchanges.saturating_sub(ours) {
        0 => String::new(),
        more => format!(", others {} in {more}", tokens.saturating_sub(client_totals.output_tokens)),
    };
    print(
        out,
        &format!(
            "\ntokenmeter counted {tokens} output tokens in {exchanges} exchanges; \
             its clients got {} in {ours}{others}.\n",
            client_totals.output_tokens,
        ),
    );
}

/// Returns the number of exchanges of a bill.
pub(super) fn billed(report: &spend::Report) -> i128 {
    report.totals.iter().map(|total| total.sums.exchanges).sum()
}

/// Prints each tenant's spend as `tokenmeter spend` does, and the number of exchanges that the ledger lacks.
pub(super) fn bill(out: &mut impl Write, report: Option<&spend::Report>, counted: u64, ledger: &Path) {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    if let Some(report) = report.filter(|report| table::write(report, Some(CENTS), &mut text).is_ok()) {
        print(out, &format!("\n{}", String::from_utf8_lossy(&text)));
        match i128::from(counted) - billed(report) {
            0 => {}
            missing => print(out, &format!("\nThe ledger lacks {missing} of {counted} exchanges so far.\n")),
        }
        let ledger = ledger.display();
        print(out, &format!("\nWhile this runs: tokenmeter spend --ledger {ledger} --by tenant,model\n"));
    }
}

/// Decimal places of dollars in the bill.
const CENTS: u32 = 6;

/// Prints the line in place.
pub(super) fn glance(out: &mut impl Write, concurrency: u32, tokens_per_second: f64) {
    print(out, &format!("\r\x1b[K{concurrency:>8}  … {} tokens/s now", rate(tokens_per_second)));
}

/// Removes the line in place.
pub(super) fn clear(out: &mut impl Write) {
    print(out, "\r\x1b[K");
}

/// Prints the end; on a terminal it first clears the line in place, or the `^C`.
pub(super) fn conclude(out: &mut impl Write, terminal: bool) {
    if terminal {
        clear(out);
    }
    print(out, "\nStopped. With your own server: tokenmeter run --upstream http://HOST:PORT\n");
}

fn milliseconds(seconds: f64) -> String {
    match seconds {
        nan if nan.is_nan() => "-".to_owned(),
        seconds => format!("{:.0} ms", seconds * 1e3),
    }
}

fn rate(tokens_per_second: f64) -> String {
    match tokens_per_second {
        nan if nan.is_nan() => "-".to_owned(),
        slow if slow < 100.0 => format!("{slow:.1}"),
        fast => format!("{fast:.0}"),
    }
}

fn print(out: &mut impl Write, text: &str) {
    // A closed pipe (`| head`) is no error.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
