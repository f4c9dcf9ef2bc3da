//! A price file's text into drafts of its entries, or into everything that is wrong with it. A mistake
//! never ends the reading: what follows is looked at too.

mod fields;
mod sheet;

use std::sync::Arc;

use crate::currency::Currency;
use crate::entry::{About, Models};
use crate::instant;
use crate::mistake::{Doubt, Problem, Warning};
use crate::prices::Prices;
use yaml::{Node, Shape};

use fields::Fields;

/// All that a file says.
pub(crate) struct Said {
    pub(crate) version: Arc<str>,
    pub(crate) currency: Currency,
    pub(crate) drafts: Vec<Draft>,
}

/// An entry as the file has it.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) line: u64,
    pub(crate) models: Models,
    pub(crate) aliases: Vec<Arc<str>>,
    pub(crate) provider: Option<Arc<str>>,
    pub(crate) upstream: Option<Arc<str>>,
    pub(crate) about: About,
    pub(crate) from_us: i64,
    pub(crate) until_us: Option<i64>,
    /// By tier, the ordinary one first, and by context length, ascending.
    pub(crate) sheets: Vec<Sheet>,
}

/// The prices that hold in one tier for prompts of more than so many tokens.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) tier: Arc<str>,
    pub(crate) above: u64,
    pub(crate) prices: Prices,
}

/// Reads the text of a price file.
pub(crate) fn read(text: &str) -> Result<(Said, Vec<Warning>), Vec<Problem>> {
    let tree = yaml::read(text).map_err(|problem| vec![problem])?;
    let mut reader = Reader { unit: Unit::PerMillion, problems: Vec::new(), warnings: Vec::new() };
    let said = reader.book(&tree);
    match said {
        Some(said) if reader.problems.is_empty() => Ok((said, reader.warnings)),
        _ => {
            reader.problems.sort_by_key(|problem| problem.line);
            Err(reader.problems)
        }
    }
}

/// Collects what is wrong while it reads.
struct Reader {
    unit: Unit,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

/// What the prices of tokens are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    PerMillion,
    PerToken,
}

const TOP: &[&str] = &["version", "currency", "unit", "models"];

const ENTRY: &[&str] = &[
    "name",
    "pattern",
    "aliases",
    "provider",
    "upstream",
    "valid_from",
    "valid_until",
    "developer",
    "family",
    "model_version",
    "note",
    "tiers",
    "context_tiers",
    "input",
    "cached_input",
    "cache_write",
    "input_audio",
    "input_image",
    "input_video",
    "output",
    "reasoning",
    "output_audio",
    "output_image",
    "output_video",
    "image",
    "per_request",
];

