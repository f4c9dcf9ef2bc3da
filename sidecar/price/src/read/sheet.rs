//! The prices of an entry. Later layers override earlier ones: the entry's own prices, the tier's, the
//! entry's for the context length, the tier's for it. So a tier without a price for long prompts has the
//! entry's price for long prompts, never its own for short ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::amount::{self, NumberError, Parts};
use crate::charge::Pico;
use crate::entry::{JOINT, STANDARD};
use crate::prices::{Factor, KEYS, PER_REQUEST, PRICE_KEYS, Prices, TYPES, key_of};
use crate::warning::WarningKind;
use meter::TokenType;
use origin::Origin;
use origin::fields::Fields;
use origin::file::{Node, Shape};
use text::{Decimal, money, nearest, per_million, quoted};

use super::{Reader, Sheet, Unit};

/// Tiers of the known providers, for spelling hints; other names are accepted too.
const KNOWN_TIERS: &[&str] = &["batch", "priority", "flex", "scale", "fast", "balanced"];

/// The keys of a context tier other than [`PRICE_KEYS`].
const CONTEXT_KEYS: &[&str] = &["above_input_tokens"];

/// The keys of a tier other than [`PRICE_KEYS`].
const TIER_KEYS: &[&str] = &["multiply", "context_tiers"];

/// Prices of one place: those of any length, and those above a context length.
struct Layers {
    origin: Origin,
    own: Prices,
    contexts: BTreeMap<u64, (Origin, Prices)>,
}

enum Tier {
    Multiplied(Origin, Factor),
    Named(Box<Layers>),
}

impl Reader {
    /// Returns the prices of an entry, resolved for each tier and context length, and those of tiers together.
    pub(super) fn sheets(&mut self, fields: &mut Fields, title: &str) -> (Vec<Sheet>, Vec<Sheet>) {
        let entry = self.layers(fields);
        if let Some(image) = fields.get("image") {
            let _ = self.price(image, "image");
            let message = format!(
                "`{title}`: images are not counted, their tokens are (`input_image`, `output_image`), so this \
                 price is never charged"
            );
            self.warn(&image.origin, WarningKind::NeverCharged, message);
        }
        let tiers = self.tiers(fields);
        let mut sheets = resolve(STANDARD.into(), &entry, None);
        self.warn_unpriced(&entry.origin, title, &entry.own);
        self.warn_cheaper(title, &entry, &sheets);
        for (above, (origin, prices)) in &entry.contexts {
            self.warn_inherited(origin, title, &format!("above {above} input tokens"), &entry.own, prices);
        }
        for (name, tier) in &tiers {
            match tier {
                Tier::Multiplied(origin, factor) => {
                    let standard = resolve(Arc::clone(name), &entry, None);
                    sheets.extend(self.times(&standard, title, name, origin, *factor));
                }
                Tier::Named(layers) => {
                    self.warn_inherited(
                        &layers.origin,
                        title,
                        &format!("in the tier `{name}`"),
                        &entry.own,
                        &layers.own,
                    );
                    for (above, (_, prices)) in &entry.contexts {
                        let of_tier = (layers.origin.clone(), Prices::default());
                        let (origin, own) = layers.contexts.get(above).unwrap_or(&of_tier);
                        let place = format!("in the tier `{name}` above {above} input tokens");
                        self.warn_inherited(origin, title, &place, prices, own);
                    }
                    let of_tier = resolve(Arc::clone(name), &entry, Some(&**layers));
                    self.warn_cheaper(title, layers, &of_tier);
                    sheets.extend(of_tier);
                }
            }
        }
        let combined = self.combined(title, &tiers, &sheets);
        (sheets, combined)
    }

    /// Returns sheets under another tier, with their prices multiplied.
    fn times(
        &mut self,
        sheets: &[Sheet],
        title: &str,
        tier: &Arc<str>,
        origin: &Origin,
        factor: Factor,
    ) -> Vec<Sheet> {
        let place = format!("`{title}`, tier `{tier}`");
        let times = |sheet: &Sheet| {
            let prices = self.multiplied(origin, &place, &sheet.prices, factor);
            Sheet { tier: Arc::clone(tier), prices, ..sheet.clone() }
        };
        sheets.iter().map(times).collect()
    }

