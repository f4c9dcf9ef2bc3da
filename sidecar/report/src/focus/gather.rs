//! The rows of the dataset, from contributions of the ledger: a sum for each tenant, model, rate and period, divided by
//! type of token, which is exact because one rate has one price for each type.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ledger::source::{Month, Range, Share, Source, SourceError};
use ledger::total_key::ADJUSTMENT;
use ledger::{Calendar, Class, month};
use meter::TokenType;
use price::{About, Book, Currency, Rate};
use serde_json::json;
use text::{Decimal, nano};

use super::charge::{Charge, Kind, Known, Quantity, Sku};
use super::idle::set_ratios;
use super::merge::merge;
use super::usage::Usage;
use crate::allocation::{Allocation, pooled};
use crate::attributes::Entry;
use crate::contributions::{self, Contribution};
use crate::first_prices::CorrectionView;
use crate::group::{self, GROUPS_MAX};
use crate::key::{Key, Value};
use crate::notes::Notes;
use crate::query::{Basis, Idle, Query};
use crate::statement_number;
use crate::sums::Sums;

/// The key of rows of the dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    billed: Month,
    day: i32,
    share: Option<Share>,
    tenant: Value,
    model: Value,
    provider: Value,
    publisher: Value,
    principal: Value,
    consumer: Value,
    upstream: Value,
    attributes: Option<Arc<Entry>>,
    rate: Option<[u8; 16]>,
    correction: bool,
}

/// Types of token that are SKUs of their own, and their names.
struct Article {
    kind: TokenType,
    meter: &'static str,
    suffix: &'static str,
    direction: &'static str,
    cache: Option<&'static str>,
}

const ARTICLES: [Article; TokenType::ALL.len()] = {
    const fn article(
        kind: TokenType,
        meter: &'static str,
        suffix: &'static str,
        direction: &'static str,
        cache: Option<&'static str>,
    ) -> Article {
        Article { kind, meter, suffix, direction, cache }
    }
    use TokenType as T;
    [
        article(T::Input, "Input Tokens", "input", "Input", Some("Uncached")),
        article(T::InputCached, "Cache Read Input Tokens", "cache-read", "Input", Some("Read")),
        article(T::InputCacheWrite, "Cache Write Input Tokens", "cache-write", "Input", Some("Write")),
        article(
            T::InputCacheWrite1h,
            "Cache Write 1 Hour Input Tokens",
            "cache-write-1h",
            "Input",
            Some("Write"),
        ),
        article(T::InputAudio, "Audio Input Tokens", "audio-input", "Input", Some("Uncached")),
        article(T::InputImage, "Image Input Tokens", "image-input", "Input", Some("Uncached")),
        article(T::InputVideo, "Video Input Tokens", "video-input", "Input", Some("Uncached")),
        article(T::InputCachedAudio, "Cached Audio Input Tokens", "cache-read-audio", "Input", Some("Read")),
        article(T::InputCachedImage, "Cached Image Input Tokens", "cache-read-image", "Input", Some("Read")),
        article(T::Output, "Output Tokens", "output", "Output", None),
        article(T::OutputReasoning, "Reasoning Output Tokens", "reasoning-output", "Output", None),
        article(T::OutputAudio, "Audio Output Tokens", "audio-output", "Output", None),
        article(T::OutputImage, "Image Output Tokens", "image-output", "Output", None),
        article(T::OutputVideo, "Video Output Tokens", "video-output", "Output", None),
    ]
};

