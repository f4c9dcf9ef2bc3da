//! The live page: one HTML document without scripts that the browser reloads every two seconds. Names are untrusted, so
//! all text is written through [`Escaped`] (law 12).

use std::fmt::{self, Display, Write};

use crate::source::{Model, Readiness, Spend, Tenant, Upstream, View};

/// Returns the page. `speeds` are tokens per second, one per model of the view.
pub(crate) fn page(view: &View, readiness: &Readiness, speeds: &[Option<f64>]) -> String {
    let mut page = String::with_capacity(8 * 1024);
    write_page(&mut page, view, readiness, speeds).expect("a String takes any text");
    page
}

fn write_page(
    out: &mut String,
    view: &View,
    readiness: &Readiness,
    speeds: &[Option<f64>],
) -> Result<(), fmt::Error> {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"refresh\" content=\"2\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>tokenmeter</title><style>{STYLE}</style></head><body>\n\
         <header><h1>tokenmeter</h1><p>{version} · up {uptime} · <a href=\"/metrics\">metrics</a></p></header>\n",
        version = Escaped(&view.version),
        uptime = Uptime(view.uptime_s),
    )?;
    write_readiness(out, readiness)?;
    write_upstreams(out, &view.upstreams)?;
    write_models(out, &view.models, speeds)?;
    if let Some(spend) = &view.spend {
        write_spend(out, spend)?;
    }
    write_provenances(out, &view.provenances)?;
    out.write_str("</body></html>\n")
}

fn write_readiness(out: &mut String, readiness: &Readiness) -> fmt::Result {
    match readiness {
        Readiness::Ready => out.write_str("<p class=\"state ok\">ready</p>\n"),
        Readiness::Impaired(warnings) => write_state(out, "ok", "ready, with warnings", warnings),
        Readiness::NotReady(reasons) => write_state(out, "bad", "not ready", reasons),
    }
}

fn write_state(out: &mut String, class: &str, word: &str, lines: &[String]) -> fmt::Result {
    write!(out, "<p class=\"state {class}\">{word}")?;
    for line in lines {
        write!(out, "<br>{}", Escaped(line))?;
    }
    out.write_str("</p>\n")
}

fn write_upstreams(out: &mut String, upstreams: &[Upstream]) -> fmt::Result {
    out.write_str(
        "<h2>Upstreams</h2>\n<table><thead><tr><th>name<th>listen address<th>forwarded to<th>reachable</tr></thead><tbody>\n",
    )?;
    for upstream in upstreams {
        let (class, reached) = match upstream.up {
            Some(true) => ("ok", "yes"),
            Some(false) => ("bad", "no"),
            None => ("", "–"),
        };
        writeln!(
            out,
            "<tr><td><bdi>{}</bdi><td>http://{}<td>{}<td class=\"{class}\">{reached}</tr>",
            Escaped(&upstream.name),
            upstream.listen,
            Escaped(&upstream.url),
        )?;
    }
    out.write_str("</tbody></table>\n")?;
    for upstream in upstreams {
        if let Some(fault) = &upstream.fault {
            let (name, fault) = (Escaped(&upstream.name), Escaped(fault));
            writeln!(out, "<p class=\"state bad\"><bdi>{name}</bdi>: {fault}</p>")?;
        }
    }
    Ok(())
}

fn write_models(out: &mut String, models: &[Model], speeds: &[Option<f64>]) -> fmt::Result {
    out.write_str("<h2>Models</h2>\n")?;
    if models.is_empty() {
        return out.write_str("<p>No exchange yet. Send requests to a listen address above.</p>\n");
    }
    out.write_str(
        "<table class=\"numbers\"><thead>\
         <tr><th rowspan=\"2\">model<th colspan=\"2\">now<th colspan=\"2\">time to first token\
         <th>one request<th colspan=\"4\">since the start</tr>\n\
         <tr><th>in flight<th>tokens/s<th>p50<th>p99<th>tokens/s p50\
         <th>output tokens<th>exchanges<th>errors<th>aborts</tr></thead><tbody>\n",
    )?;
    for (index, model) in models.iter().enumerate() {
        let speed = speeds.get(index).copied().flatten();
        writeln!(
            out,
            "<tr><td><bdi>{}</bdi><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            Escaped(&model.name),
            model.in_flight,
            Rate(speed),
            Seconds(model.first_token_p50_s),
            Seconds(model.first_token_p99_s),
            Rate(model.request_rate_p50),
            Grouped(model.output_tokens),
            Grouped(model.exchanges),
            Grouped(model.errors),
            Grouped(model.aborts),
        )?;
    }
    out.write_str("</tbody></table>\n")
}