    /// Returns the prices of tiers together, which a response may state: up to two factors of other tiers apply to the
    /// prices of a third. Two tiers with prices of their own have none together, nor have names of several words.
    fn combined(&mut self, title: &str, tiers: &[(Arc<str>, Tier)], sheets: &[Sheet]) -> Vec<Sheet> {
        let singles = || tiers.iter().filter(|(name, _)| !name.contains(JOINT));
        let factors: Vec<(&Arc<str>, &Origin, Factor)> = singles()
            .filter_map(|(name, tier)| match tier {
                Tier::Multiplied(origin, factor) => Some((name, origin, *factor)),
                Tier::Named(_) => None,
            })
            .collect();
        if let Some((_, origin, _)) = factors.get(MAX_FACTORS) {
            let message = format!("`{title}` has more than {MAX_FACTORS} tiers with `multiply`");
            self.error(origin, message, "write the prices of some of them");
            return Vec::new();
        }
        let mut combined = Vec::new();
        for (base, tier) in singles() {
            let of_base: Vec<Sheet> = sheets.iter().filter(|sheet| sheet.tier == *base).cloned().collect();
            let later = match tier {
                Tier::Named(_) => 0,
                Tier::Multiplied(..) => 1 + factors.iter().take_while(|(name, ..)| *name != base).count(),
            };
            for (at, &(one, origin, factor)) in factors.iter().enumerate().skip(later) {
                let pair = self.times(&of_base, title, &joined(&[base, one]), origin, factor);
                for &(other, origin, factor) in &factors[at + 1..] {
                    combined.extend(self.times(&pair, title, &joined(&[base, one, other]), origin, factor));
                }
                combined.extend(pair);
            }
        }
        combined.retain(|sheet| tiers.iter().all(|(name, _)| *name != sheet.tier));
        combined.sort_by(|one, other| (&one.tier, one.above).cmp(&(&other.tier, other.above)));
        combined
    }

    /// Warns if the entry has no price for input or output tokens, which every exchange has.
    fn warn_unpriced(&mut self, origin: &Origin, title: &str, prices: &Prices) {
        let lacks = |kind: &TokenType| prices.per_token[*kind as usize].is_none();
        let lacking: Vec<_> =
            [TokenType::Input, TokenType::Output].into_iter().filter(lacks).map(key_of).collect();
        if !lacking.is_empty() && *prices != Prices::default() {
            let message = format!(
                "`{title}` has no `{}`: exchanges with such tokens are unpriced (`token_type`); write 0 if they are free",
                lacking.join("` and no `")
            );
            self.warn(origin, WarningKind::Unpriced, message);
        }
    }

    /// Warns about context lengths in `layers` above which a token costs less; `sheets` are those of one tier.
    fn warn_cheaper(&mut self, title: &str, layers: &Layers, sheets: &[Sheet]) {
        for (shorter, longer) in sheets.iter().zip(&sheets[1..]) {
            let Some((origin, _)) = layers.contexts.get(&longer.above) else { continue };
            let is_cheaper = |kind: &TokenType| {
                let at = *kind as usize;
                matches!((longer.prices.per_token[at], shorter.prices.per_token[at]), (Some(longer), Some(shorter)) if longer < shorter)
            };
            let cheaper: Vec<_> = TokenType::ALL.into_iter().filter(is_cheaper).map(key_of).collect();
            if !cheaper.is_empty() {
                let message = format!(
                    "`{title}` above {} input tokens: `{}` costs less than for shorter prompts; check that the \
                     prices of the two lengths are not swapped",
                    longer.above,
                    cheaper.join("`, `")
                );
                self.warn(origin, WarningKind::Cheaper, message);
            }
        }
    }

    fn warn_inherited(&mut self, origin: &Origin, title: &str, place: &str, base: &Prices, over: &Prices) {
        let inherited = base.missing_from(over);
        if !inherited.is_empty() {
            let message = format!(
                "`{title}` {place}: no price for {}; the price without it applies",
                inherited.join(", ")
            );
            self.warn(origin, WarningKind::Inherited, message);
        }
    }