impl Reader {
    fn problem(&mut self, line: u64, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem { line, what: what.into(), remedy: remedy.into() });
    }

    fn warn(&mut self, line: u64, kind: Doubt, what: impl Into<String>) {
        self.warnings.push(Warning { line, kind, what: what.into() });
    }

    fn book(&mut self, tree: &Node) -> Option<Said> {
        let top = self.fields(tree, "a price file", TOP)?;
        let version = match self.required(&top, tree, "version", "name it, as in `version: 2026-11`") {
            Some(node) => self.word(node, "version"),
            None => None,
        };
        let currency =
            match self.required(&top, tree, "currency", "write its ISO 4217 code, as in `currency: USD`") {
                Some(node) => self.currency(node),
                None => None,
            };
        if let Some(node) = top.get("unit") {
            match self.word(node, "unit").as_deref() {
                Some("per_million") => {}
                Some("per_token") => self.unit = Unit::PerToken,
                Some(other) => {
                    let what = format!("`{}` is no unit", shown(other));
                    self.problem(node.line, what, "write per_million (tokens, the default) or per_token");
                }
                None => {}
            }
        }
        let models = self.required(&top, tree, "models", "list the models' prices under it")?;
        let Shape::List(entries) = &models.shape else {
            self.problem(models.line, "`models` is not a list", "begin each model's entry with `- name:`");
            return None;
        };
        if entries.is_empty() {
            self.warn(models.line, Doubt::Empty, "`models` has no entry: every exchange is unpriced");
        }
        let drafts = entries.iter().filter_map(|entry| self.entry(entry)).collect();
        Some(Said { version: version?, currency: currency?, drafts })
    }

    fn entry(&mut self, node: &Node) -> Option<Draft> {
        let before = self.problems.len();
        let fields = self.fields(node, "an entry of `models`", ENTRY)?;
        let models =
            match self.problems.len() == before || fields.get("name").or(fields.get("pattern")).is_some() {
                true => self.models(node, &fields),
                // Probably it is said under a key that is spelled wrong.
                false => None,
            };
        let mut aliases = self.aliases(&fields);
        if let Some(Models::Named(name)) = &models {
            aliases.retain(|alias| alias != name);
        }
        if let (Some(Models::Fitting(_)), Some(node)) = (&models, fields.get("aliases")) {
            let what = "a pattern has no aliases";
            self.problem(node.line, what, "give them an entry with a `name`, or widen the pattern");
        }
        let mut word = |key: &str| fields.get(key).and_then(|node| self.word(node, key));
        let (provider, upstream) = (word("provider"), word("upstream"));
        let about =
            About { developer: word("developer"), family: word("family"), version: word("model_version") };
        let from_us = fields.get("valid_from").map(|node| self.instant(node, "valid_from"));
        let until = fields.get("valid_until").map(|node| (node.line, self.instant(node, "valid_until")));
        let from_us = from_us.map_or(Some(i64::MIN), |from| from);
        if let (Some(from), Some((line, Some(until)))) = (from_us, until)
            && until <= from
        {
            self.problem(line, "it ends before it begins", "write a `valid_until` after `valid_from`");
        }
        let title = models.as_ref().map_or("", |models| models.text());
        let sheets = self.sheets(node, &fields, title);
        let priced = sheets.iter().any(|sheet| sheet.prices != Prices::default());
        // Of a price that could not be read, enough has been said.
        if !priced && self.problems.len() == before {
            let what = format!("`{}` has no price", shown(title));
            self.problem(node.line, what, "write its `input` and `output`; what is free has the price 0");
        }
        let until_us = match until {
            Some((_, until)) => Some(until?),
            None => None,
        };
        Some(Draft {
            line: node.line,
            models: models?,
            aliases,
            provider,
            upstream,
            about,
            from_us: from_us?,
            until_us,
            sheets,
        })
    }

    fn models(&mut self, node: &Node, fields: &Fields<'_>) -> Option<Models> {
        match (fields.get("name"), fields.get("pattern")) {
            (Some(name), None) => self.word(name, "name").map(Models::Named),
            (None, Some(pattern)) => self.word(pattern, "pattern").map(Models::Fitting),
            (Some(_), Some(pattern)) => {
                let what = "an entry is for one `name` or for one `pattern`, not both";
                self.problem(pattern.line, what, "make two entries of it");
                None
            }
            (None, None) => {
                let what = "it is not said for which model this is";
                self.problem(node.line, what, "write its `name`, or a `pattern` such as `gpt-4o-*`");
                None
            }
        }
    }

    fn aliases(&mut self, fields: &Fields<'_>) -> Vec<Arc<str>> {
        let Some(node) = fields.get("aliases") else { return Vec::new() };
        let Shape::List(items) = &node.shape else {
            self.problem(node.line, "`aliases` is not a list", "write it as in `aliases: [gpt-4o-latest]`");
            return Vec::new();
        };
        let mut aliases: Vec<Arc<str>> = items.iter().filter_map(|item| self.word(item, "aliases")).collect();
        aliases.sort();
        aliases.dedup();
        aliases
    }

    fn instant(&mut self, node: &Node, key: &str) -> Option<i64> {
        let text = self.word(node, key)?;
        let instant = instant::read(&text);
        if instant.is_none() {
            let what = format!("`{key}`: `{}` is neither a date nor a date and time", shown(&text));
            self.problem(
                node.line,
                what,
                "write it as in 2026-11-01 (midnight, UTC) or 2026-11-01T09:00:00+01:00",
            );
        }
        instant
    }

    fn currency(&mut self, node: &Node) -> Option<Currency> {
        let text = self.word(node, "currency")?;
        let code = <[u8; 3]>::try_from(text.as_bytes()).ok().map(Currency);
        match code.filter(Currency::is_known) {
            Some(currency) => Some(currency),
            None => {
                let what = format!("`{}` is no currency's ISO 4217 code", shown(&text));
                self.problem(node.line, what, "write its three capital letters, as in USD, EUR or JPY");
                None
            }
        }
    }

    /// A value that is one short text.
    fn word(&mut self, node: &Node, key: &str) -> Option<Arc<str>> {
        match &node.shape {
            Shape::Scalar(text)
                if !text.is_empty()
                    && text.trim() == text
                    && text.len() <= LONGEST
                    && !text.chars().any(char::is_control) =>
            {
                Some(text.as_str().into())
            }
            Shape::Scalar(text) => {
                let what = format!("`{key}`: `{}` will not do", shown(text));
                let remedy = format!("write 1 to {LONGEST} bytes without line breaks or spaces around them");
                self.problem(node.line, what, remedy);
                None
            }
            Shape::Nothing => {
                self.problem(
                    node.line,
                    format!("`{key}` says nothing"),
                    "write its value behind it, or take it out",
                );
                None
            }
            Shape::List(_) | Shape::Map(_) => {
                self.problem(node.line, format!("`{key}` is not one value"), "write one text behind it");
                None
            }
        }
    }
}

/// Bytes of a name.
const LONGEST: usize = 512;

/// What was written, short enough and harmless to show.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Characters of what was written that a message repeats.
const SHOWN: usize = 80;