/// Returns the rows, ordered by period, tenant and model.
pub(super) fn charges(
    source: &dyn Source,
    query: &Query,
    book: Option<&Book>,
) -> Result<(Vec<Charge>, Notes), SourceError> {
    if let Some(key) = query.by.iter().find(|key| !KEYS.contains(key)) {
        let keys: Vec<_> = KEYS.iter().map(|key| key.name()).collect();
        return Err(format!(
            "FOCUS has no row by `{}`; with --format focus, --by takes {}",
            key.name(),
            keys.join(", ")
        )
        .into());
    }
    let by_gpu = query.basis == Basis::Gpu;
    let calendar = source.calendar();
    group::whole_days_if_gpu(query, &calendar)?;
    let rates: HashMap<_, _> = source.rates()?.into_iter().map(|rate| (rate.id, rate)).collect();
    let mut notes = Notes { calendar: source.calendar(), ..Notes::default() };
    let (mut left_out, mut sums): (_, BTreeMap<Place, Usage>) = (0, BTreeMap::new());
    let mut leave_out =
        |contribution: Contribution<'_>| group::leave_out(query, &contribution, &rates, &mut left_out);
    let view = CorrectionView::Charged;
    let mut allocation: Option<Allocation<Bearer>> = Allocation::read(source, query, false)?;
    let rows_for = contributions::each(source, query, view, &mut leave_out, &mut |contribution| {
        let rate = group::rate_of(&contribution, &rates)?;
        group::note_rows_gone(&mut notes, &contribution, query, view, rate);
        let is_selected = group::is_selected(query, &contribution, rate);
        if let Some(allocation) = &mut allocation {
            // Idle cost is billed in the month of its day, whenever the usage of that day is billed.
            let tenant = || Arc::clone(&contribution.line.key.tenant);
            let is_bearer = group::passes_filters(query, &contribution, rate);
            let bearer = is_bearer.then(|| (tenant(), attributes(query, &contribution)));
            allocation.see(contribution.billed, contribution.line, bearer)?;
        }
        if !is_selected {
            return Ok(());
        }
        group::note(&mut notes, &contribution, query, rate);
        if query.attributes != Arc::default() && attributes(query, &contribution).is_none() {
            notes.without_attributes(&contribution.line.key.tenant);
        }
        let correction = contribution.line.key.class == Class::Correction;
        if (by_gpu && correction) || (!by_gpu && rate.is_none()) {
            return Ok(());
        }
        // If the counts are under the same rate and month, the money of a correction is usage.
        let place = place(query, &contribution, correction && !contribution.with_counts);
        if sums.len() >= GROUPS_MAX && !sums.contains_key(&place) {
            return Err(format!("there are more than {GROUPS_MAX} rows; use a shorter period").into());
        }
        let sum = sums.entry(place).or_default();
        if correction {
            sum.correct(contribution.line)
        } else {
            sum.add(contribution.line, rate)
        }
        Ok(())
    })?;
    // GPU use without an exchange that filters exclude; ratios are relative to the whole.
    let mut excluded = BTreeMap::new();
    if by_gpu {
        let to = (&mut sums, &mut excluded);
        devices(source, query, allocation.as_ref(), &mut notes, to)?;
    }
    notes.rows_for = rows_for;
    notes.left_out += left_out;
    notes.missing(source, query)?;
    let (mut digests, mut abouts) = (HashMap::new(), HashMap::new());
    // The end of the range is exclusive: an entry that begins then does not apply yet.
    let at_us = query.range.until_us.saturating_sub(1).min(ledger::now_us());
    let mut charges = Vec::new();
    for (place, usage) in &sums {
        let digest = match digests.get(&place.billed) {
            Some(digest) => Clone::clone(digest),
            None => {
                let digest = source.closure(place.billed)?.digest().cloned();
                digests.insert(place.billed, digest.clone());
                digest
            }
        };
        let rate = place.rate.and_then(|id| rates.get(&id));
        let row = row(query, &calendar, place, rate, digest);
        match rate {
            _ if by_gpu => of_gpu(&row, &usage.sums, &mut charges),
            Some(rate) if place.correction => charges.push(of_correction(row, rate, &usage.sums)),
            Some(rate) => {
                let about = abouts.entry(row.model.clone()).or_insert_with(|| {
                    let model = row.model.as_deref().unwrap_or_default();
                    book.map(|book| book.about(model, at_us)).unwrap_or_default()
                });
                of_usage(&row, &Priced { rate, about }, usage, &mut charges);
            }
            None => {}
        }
    }
    if query.idle != Idle::None {
        let shown = charges.len();
        for (place, usage) in &excluded {
            of_gpu(&row(query, &calendar, place, None, None), &usage.sums, &mut charges);
        }
        set_ratios(query.idle, &mut charges);
        charges.truncate(shown);
    }
    // By GPU, each place has each SKU once.
    Ok((if by_gpu { charges } else { merge(charges) }, notes))
}