    fn tiers(&mut self, fields: &mut Fields) -> Vec<(Arc<str>, Tier)> {
        let Some(node) = fields.take("tiers") else { return Vec::new() };
        let remedy = || "write tiers with their prices under it, as in `batch: {multiply: 0.5}`".to_owned();
        let any = |_: &str, _: &Origin| None;
        let Some(tiers) = Fields::of_any(node, "`tiers`", remedy, &mut self.errors, any) else {
            return Vec::new();
        };
        let tier = |(name, node): (String, Node)| Some((name.as_str().into(), self.tier(&name, node)?));
        let mut tiers: Vec<(Arc<str>, Tier)> = tiers.into_entries().filter_map(tier).collect();
        tiers.sort_by(|one, other| one.0.cmp(&other.0));
        tiers
    }

    fn tier(&mut self, name: &str, node: Node) -> Option<Tier> {
        if let Some(word) = name.split(JOINT).find(|word| meter::is_standard_tier(word)) {
            let message = format!("`{}` is the standard tier", quoted(word));
            self.error(&node.origin, message, "write its prices in the entry itself");
            return None;
        }
        if name.len() > MAX_TIER_NAME_BYTES
            || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-+".contains(&b))
            || !name.split(JOINT).is_sorted_by(|one, other| one < other)
        {
            let message = format!("`{}` is not a valid tier", quoted(name));
            self.error(
                &node.origin,
                message,
                "write it in lower case, as the server does: batch, priority, flex; several words in alphabetical \
                 order: fast+us",
            );
            return None;
        }
        let near = |word| nearest(word, KNOWN_TIERS.iter().copied()).filter(|near| *near != word);
        if let Some((word, near)) = name.split(JOINT).find_map(|word| Some((word, near(word)?))) {
            let message = format!("there is no tier `{word}`");
            self.error(&node.origin, message, format!("did you mean `{near}`?"));
            return None;
        }
        let before = self.errors.len();
        let known = [TIER_KEYS, &PRICE_KEYS].concat();
        let mut fields = Fields::read(node, "a tier", &known, &mut self.errors)?;
        let layers = self.layers(&mut fields);
        let named = layers.own != Prices::default() || !layers.contexts.is_empty();
        match (fields.get("multiply"), named) {
            (None, true) => Some(Tier::Named(Box::new(layers))),
            (Some(node), false) => {
                let factor = match &node.shape {
                    Shape::Scalar(text) => Factor::read(text),
                    _ => None,
                };
                if factor.is_none() {
                    let message = "`multiply` is not a number from 0 to 100 with at most nine decimals";
                    self.error(&node.origin, message, "write it as in `multiply: 0.5`");
                }
                Some(Tier::Multiplied(layers.origin, factor?))
            }
            (Some(node), true) => {
                let message = "a tier has prices of its own or multiplies the entry's, not both";
                self.error(&node.origin, message, "remove `multiply` or the prices");
                None
            }
            (None, false) if self.errors.len() > before => None,
            (None, false) => {
                let message = format!("the tier `{name}` has no prices");
                self.error(&layers.origin, message, "write its prices, or `multiply: 0.5`");
                None
            }
        }
    }

    /// Reads the prices of one place, with its context tiers.
    fn layers(&mut self, fields: &mut Fields) -> Layers {
        let (origin, own) = (fields.origin.clone(), self.prices(fields));
        let mut layers = Layers { origin, own, contexts: BTreeMap::new() };
        let Some(node) = fields.take("context_tiers") else { return layers };
        let Shape::List(items) = node.shape else {
            let remedy = "write it as in `context_tiers: [{above_input_tokens: 200000, input: 6}]`";
            self.error(&node.origin, "`context_tiers` is not a list", remedy);
            return layers;
        };
        for item in items {
            let known = [CONTEXT_KEYS, &PRICE_KEYS].concat();
            let Some(mut fields) = Fields::read(item, "a context tier", &known, &mut self.errors) else {
                continue;
            };
            let before = self.errors.len();
            let prices = self.prices(&fields);
            let remedy = "write the prompt length above which these prices hold";
            let threshold = fields.required("above_input_tokens", remedy, &mut self.errors);
            let Some(threshold) = threshold else { continue };
            let above = match &threshold.shape {
                Shape::Scalar(text) => {
                    text.parse().ok().filter(|above| (1..=MAX_PROMPT_TOKENS).contains(above))
                }
                _ => None,
            };
            let Some(above) = above else {
                let message = "`above_input_tokens` is not a whole number of tokens";
                self.error(
                    &threshold.origin,
                    message,
                    format!("write one from 1 to {MAX_PROMPT_TOKENS}, as in 200000"),
                );
                continue;
            };
            if prices == Prices::default() && self.errors.len() == before {
                self.error(
                    &fields.origin,
                    "this context tier has no price",
                    "write what changes above that length",
                );
            }
            if let Some((first, _)) = layers.contexts.get(&above) {
                let first = first.line();
                let message = format!("there are prices above {above} tokens already, on line {first}");
                self.error(&fields.origin, message, "merge the two context tiers");
            } else {
                layers.contexts.insert(above, (fields.origin, prices));
            }
        }
        layers
    }

