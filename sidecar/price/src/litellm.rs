//! Converts LiteLLM's price map into a price file. Numbers are parsed from the JSON's text without
//! floats. Everything that is not imported is listed in the result.

mod field;
mod map;
mod write;

use std::collections::BTreeMap;

use crate::amount::{self, NumberError, Parts};
use crate::charge::Pico;
use crate::currency::Currency;
use crate::prices::Factor;

use field::{Field, TIERED};
use map::{Object, Value};

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The file's version; by default derived from the map's hash.
    pub version: Option<String>,
    /// The currency of the map's prices; LiteLLM's own are in US dollars.
    pub currency: Currency,
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// The price file.
    pub file: String,
    /// Number of models in the file.
    pub models: usize,
    /// Number of models without an imported price: they have none that is charged here, or only prices of 0 beside a
    /// fee for something else, such as queries.
    pub without_price: usize,
    /// Prices that were rounded to whole pico-units.
    pub rounded: Vec<Rounded>,
    /// Price fields that are never charged here, each with the number of models that have it and one of them.
    pub uncharged: BTreeMap<String, (usize, String)>,
    /// Models with prices of 0 only.
    pub free: Vec<String>,
    /// Other parts of the map that were not imported, each with the reason.
    pub skipped: Vec<String>,
}

/// A price that was rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The model.
    pub model: String,
    /// LiteLLM's field.
    pub field: String,
    /// The number as written.
    pub written: String,
    /// The imported price, in pico-units for one token.
    pub taken: Pico,
}

/// The prices of one tier, by key: those of any length, and those above a prompt length.
#[derive(Clone, Debug, Default)]
struct Sheet {
    own: BTreeMap<usize, Pico>,
    contexts: BTreeMap<u64, BTreeMap<usize, Pico>>,
    /// The factor of the standard prices, in place of prices.
    multiply: Option<String>,
}

/// A model's prices by tier; the standard one is "".
type Tiers = BTreeMap<&'static str, Sheet>;

/// Imports the text of a price map.
pub fn import(json: &str, options: &ImportOptions) -> Result<Import, String> {
    let models = map::read(json)?;
    let mut import = Import {
        file: String::new(),
        models: 0,
        without_price: 0,
        rounded: Vec::new(),
        uncharged: BTreeMap::new(),
        free: Vec::new(),
        skipped: Vec::new(),
    };
    let mut entries = BTreeMap::new();
    for (name, value) in &models {
        // The map's own explanation of its fields.
        if name == "sample_spec" {
            continue;
        }
        let Value::Object(fields) = value else {
            import.skipped.push(format!("{name:?} is not a model: it has no fields"));
            continue;
        };
        if name.is_empty()
            || name.trim() != name
            || name.len() > MAX_NAME_BYTES
            || name.chars().any(char::is_control)
        {
            import.skipped.push(format!("{name:?} is left out: a price file cannot hold such a name"));
            continue;
        }
        let tiers = import.tiers(name, fields);
        // A model that is paid by the query has token prices of 0: importing them would make it free.
        if tiers.is_empty() || (is_free(&tiers) && costs(fields)) {
            import.without_price += 1;
            continue;
        }
        if entries.insert(name.as_str(), (tiers, provider(fields))).is_some() {
            import.skipped.push(format!("{name:?} is in the map twice; the last is used"));
        }
    }
    import.free =
        entries.iter().filter(|(_, (tiers, _))| is_free(tiers)).map(|(name, _)| (*name).to_owned()).collect();
    import.models = entries.len();
    let version = options.version.clone().unwrap_or_else(|| {
        let hash = blake3::hash(json.as_bytes()).to_hex();
        format!("litellm-{}", &hash[..VERSION_DIGITS])
    });
    import.file = write::file(&version, options.currency, &entries);
    Ok(import)
}

/// Maximum length of a model's name.
const MAX_NAME_BYTES: usize = 512;

/// Number of hexadecimal digits of the map's hash in a derived version.
const VERSION_DIGITS: usize = 12;

fn is_free(tiers: &Tiers) -> bool {
    tiers.values().flat_map(Sheet::prices).all(|price| *price == 0)
}

/// Returns whether any field of a model costs more than 0, charged here or not.
fn costs(fields: &Object) -> bool {
    fields.iter().any(|(name, value)| match value {
        Value::List(ranges) if name == TIERED => {
            ranges.iter().any(|range| matches!(range, Value::Object(fields) if costs(fields)))
        }
        _ => field::is_cost(name) && value.is_above_zero(),
    })
}

/// Returns the tiers whose prices are a multiple of the standard ones, each with its factor.
fn factors(value: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    let members = match value {
        Value::Object(members) => &members[..],
        _ => &[],
    };
    members.iter().filter_map(|(name, value)| {
        let tier = field::FACTOR_TIERS.into_iter().find(|tier| tier == name)?;
        match value {
            Value::Number(text) if Factor::read(text).is_some() => Some((tier, text.as_str())),
            _ => None,
        }
    })
}

fn provider(fields: &Object) -> Option<String> {
    let found = fields.iter().find(|(key, _)| key == "litellm_provider");
    match found {
        Some((_, Value::Text(name))) => Some(name.chars().filter(|c| c.is_ascii_graphic()).collect()),
        _ => None,
    }
}