/// The keys by which rows can be split further.
const KEYS: [Key; 8] = [
    Key::Tenant,
    Key::Model,
    Key::Provider,
    Key::Day,
    Key::Month,
    Key::Principal,
    Key::Consumer,
    Key::Upstream,
];

fn place(query: &Query, contribution: &Contribution<'_>, correction: bool) -> Place {
    let by_gpu = query.basis == Basis::Gpu;
    let always = |key| contribution.value(key, None, &query.attributes);
    let asked = |key| if query.by.contains(&key) { always(key) } else { Value::Null };
    let (provider, publisher) = provider(&contribution.line.key.provider, &contribution.line.key.upstream);
    Place {
        billed: contribution.billed,
        day: first_day(query, contribution.line.key.day),
        share: None,
        tenant: always(Key::Tenant),
        model: always(Key::Model),
        provider,
        publisher,
        principal: asked(Key::Principal),
        consumer: asked(Key::Consumer),
        upstream: asked(Key::Upstream),
        attributes: attributes(query, contribution),
        rate: if by_gpu { None } else { contribution.line.key.rate },
        correction,
    }
}

fn attributes(query: &Query, contribution: &Contribution<'_>) -> Option<Arc<Entry>> {
    query.attributes.of(&contribution.line.key.tenant, contribution.line.key.day).cloned()
}

/// Returns the provider and the publisher: the detected or configured kind of server. For an undetected one (`openai`),
/// the provider is the upstream's name, by default its address, and the publisher is not known.
fn provider(recognised: &Arc<str>, upstream: &Arc<str>) -> (Value, Value) {
    match (&**recognised, &**upstream) {
        ("openai", "" | "_other") => (Value::Word(UNKNOWN), Value::Null),
        ("openai", _) => (Value::Text(Arc::clone(upstream)), Value::Null),
        _ => (Value::Text(Arc::clone(recognised)), Value::Text(Arc::clone(recognised))),
    }
}

/// The provider if even the upstream's name is unknown.
const UNKNOWN: &str = "unknown";

/// The first day of the period of a day.
fn first_day(query: &Query, day: i32) -> i32 {
    match query.by.contains(&Key::Day) {
        true => day,
        false => month::first_day(month::of_day(day)),
    }
}

/// A tenant and its attributes, to which cost is allocated.
type Bearer = (Arc<str>, Option<Arc<Entry>>);

fn devices(
    source: &dyn Source,
    query: &Query,
    allocation: Option<&Allocation<Bearer>>,
    notes: &mut Notes,
    (sums, excluded): (&mut BTreeMap<Place, Usage>, &mut BTreeMap<Place, Usage>),
) -> Result<(), SourceError> {
    for device in pooled(source.devices(&query.range)?) {
        let place = |bearer: Option<&Bearer>| Place {
            billed: month::of_day(device.day),
            day: first_day(query, device.day),
            share: Some(device.share),
            tenant: bearer.map_or(Value::Null, |(tenant, _)| Value::Text(Arc::clone(tenant))),
            model: Value::Null,
            provider: Value::Null,
            publisher: Value::Null,
            principal: Value::Null,
            consumer: Value::Null,
            upstream: Value::Null,
            attributes: bearer.and_then(|(_, attributes)| attributes.clone()),
            rate: None,
            correction: false,
        };
        if let Some(allocation) = allocation.filter(|_| group::is_billed(query, &device))
            && allocation.allocate(&device, &mut |bearer, used| {
                let to = if bearer.is_some() { &mut *sums } else { &mut *excluded };
                to.entry(place(bearer)).or_default().allocate(&used);
                if bearer.is_some() {
                    notes.allocate(query.idle, &used);
                }
                Ok(())
            })?
        {
            continue;
        }
        if group::selects_device(query, &device) {
            notes.leave_idle(query.idle, &device.sums);
            sums.entry(place(None)).or_default().add_device(&device);
        } else {
            excluded.entry(place(None)).or_default().add_device(&device);
        }
    }
    Ok(())
}