    fn prices(&mut self, fields: &Fields) -> Prices {
        let mut prices = Prices::default();
        for (key, kind) in KEYS {
            prices.per_token[kind as usize] = fields.get(key).and_then(|node| self.price(node, key));
        }
        if let Some(node) = fields.get(PER_REQUEST) {
            prices.per_request =
                self.read_price(node, PER_REQUEST, REQUEST_SHIFT, MAX_REQUEST_PICO, REQUEST_REMEDY);
        }
        prices
    }

    /// Reads the price of a token.
    fn price(&mut self, node: &Node, key: &str) -> Option<Pico> {
        let shift = match self.unit {
            Unit::PerMillion => 6,
            Unit::PerToken => 12,
        };
        let remedy = match self.unit {
            Unit::PerMillion => "write the price of a million tokens, as in 2.50",
            Unit::PerToken => "write the price of one token, as in 0.0000025, or write `unit: per_million`",
        };
        let price = self.read_price(node, key, shift, MAX_TOKEN_PICO, remedy)?;
        if self.unit == Unit::PerMillion && (1..LOW_TOKEN_PICO).contains(&price) {
            let message = format!(
                "`{key}` is {} for a million tokens, which is very low; if it is the price of one token, \
                 write `unit: per_token`",
                per_million(price.into())
            );
            self.warn(&node.origin, WarningKind::Tiny, message);
        }
        if price > HIGH_TOKEN_PICO {
            let remedy = match self.unit {
                Unit::PerMillion => "check that it is the price of a million tokens in this currency",
                Unit::PerToken => "if it is the price of a million tokens, write `unit: per_million`",
            };
            let message =
                format!("`{key}` is {} for one token, which is high; {remedy}", money(price.into()));
            self.warn(&node.origin, WarningKind::Large, message);
        }
        Some(price)
    }

    fn read_price(&mut self, node: &Node, key: &str, shift: i32, most: Pico, remedy: &str) -> Option<Pico> {
        let text = match &node.shape {
            Shape::Scalar(text) => text,
            Shape::Nothing => {
                let remedy = "write 0 if it is free, or remove the key: then it is unpriced";
                self.error(&node.origin, format!("`{key}` has no value"), remedy);
                return None;
            }
            Shape::List(_) | Shape::Map(_) => {
                self.error(&node.origin, format!("`{key}` is not one number"), remedy);
                return None;
            }
        };
        match amount::parts(text, shift) {
            Err(NumberError::Malformed) => {
                self.error(
                    &node.origin,
                    format!("`{key}`: `{}` is not a decimal number", quoted(text)),
                    remedy,
                );
                None
            }
            Ok(Parts { whole, .. }) if whole < 0 || text.starts_with('-') => {
                self.error(&node.origin, format!("`{key}`: `{}` is below 0", quoted(text)), remedy);
                None
            }
            Err(NumberError::TooLarge) => {
                self.error(&node.origin, format!("`{key}`: `{}` is too large", quoted(text)), remedy);
                None
            }
            Ok(Parts { whole, .. }) if whole > i128::from(most) => {
                let each = if key == PER_REQUEST { "one request" } else { "one token" };
                let message =
                    format!("`{key}`: `{}` is more than {} for {each}", quoted(text), money(most.into()));
                self.error(&node.origin, message, remedy);
                None
            }
            Ok(Parts { whole: 0, exact: false }) => {
                let message = format!("`{key}`: `{}` is below the smallest price", quoted(text));
                self.error(
                    &node.origin,
                    message,
                    "prices are whole 10^-12ths of a token's; write 0 if it is free",
                );
                None
            }
            Ok(Parts { whole, exact }) => {
                if !exact {
                    let taken = Decimal { units: whole, digits: shift.unsigned_abs(), least: 2 };
                    let message = format!(
                        "`{key}`: {} was rounded to {taken}, a whole 10^-12th of a unit",
                        quoted(text)
                    );
                    self.warn(&node.origin, WarningKind::Rounded, message);
                }
                Pico::try_from(whole).ok()
            }
        }
    }

