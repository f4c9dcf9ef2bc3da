//! A record as plain stable text, one fact a line, compared with a committed file. `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use meter::{Record, TokenType};
use scan::Sampling;

/// The facts of a record without its times, which differ with the slices of a body.
pub fn text(record: &Record) -> String {
    let mut text = String::new();
    let mut line = |fact: &str, value: &dyn std::fmt::Display| {
        writeln!(text, "{fact}: {value}").expect("a string takes everything");
    };
    line("dialect", &record.identity.dialect.name());
    line("model", &record.identity.model);
    line("response model", &record.identity.response_model.as_deref().unwrap_or("none"));
    line("response id", &record.identity.response_id.as_deref().unwrap_or("none"));
    line("status", &record.status);
    line("streamed", &record.streamed);
    line("ending", &record.ending.name());
    line("answers", &record.answers);
    line("choices", &record.choices);
    let known = record.finishes.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    line("finishes", &format_args!("{:?}", &record.finishes[..known]));
    for (name, said) in drawn(&record.sampling) {
        line(&format!("  {name}"), &said);
    }
    line("input", &format_args!("{} {}", record.tokens.input(), record.tokens.input_provenance.name()));
    line("output", &format_args!("{} {}", record.tokens.output(), record.tokens.output_provenance.name()));
    for kind in TokenType::ALL {
        line(&format!("  {}", kind.name()), &record.tokens.of(kind));
    }
    line("visible characters", &record.visible_chars);
    line("refused counts", &record.usage_rejected);
    let timing = &record.timing;
    let seen = |tick: Option<u64>| if tick.is_some() { "seen" } else { "none" };
    line("first byte", &seen(timing.first_byte_ns));
    line("first token", &seen(timing.first_token_ns));
    line("first visible", &seen(timing.first_visible_ns));
    line("first tool", &seen(timing.first_tool_ns));
    line("weight", &timing.weight.name());
    let pace = timing.pace();
    line("inter-token gaps", &pace.inter_token.buckets.iter().sum::<u64>());
    line("chunk gaps", &pace.chunk_gap.buckets.iter().sum::<u64>());
    line("positions", &format_args!("{:?}", pace.position.map(|span| span.tokens)));
    text
}

/// The sampling parameters of the request.
fn drawn(sampling: &Sampling) -> impl Iterator<Item = (&'static str, String)> {
    let float = |number: Option<f64>| number.map(|number| number.to_string());
    [
        ("max tokens", sampling.max_tokens.map(|number| number.to_string())),
        ("temperature", float(sampling.temperature)),
        ("top p", float(sampling.top_p)),
        ("top k", float(sampling.top_k)),
        ("seed", sampling.seed.map(|number| number.to_string())),
        ("frequency penalty", float(sampling.frequency_penalty)),
        ("presence penalty", float(sampling.presence_penalty)),
    ]
    .into_iter()
    .filter_map(|(name, said)| Some((name, said?)))
}

/// Compares `text` with the file at `path`, or writes it there if `UPDATE_GOLDEN` is set.
pub fn compare(path: &Path, text: &str) -> Result<(), String> {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let golden = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if golden == text {
        return Ok(());
    }
    let changed = golden.lines().zip(text.lines()).filter(|(old, new)| old != new);
    let changed: Vec<String> = changed.map(|(old, new)| format!("  {old}  ->  {new}")).collect();
    Err(format!("{}:\n{}", path.display(), changed.join("\n")))
}