impl Sheet {
    fn prices(&self) -> impl Iterator<Item = &Pico> {
        self.own.values().chain(self.contexts.values().flat_map(BTreeMap::values))
    }

    fn at(&mut self, above: u64) -> &mut BTreeMap<usize, Pico> {
        match above {
            0 => &mut self.own,
            _ => self.contexts.entry(above).or_default(),
        }
    }
}

impl Import {
    fn tiers(&mut self, model: &str, fields: &Object) -> Tiers {
        let mut tiers = Tiers::new();
        for (name, value) in fields {
            if name == TIERED || name == field::FACTORS && factors(value).next().is_some() {
                continue;
            }
            match Field::read(name) {
                Some(field)
                    if field.is_fallback && fields.iter().any(|(other, _)| other == field::CACHE_READ) => {}
                Some(field) => {
                    if let Some(price) = self.price(model, name, value) {
                        tiers.entry(field.tier).or_default().at(field.above).insert(field.key, price);
                    }
                }
                None if field::is_price(name) => self.count_uncharged(model, name),
                None => {}
            }
        }
        // Prices by range override the flat ones.
        if let Some((_, ranges)) = fields.iter().find(|(name, _)| name == TIERED) {
            self.ranges(model, ranges, tiers.entry("").or_default());
        }
        tiers.retain(|_, sheet| sheet.prices().next().is_some());
        let has_standard = tiers.contains_key("");
        let entries = fields.iter().filter(|(name, _)| has_standard && name == field::FACTORS);
        for (tier, factor) in entries.flat_map(|(_, value)| factors(value)) {
            tiers
                .entry(tier)
                .or_insert_with(|| Sheet { multiply: Some(factor.to_owned()), ..Sheet::default() });
        }
        tiers
    }

    /// Imports `tiered_pricing`: a list of prices, each for prompts of more tokens than its range begins with.
    fn ranges(&mut self, model: &str, ranges: &Value, sheet: &mut Sheet) {
        let Value::List(ranges) = ranges else {
            self.skipped.push(format!("{model:?}: {TIERED} is not a list"));
            return;
        };
        for range in ranges {
            let Value::Object(fields) = range else {
                self.skipped.push(format!("{model:?}: a range of {TIERED} has no fields"));
                continue;
            };
            let bounds = fields.iter().find(|(name, _)| name == "range").map(|(_, value)| value);
            let above = match bounds {
                Some(Value::List(bounds)) => bounds.first().and_then(whole),
                _ => None,
            };
            for (name, value) in fields {
                match (Field::read(name), above) {
                    (Some(field), Some(above)) if field.tier.is_empty() && field.above == 0 => {
                        if let Some(price) = self.price(model, name, value) {
                            sheet.at(above).insert(field.key, price);
                        }
                    }
                    _ if field::is_price(name) => self.count_uncharged(model, &format!("{TIERED}: {name}")),
                    _ => {}
                }
            }
        }
    }

    fn count_uncharged(&mut self, model: &str, field: &str) {
        let (models, _) = self.uncharged.entry(field.to_owned()).or_insert_with(|| (0, model.to_owned()));
        *models += 1;
    }

    fn price(&mut self, model: &str, field: &str, value: &Value) -> Option<Pico> {
        let text = match value {
            Value::Number(text) | Value::Text(text) => text,
            Value::Null => return None,
            Value::List(_) | Value::Object(_) | Value::Bool => {
                self.skipped.push(format!("{model:?}: {field} is not a number"));
                return None;
            }
        };
        let reason = match amount::parts(text, PICO_PLACES) {
            Ok(Parts { whole, .. }) if whole < 0 => "is below 0",
            Ok(Parts { whole, .. }) if whole > MAX_PRICE_PICO => "is more than one unit",
            Ok(Parts { whole: 0, exact: false }) => "is below the smallest price",
            Ok(Parts { whole, exact }) => {
                let taken = Pico::try_from(whole).ok()?;
                if !exact {
                    let (model, field, written) = (model.to_owned(), field.to_owned(), text.clone());
                    self.rounded.push(Rounded { model, field, written, taken });
                }
                return Some(taken);
            }
            Err(NumberError::Malformed) => "is not a number",
            Err(NumberError::TooLarge) => "is too large",
        };
        self.skipped.push(format!("{model:?}: {field}: {text:?} {reason}"));
        None
    }
}

/// Reads a whole number of tokens.
fn whole(value: &Value) -> Option<u64> {
    let Value::Number(text) = value else { return None };
    let Parts { whole, exact } = amount::parts(text, 0).ok()?;
    u64::try_from(whole).ok().filter(|tokens| exact && *tokens <= MAX_PROMPT_TOKENS)
}

/// Decimal places of a pico-unit; prices in the map are for one token.
const PICO_PLACES: i32 = 12;

/// The highest plausible price of a token or request: one unit, in pico-units.
const MAX_PRICE_PICO: i128 = 1_000_000_000_000;

/// The longest prompt length that a price file accepts.
const MAX_PROMPT_TOKENS: u64 = 1_000_000_000;
