//! Reads a price file's text into drafts of its entries, or into all errors of the file: reading
//! continues after an error.

mod sheet;
mod tenants;

use std::sync::Arc;

use crate::currency::Currency;
use crate::entry::{About, Models};
use crate::instant;
use crate::prices::{PRICE_KEYS, Prices};
use crate::tenant_terms::TenantTerms;
use crate::warning::{Warning, WarningKind};
use origin::fields::{self, Fields};
use origin::file::{self, Node, Shape};
use origin::{Diagnostic, Origin};
use text::quoted;

/// The content of a price file.
pub(crate) struct PriceFile {
    pub(crate) version: Arc<str>,
    pub(crate) currency: Currency,
    pub(crate) tenants: TenantTerms,
    pub(crate) response_models: Option<Vec<Arc<str>>>,
    pub(crate) drafts: Vec<Draft>,
}

/// An entry as the file has it, before entries are compared.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) origin: Origin,
    pub(crate) models: Models,
    pub(crate) aliases: Vec<Arc<str>>,
    pub(crate) provider: Option<Arc<str>>,
    pub(crate) upstream: Option<Arc<str>>,
    pub(crate) about: About,
    pub(crate) from_us: i64,
    pub(crate) until_us: Option<i64>,
    /// Prices by tier, the standard one first, then by context length, ascending.
    pub(crate) sheets: Vec<Sheet>,
    /// Prices of several tiers together, in the same order.
    pub(crate) combined: Vec<Sheet>,
}

/// The prices of one tier for prompts of more than `above` tokens.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) tier: Arc<str>,
    pub(crate) above: u64,
    pub(crate) prices: Prices,
    /// The prices by each factor of the tenants' terms.
    pub(crate) by_factor: Vec<Prices>,
}

/// Reads the text of the price file at `path`.
pub(crate) fn read(path: &str, text: &str) -> Result<(PriceFile, Vec<Warning>), Vec<Diagnostic>> {
    let tree = file::parse(path, text).map_err(|error| vec![error])?;
    let mut reader = Reader { unit: Unit::PerMillion, errors: Vec::new(), warnings: Vec::new() };
    let file = reader.book(tree);
    match file {
        Some(file) if reader.errors.is_empty() => Ok((file, reader.warnings)),
        _ => {
            reader.errors.sort_by_key(|error| error.line);
            Err(reader.errors)
        }
    }
}

/// Reads the tree and collects errors and warnings.
struct Reader {
    unit: Unit,
    errors: Vec<Diagnostic>,
    warnings: Vec<Warning>,
}

/// The unit of token prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    PerMillion,
    PerToken,
}

const TOP_KEYS: &[&str] = &["version", "currency", "unit", "tenants", RESPONSE_MODELS, "models"];

/// The key of the providers and upstreams whose responses name the model that is charged.
const RESPONSE_MODELS: &str = "charge_response_model";

/// The keys of an entry other than [`PRICE_KEYS`].
const ENTRY_KEYS: &[&str] = &[
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
    "image",
];

impl Reader {
    fn error(&mut self, origin: &Origin, message: impl Into<String>, remedy: impl Into<String>) {
        self.errors.push(Diagnostic::at(origin, message, remedy));
    }

    fn warn(&mut self, origin: &Origin, kind: WarningKind, message: impl Into<String>) {
        self.warnings.push(Warning { line: origin.line(), kind, message: message.into() });
    }

    fn book(&mut self, tree: Node) -> Option<PriceFile> {
        let mut top = Fields::read(tree, "a price file", TOP_KEYS, &mut self.errors)?;
        let version = top.required("version", "name it, as in `version: 2026-11`", &mut self.errors);
        let version = version.and_then(|node| self.short_text(&node, "version"));
        let remedy = "write its ISO 4217 code, as in `currency: USD`";
        let currency = top.required("currency", remedy, &mut self.errors);
        let currency = currency.and_then(|node| self.currency(&node));
        if let Some(node) = top.get("unit") {
            match self.short_text(node, "unit").as_deref() {
                Some("per_million") => {}
                Some("per_token") => self.unit = Unit::PerToken,
                Some(other) => {
                    let message = format!("`{}` is not a unit", quoted(other));
                    self.error(&node.origin, message, "write per_million (tokens, the default) or per_token");
                }
                None => {}
            }
        }
        let models = top.required("models", "list the models' prices under it", &mut self.errors)?;
        let Shape::List(entries) = models.shape else {
            self.error(&models.origin, "`models` is not a list", "begin each model's entry with `- name:`");
            return None;
        };
        if entries.is_empty() {
            self.warn(
                &models.origin,
                WarningKind::Empty,
                "`models` has no entry: every exchange is unpriced",
            );
        }
        let mut drafts: Vec<Draft> = entries.into_iter().filter_map(|entry| self.entry(entry)).collect();
        let tenants = self.tenants(&mut top, &mut drafts);
        let response_models = top.get(RESPONSE_MODELS).map(|node| self.short_texts(node, RESPONSE_MODELS));
        Some(PriceFile { version: version?, currency: currency?, tenants, response_models, drafts })
    }