fn write_spend(out: &mut String, spend: &Spend) -> fmt::Result {
    out.write_str("<h2>Spent today, in UTC")?;
    if let Some(since) = &spend.since {
        write!(out, ", since {}, when this process started", Escaped(since))?;
    }
    let separator = if spend.currency.is_empty() { "" } else { ", " };
    let currency = Escaped(&spend.currency);
    write!(
        out,
        "</h2>\n<table class=\"numbers\"><thead>\
         <tr><th>tenant<th>cost{separator}{currency}<th>exchanges<th>without a price</tr></thead><tbody>\n",
    )?;
    for Tenant { name, cost, exchanges, unpriced } in
        spend.tenants.iter().chain(&spend.rest).chain([&spend.all])
    {
        writeln!(
            out,
            "<tr><td><bdi>{}</bdi><td>{}<td>{}<td>{}</tr>",
            Escaped(name),
            Escaped(cost),
            Grouped(*exchanges),
            Grouped(*unpriced),
        )?;
    }
    out.write_str("</tbody></table>\n")
}

fn write_provenances(out: &mut String, provenances: &[(&'static str, u64)]) -> fmt::Result {
    let total: u64 = provenances.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return Ok(());
    }
    out.write_str("<h2>Provenance of output tokens</h2>\n<p>")?;
    let seen = provenances.iter().filter(|(_, count)| *count > 0);
    for (index, (name, count)) in seen.enumerate() {
        let separator = if index == 0 { "" } else { " · " };
        write!(out, "{separator}{} {:.1} %", Escaped(name), *count as f64 * 100.0 / total as f64)?;
    }
    out.write_str("</p>\n")
}

/// Untrusted text, escaped for content and quoted attributes. Control characters become U+FFFD.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                character if character.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// `3 d 4 h`, `4 h 5 min`, `5 min 6 s` or `6 s`.
struct Uptime(u64);

impl Display for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, hours, minutes, seconds) =
            (self.0 / 86_400, self.0 / 3600 % 24, self.0 / 60 % 60, self.0 % 60);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(f, "{seconds} s"),
            (0, 0, _) => write!(f, "{minutes} min {seconds} s"),
            (0, _, _) => write!(f, "{hours} h {minutes} min"),
            _ => write!(f, "{days} d {hours} h"),
        }
    }
}

/// A count with grouped thousands.
struct Grouped(u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                // U+202F is narrow and prevents a line break.
                f.write_char('\u{202f}')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// A duration in a readable unit.
struct Seconds(Option<f64>);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) if seconds < 0.01 => write!(f, "{:.1} ms", seconds * 1e3),
            Some(seconds) if seconds < 1.0 => write!(f, "{:.0} ms", seconds * 1e3),
            Some(seconds) => write!(f, "{seconds:.2} s"),
            None => f.write_str("–"),
        }
    }
}

/// Tokens per second.
struct Rate(Option<f64>);

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) if rate < 100.0 => write!(f, "{rate:.1}"),
            Some(rate) => write!(f, "{rate:.0}"),
            None => f.write_str("–"),
        }
    }
}

const STYLE: &str = ":root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}\
body{max-width:64rem;margin:1.5rem auto;padding:0 1rem}\
header{display:flex;gap:1rem;align-items:baseline;flex-wrap:wrap}\
h1{font-size:1.4rem;margin:0}h2{font-size:1rem;margin:1.5rem 0 .3rem}p{margin:.3rem 0}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #8884}\
th{font-weight:500;opacity:.75}.numbers{font-variant-numeric:tabular-nums}\
.numbers td,.numbers th{text-align:right}.numbers td:first-child,.numbers [rowspan]{text-align:left}\
.state{padding:.3rem .6rem;border-left:4px solid;font-weight:500}\
.ok{color:light-dark(#176b2c,#6fd58a)}.bad{color:light-dark(#a3201d,#ff8e86)}";

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