fn name(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Text(text) => Some(Arc::clone(text)),
        Value::Word(word) => Some((*word).into()),
        _ => None,
    }
}

/// Returns a row with the columns that all rows of a place share.
fn row(
    query: &Query,
    calendar: &Calendar,
    place: &Place,
    rate: Option<&Arc<Rate>>,
    digest: Option<Arc<str>>,
) -> Charge {
    let own = month::of_day(place.day);
    let after = if query.by.contains(&Key::Day) { place.day + 1 } else { month::first_day(own + 1) };
    let [start, end] = [place.day, after].map(|day| calendar.begin_us(day));
    let kind = match (place.billed == own, place.correction) {
        (true, false) => Kind::Usage,
        (true, true) => Kind::Adjustment,
        (false, _) => Kind::Correction,
    };
    let resource = match place.share {
        Some(share) => Some((share.mark().into(), "GPU")),
        None => name(&place.upstream).map(|upstream| (upstream, "Inference Server")),
    };
    let tenant = name(&place.tenant);
    let signed = digest.as_deref().filter(|_| query.basis == Basis::Price); // A statement is by price.
    let statement = signed
        .zip(tenant.as_deref())
        .map(|(digest, tenant)| statement_number(place.billed, tenant, Some(digest)));
    Charge {
        billed: place.billed,
        billing: Range::of_month(calendar, place.billed),
        period_us: (start, end),
        tenant,
        principal: name(&place.principal),
        consumer: name(&place.consumer),
        resource,
        model: name(&place.model),
        provider: name(&place.provider),
        publisher: name(&place.publisher),
        attributes: place.attributes.clone(),
        split: None,
        currency: rate.map_or(Currency::USD, |rate| rate.currency),
        kind,
        description: String::new(),
        quantity: None,
        sku: None,
        cost_pico: 0,
        requests: None,
        reasoning: None,
        known: Known::Unsaid,
        energy: None,
        digest,
        statement,
    }
}

/// The rate of usage, and the price book's metadata of the model.
struct Priced<'a> {
    rate: &'a Rate,
    about: &'a About,
}