    fn entry(&mut self, node: Node) -> Option<Draft> {
        let before = self.errors.len();
        let known = [ENTRY_KEYS, &PRICE_KEYS].concat();
        let mut fields = Fields::read(node, "an entry of `models`", &known, &mut self.errors)?;
        let models = self.models(&fields);
        let mut aliases = self.aliases(&fields);
        if let Some(Models::Name(name)) = &models {
            aliases.retain(|alias| alias != name);
        }
        if let (Some(Models::Pattern(_)), Some(node)) = (&models, fields.get("aliases")) {
            let message = "a pattern has no aliases";
            self.error(&node.origin, message, "give them an entry with a `name`, or widen the pattern");
        }
        let mut short_text = |key: &str| fields.get(key).and_then(|node| self.short_text(node, key));
        let (provider, upstream) = (short_text("provider"), short_text("upstream"));
        let about = About {
            developer: short_text("developer"),
            family: short_text("family"),
            version: short_text("model_version"),
        };
        let from_us = fields.get("valid_from").map(|node| self.instant(node, "valid_from"));
        let until =
            fields.get("valid_until").map(|node| (node.origin.clone(), self.instant(node, "valid_until")));
        let from_us = from_us.map_or(Some(i64::MIN), |from| from);
        if let (Some(from), Some((origin, Some(until)))) = (from_us, &until)
            && *until <= from
        {
            self.error(origin, "`valid_until` is before `valid_from`", "write a later `valid_until`");
        }
        let title = models.as_ref().map_or("", |models| models.text());
        let origin = fields.origin.clone();
        let (sheets, combined) = self.sheets(&mut fields, title);
        let priced = sheets.iter().any(|sheet| sheet.prices != Prices::default());
        // A price that could not be read has its own error.
        if !priced && self.errors.len() == before {
            let message = format!("`{}` has no price", quoted(title));
            self.error(&origin, message, "write its `input` and `output`; write 0 for what is free");
        }
        let until_us = match until {
            Some((_, until)) => Some(until?),
            None => None,
        };
        Some(Draft {
            origin,
            models: models?,
            aliases,
            provider,
            upstream,
            about,
            from_us: from_us?,
            until_us,
            sheets,
            combined,
        })
    }

    fn models(&mut self, fields: &Fields) -> Option<Models> {
        match (fields.get("name"), fields.get("pattern")) {
            (Some(name), None) => self.short_text(name, "name").map(Models::Name),
            (None, Some(pattern)) => self.short_text(pattern, "pattern").map(Models::Pattern),
            (Some(_), Some(pattern)) => {
                let message = "an entry is for one `name` or for one `pattern`, not both";
                self.error(&pattern.origin, message, "split it into two entries");
                None
            }
            // The name is probably under the misspelled key that was just reported.
            (None, None) if fields.has_unknown => None,
            (None, None) => {
                let message = "the entry has no model";
                self.error(&fields.origin, message, "write its `name`, or a `pattern` such as `gpt-4o-*`");
                None
            }
        }
    }

    fn aliases(&mut self, fields: &Fields) -> Vec<Arc<str>> {
        fields.get("aliases").map(|node| self.short_texts(node, "aliases")).unwrap_or_default()
    }

    /// Reads a list of short texts, and sorts them.
    fn short_texts(&mut self, node: &Node, key: &str) -> Vec<Arc<str>> {
        let Shape::List(items) = &node.shape else {
            let remedy = format!("write it as in `{key}: [NAME, NAME]`");
            self.error(&node.origin, format!("`{key}` is not a list"), remedy);
            return Vec::new();
        };
        let mut texts: Vec<Arc<str>> = items.iter().filter_map(|item| self.short_text(item, key)).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    fn instant(&mut self, node: &Node, key: &str) -> Option<i64> {
        let text = self.short_text(node, key)?;
        let instant = instant::read(&text);
        if instant.is_none() {
            let message = format!("`{key}`: `{}` is neither a date nor a date and time", quoted(&text));
            self.error(
                &node.origin,
                message,
                "write it as in 2026-11-01 (midnight, UTC) or 2026-11-01T09:00:00+01:00",
            );
        }
        instant
    }

    fn currency(&mut self, node: &Node) -> Option<Currency> {
        let text = self.short_text(node, "currency")?;
        let code = <[u8; 3]>::try_from(text.as_bytes()).ok().map(Currency);
        match code.filter(Currency::is_known) {
            Some(currency) => Some(currency),
            None => {
                let message = format!("`{}` is not the ISO 4217 code of a currency", quoted(&text));
                self.error(
                    &node.origin,
                    message,
                    "write its three upper-case letters, as in USD, EUR or JPY",
                );
                None
            }
        }
    }

    /// Reads a value that is one short text.
    fn short_text(&mut self, node: &Node, key: &str) -> Option<Arc<str>> {
        match &node.shape {
            Shape::Scalar(text)
                if !text.is_empty()
                    && text.trim() == text
                    && text.len() <= MAX_NAME_BYTES
                    && !text.chars().any(char::is_control) =>
            {
                Some(text.as_str().into())
            }
            Shape::Scalar(text) => {
                let message = format!("`{key}`: `{}` is not a valid text", quoted(text));
                let remedy =
                    format!("write 1 to {MAX_NAME_BYTES} bytes without line breaks or spaces around them");
                self.error(&node.origin, message, remedy);
                None
            }
            _ => fields::scalar(key, node.clone(), &mut self.errors).map(|(text, _)| text.into()),
        }
    }
}

/// Maximum length of a name.
const MAX_NAME_BYTES: usize = 512;