    pub(super) fn multiplied(
        &mut self,
        origin: &Origin,
        place: &str,
        prices: &Prices,
        factor: Factor,
    ) -> Prices {
        let mut rounded = false;
        let mut large = false;
        let mut times = |price: Option<Pico>, most: Pico| {
            let (product, exact) = match factor.times(price?) {
                Ok((product, exact)) if product <= most => (product, exact),
                _ => {
                    large = true;
                    return None;
                }
            };
            rounded |= !exact;
            Some(product)
        };
        let mut product = Prices::default();
        for at in 0..TYPES {
            product.per_token[at] = times(prices.per_token[at], MAX_TOKEN_PICO);
        }
        product.per_request = times(prices.per_request, MAX_REQUEST_PICO);
        if large {
            self.error(origin, format!("{place}: a price becomes too large"), "write a smaller factor");
        }
        if rounded {
            self.warn(
                origin,
                WarningKind::Rounded,
                format!("{place}: a product was rounded to a whole 10^-12th of a unit"),
            );
        }
        product
    }
}

/// Returns the sheets of a tier: one for any length, and one for each length with prices of its own.
fn resolve(name: Arc<str>, entry: &Layers, tier: Option<&Layers>) -> Vec<Sheet> {
    // The entry's own prices over themselves are the standard tier's.
    let tier = tier.unwrap_or(entry);
    let mut prices = entry.own.overlaid_by(&tier.own);
    let mut sheets = vec![Sheet { tier: Arc::clone(&name), above: 0, prices, by_factor: Vec::new() }];
    let mut lengths: Vec<u64> = entry.contexts.keys().chain(tier.contexts.keys()).copied().collect();
    lengths.sort_unstable();
    lengths.dedup();
    for above in lengths {
        for layers in [entry, tier] {
            if let Some((_, over)) = layers.contexts.get(&above) {
                prices = prices.overlaid_by(over);
            }
        }
        sheets.push(Sheet { tier: Arc::clone(&name), above, prices, by_factor: Vec::new() });
    }
    sheets
}

/// Returns the tier of several words.
fn joined(words: &[&Arc<str>]) -> Arc<str> {
    let mut words: Vec<&str> = words.iter().map(|word| &***word).collect();
    words.sort_unstable();
    words.join("+").into()
}

/// Maximum number of tiers of an entry with a factor: the number of their combinations grows with its cube.
const MAX_FACTORS: usize = 8;

/// Maximum length of a tier's name.
const MAX_TIER_NAME_BYTES: usize = 64;

/// The highest context length that a context tier may have.
const MAX_PROMPT_TOKENS: u64 = 1_000_000_000;

/// Price of a token, in pico-units, above which a warning is given: one unit of the currency. In dollars, prices of
/// providers are a thousand times lower; in đồng and rupiah, expensive models cost more.
const HIGH_TOKEN_PICO: Pico = 1_000_000_000_000;

/// Maximum price of a token: ten thousand units, in pico-units.
const MAX_TOKEN_PICO: Pico = 10_000_000_000_000_000;

/// Maximum price of a request: ten thousand units, in pico-units.
const MAX_REQUEST_PICO: Pico = 10_000_000_000_000_000;

/// Decimal places of a pico-unit; a request's price is written in units, whatever the unit of tokens.
const REQUEST_SHIFT: i32 = 12;

const REQUEST_REMEDY: &str = "write the price of one request, as in 0.005";

/// Price of a token, in pico-units, below which a price per million causes a warning: the cheapest of a provider is
/// 130.
const LOW_TOKEN_PICO: Pico = 100;