fn of_usage(row: &Charge, priced: &Priced<'_>, usage: &Usage, charges: &mut Vec<Charge>) {
    let (rate, sum) = (priced.rate, &usage.sums);
    let model = row.model.as_deref().unwrap_or_default();
    let first = charges.len();
    let unit_of = |kind: TokenType| i128::from(rate.price_of(kind).unwrap_or(0));
    let count_of = |kind: TokenType| sum.tokens[kind as usize];
    // Reasoning tokens are output tokens; they are a SKU of their own only at another price.
    let together = unit_of(TokenType::OutputReasoning) == unit_of(TokenType::Output);
    let mut rest = sum.cost_pico;
    for article in &ARTICLES {
        let (kinds, reasoning) = match article.kind {
            TokenType::Output if together => {
                let reasoning = count_of(TokenType::OutputReasoning);
                (&[TokenType::Output, TokenType::OutputReasoning][..], Some(reasoning))
            }
            TokenType::OutputReasoning if together => continue,
            TokenType::OutputReasoning => (&[article.kind][..], Some(count_of(article.kind))),
            _ => (&[article.kind][..], None),
        };
        let tokens: i128 = kinds.iter().map(|kind| count_of(*kind)).sum();
        if tokens == 0 {
            continue;
        }
        let unit = unit_of(article.kind);
        let cost_pico = tokens * unit;
        rest -= cost_pico;
        charges.push(Charge {
            description: format!("{} for {model}", article.meter),
            quantity: Some(Quantity {
                consumed: Decimal { units: tokens, digits: 0, least: 0 },
                consumed_unit: "Tokens",
                priced: Decimal { units: tokens, digits: 6, least: 0 },
                priced_unit: "1000000 Tokens",
                unit_price: Some(a_million(unit)),
            }),
            sku: Some(sku(model, priced, article)),
            cost_pico,
            reasoning,
            known: Known::Counts(usage.known(kinds)),
            ..row.clone()
        });
    }
    let each = i128::from(rate.per_request);
    if each != 0 && rest != 0 && rest % each == 0 {
        let requests = Decimal { units: rest / each, digits: 0, least: 0 };
        let unit_price = Decimal { units: each, digits: 12, least: 2 };
        charges.push(Charge {
            description: format!("Requests to {model}"),
            quantity: Some(Quantity {
                consumed: requests,
                consumed_unit: "Requests",
                priced: requests,
                priced_unit: "Requests",
                unit_price: Some(unit_price),
            }),
            sku: Some(Sku {
                id: format!("{model}-request"),
                meter: "Requests",
                price_id: price_id(rate, &format!("{model}-request"), unit_price),
                details: details(model, priced, &[]),
            }),
            cost_pico: rest,
            ..row.clone()
        });
    } else if rest != 0 {
        // No rate causes this; if one ever does, the sum is correct and the row names the difference.
        charges.push(Charge {
            kind: if row.kind == Kind::Usage { Kind::Adjustment } else { row.kind },
            description: format!("Difference between charges and unit prices for {model}"),
            cost_pico: rest,
            ..row.clone()
        });
    }
    if charges.len() == first && (sum.exchanges > 0 || sum.measured > 0) {
        // Exchanges without tokens and cost are usage, too, and so is energy that arrived after their month was closed.
        let nothing = |digits| Decimal { units: 0, digits, least: 0 };
        let article = &ARTICLES[0];
        charges.push(Charge {
            description: format!("{} for {model}", article.meter),
            quantity: Some(Quantity {
                consumed: nothing(0),
                consumed_unit: "Tokens",
                priced: nothing(6),
                priced_unit: "1000000 Tokens",
                unit_price: Some(a_million(unit_of(article.kind))),
            }),
            sku: Some(sku(model, priced, article)),
            ..row.clone()
        });
    }
    if let Some(charge) = charges.get_mut(first) {
        charge.requests = Some(sum.exchanges);
        charge.energy = (sum.measured > 0).then(|| nano(sum.gpu.energy_nj));
    }
}

fn of_correction(row: Charge, rate: &Rate, sum: &Sums) -> Charge {
    // A client chooses the name of a model, but not that of a provider.
    if row.provider.as_deref() == Some(ADJUSTMENT) {
        let kind = if row.kind == Kind::Correction { Kind::LateAdjustment } else { row.kind };
        let description = format!("Adjustment: {}", rate.entry);
        return Charge { kind, description, cost_pico: sum.cost_pico, model: None, provider: None, ..row };
    }
    let model = row.model.as_deref().unwrap_or_default();
    let description = format!("Price of {model} changed to that of version {}", rate.version);
    Charge { description, cost_pico: sum.cost_pico, ..row }
}

/// GPU hours and energy, and their unit prices, have no exact decimals: those are rounded, the costs are not.
fn of_gpu(row: &Charge, sum: &Sums, charges: &mut Vec<Charge>) {
    let first = charges.len();
    let whose = match (&row.resource, &row.model) {
        (Some((id, "GPU")), _) => match &row.tenant {
            Some(tenant) => format!("of {id}, allocated to {tenant}"),
            None => format!("of {id}"),
        },
        (_, model) => format!("for {}", model.as_deref().unwrap_or_default()),
    };
    // Hours from nanoseconds, and kilowatt-hours from nanojoules, to 15 digits.
    let hours = (sum.gpu.gpu_ns * 2_500 + 4) / 9;
    let energy = (sum.gpu.energy_nj * 5 + 9) / 18;
    let each = [
        ("GPU Hours", "gpu-hour", "Hours", hours, sum.gpu.gpu_hours_pico),
        ("GPU Energy", "gpu-energy", "kWh", energy, sum.gpu.gpu_energy_pico),
    ];
    for (meter, id, unit, amount, cost_pico) in each {
        if amount == 0 && cost_pico == 0 {
            continue;
        }
        let quantity = Decimal { units: amount, digits: 15, least: 0 };
        let price = (amount != 0).then(|| Decimal {
            units: cost_pico * 10_i128.pow(15) / amount,
            digits: 12,
            least: 2,
        });
        charges.push(Charge {
            description: format!("{meter} {whose}"),
            quantity: Some(Quantity {
                consumed: quantity,
                consumed_unit: unit,
                priced: quantity,
                priced_unit: unit,
                unit_price: price,
            }),
            sku: Some(Sku {
                id: id.to_owned(),
                meter,
                price_id: id.to_owned(),
                details: json!({ "x_Basis": "gpu" }).to_string(),
            }),
            cost_pico,
            known: Known::Measured,
            ..row.clone()
        });
    }
    if let Some(charge) = charges.get_mut(first) {
        charge.requests =
            matches!(row.resource, None | Some((_, "Inference Server"))).then_some(sum.exchanges);
        charge.energy = Some(nano(sum.gpu.energy_nj));
    }
}

/// Returns the modality of a type of token, if it has one.
fn modality(kind: TokenType) -> Option<&'static str> {
    match kind {
        TokenType::InputAudio | TokenType::InputCachedAudio | TokenType::OutputAudio => Some("Audio"),
        TokenType::InputImage | TokenType::InputCachedImage | TokenType::OutputImage => Some("Image"),
        TokenType::InputVideo | TokenType::OutputVideo => Some("Video"),
        _ => None,
    }
}

fn sku(model: &str, priced: &Priced<'_>, article: &Article) -> Sku {
    let rate = priced.rate;
    let id = format!("{model}-{}", article.suffix);
    let mut more = vec![("x_TokenDirection", article.direction)];
    more.extend(article.cache.map(|action| ("x_TokenCacheAction", action)));
    more.extend(modality(article.kind).map(|modality| ("x_TokenModality", modality)));
    let unit = a_million(i128::from(rate.price_of(article.kind).unwrap_or(0)));
    Sku {
        price_id: price_id(rate, &id, unit),
        details: details(model, priced, &more),
        meter: article.meter,
        id,
    }
}

/// The price of a million tokens: a price of one token in pico-units is the price of a million in millionths.
fn a_million(unit: i128) -> Decimal {
    Decimal { units: unit, digits: 6, least: 2 }
}

/// An id for each unit price of a SKU, in any version or text of the price book.
fn price_id(rate: &Rate, sku: &str, unit: Decimal) -> String {
    let mut id = sku.to_owned();
    if &*rate.tier != "standard" {
        id.push_str(&format!(":{}", rate.tier));
    }
    if rate.above_input_tokens > 0 {
        id.push_str(&format!(":above-{}", rate.above_input_tokens));
    }
    format!("{id}:{unit}-{}", rate.currency.code())
}

fn details(model: &str, Priced { rate, about }: &Priced<'_>, more: &[(&str, &str)]) -> String {
    let mut details = serde_json::Map::new();
    details.insert("x_ModelId".to_owned(), model.into());
    for (key, word) in [
        ("x_ModelDeveloper", &about.developer),
        ("x_ModelFamily", &about.family),
        ("x_ModelVersion", &about.version),
    ] {
        details.extend(word.as_ref().map(|word| (key.to_owned(), (**word).into())));
    }
    details.insert("x_ServiceTier".to_owned(), (*rate.tier).into());
    if rate.above_input_tokens > 0 {
        details.insert("x_AboveInputTokens".to_owned(), rate.above_input_tokens.into());
    }
    for (key, value) in more {
        details.insert((*key).to_owned(), (*value).into());
    }
    serde_json::Value::Object(details).to_string()
}
