//! Each value of the ledger as a row of its table, and back.
//!
//! Law: what is written and read again is equal; a number that a column cannot hold is an error and not
//! another number.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use meter::{ExchangeId, Provenance, Role, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};
use rusqlite::types::ValueRef;

use crate::energy::EnergyRow;
use crate::error::Error;
use crate::source::{Correction, DeviceTotal, Gap, Share, Used};
use crate::table::{FIRST_TOKENS, LATER_TOKENS, Values, places};
use crate::{Class, DailyTotal, GpuSums, Row, Sums, TotalKey};

/// The first number beyond the low half of a sum.
const LOW: i128 = 1_000_000;

/// A sum as its two columns.
fn split(sum: i128) -> Result<[ValueRef<'static>; 2], Error> {
    let high = i64::try_from(sum.div_euclid(LOW)).map_err(|_| too_much())?;
    let low = i64::try_from(sum.rem_euclid(LOW)).map_err(|_| too_much())?;
    Ok([ValueRef::Integer(high), ValueRef::Integer(low)])
}

fn too_much() -> Error {
    Error::row("a number is larger than the ledger's columns")
}

fn count(number: u64) -> Result<ValueRef<'static>, Error> {
    i64::try_from(number).map(ValueRef::Integer).map_err(|_| too_much())
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

fn maybe_text(text: Option<&Arc<str>>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
}

fn maybe_bytes(bytes: Option<&[u8; 16]>) -> ValueRef<'_> {
    bytes.map_or(ValueRef::Null, |bytes| ValueRef::Blob(bytes))
}

fn maybe(number: Option<i64>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, ValueRef::Integer)
}

/// A role; NULL for most exchanges, which are whole requests.
fn role(role: Role) -> ValueRef<'static> {
    if role.is_leg() { text(role.name()) } else { ValueRef::Null }
}

/// A number that is mostly this one, which is NULL then.
fn unless(usual: u64, number: u64) -> Result<ValueRef<'static>, Error> {
    if number == usual { Ok(ValueRef::Null) } else { count(number) }
}

/// The places of the token types that version 1 has columns for.
static FIRST_PLACES: LazyLock<[Option<usize>; FIRST_TOKENS.len()]> = LazyLock::new(|| places(&FIRST_TOKENS));

/// The places of the token types that version 2 added columns for.
static LATER_PLACES: LazyLock<[Option<usize>; LATER_TOKENS.len()]> = LazyLock::new(|| places(&LATER_TOKENS));

/// Of a type that has a column and is not known: 0 of it.
fn first_tokens(
    tokens: &[u64; TokenType::ALL.len()],
) -> impl Iterator<Item = Result<ValueRef<'static>, Error>> {
    FIRST_PLACES.iter().map(|place| count(place.map_or(0, |place| tokens[place])))
}

fn later_tokens(
    tokens: &[u64; TokenType::ALL.len()],
) -> impl Iterator<Item = Result<ValueRef<'static>, Error>> {
    LATER_PLACES.iter().map(|place| unless(0, place.map_or(0, |place| tokens[place])))
}

/// Of the table `exchange`.
pub(crate) fn of_row(seq: i64, row: &Row) -> Result<Values<'_>, Error> {
    let mut values = Vec::with_capacity(crate::table::EXCHANGE.columns.len());
    values.extend([
        ValueRef::Integer(seq),
        ValueRef::Blob(&row.id.0),
        ValueRef::Integer(row.started_us),
        ValueRef::Integer(row.ended_us),
        text(&row.tenant),
        maybe_text(row.principal.as_ref()),
        maybe_text(row.consumer.as_ref()),
        text(&row.upstream),
        text(&row.provider),
        text(&row.dialect),
        text(&row.model),
        maybe_text(row.response_model.as_ref()),
        maybe_text(row.response_id.as_ref()),
        maybe_text(row.service_tier.as_ref()),
        text(&row.ending),
        ValueRef::Integer(i64::from(row.status)),
        ValueRef::Integer(i64::from(row.streamed)),
    ]);
    for tokens in first_tokens(&row.tokens.by_type) {
        values.push(tokens?);
    }
    let (rate, cost, unpriced) = match &row.charge {
        Charge::Priced { rate, cost } => (ValueRef::Blob(&rate.id), ValueRef::Integer(*cost), ValueRef::Null),
        Charge::Unpriced(why) => (ValueRef::Null, ValueRef::Null, text(why.name())),
    };
    values.extend([
        text(row.tokens.input_provenance.name()),
        text(row.tokens.output_provenance.name()),
        ValueRef::Integer(row.duration_us),
        maybe(row.first_token_us),
        rate,
        cost,
        unpriced,
        maybe_bytes(row.trace.as_ref()),
        role(row.role),
        maybe_text(row.request_id.as_ref()),
        unless(1, u64::from(row.upstream_attempts))?,
        unless(0, row.cached_excess)?,
    ]);
    for tokens in later_tokens(&row.tokens.by_type) {
        values.push(tokens?);
    }
    Ok(values)
}

/// Of the table `rate`.
pub(crate) fn of_rate(rate: &Rate) -> Result<Values<'_>, Error> {
    let mut values = vec![
        ValueRef::Blob(&rate.id),
        text(&rate.version),
        text(&rate.book),
        text(&rate.entry),
        text(&rate.tier),
        count(rate.above_input_tokens)?,
        ValueRef::Text(&rate.currency.0),
    ];
    let price = |place: &Option<usize>| maybe(place.and_then(|place| rate.per_token[place]));
    values.extend(FIRST_PLACES.iter().map(price));
    values.push(ValueRef::Integer(rate.per_request));
    values.extend(LATER_PLACES.iter().map(price));
    Ok(values)
}

/// Of the table `energy`; the keys are said where the exchange is not at hand.
pub(crate) fn of_energy(
    seq: i64,
    row: &EnergyRow,
    class: Class,
    with_keys: bool,
) -> Result<Values<'_>, Error> {
    let used = &row.used;
    let maybe_count = |number: Option<u64>| number.map_or(Ok(ValueRef::Null), count);
    let mut values = vec![
        ValueRef::Integer(seq),
        ValueRef::Blob(&row.id.0),
        ValueRef::Integer(row.ended_us),
        maybe_count(used.energy_nj)?,
        maybe_count(used.gpu_ns)?,
        ValueRef::Integer(used.gpu_hours_pico),
        ValueRef::Integer(used.gpu_energy_pico),
        text(class.name()),
    ];
    let role = role(row.role);
    if with_keys {
        let key = &row.key;
        values.extend([
            text(&key.tenant),
            maybe_text(key.principal.as_ref()),
            text(&key.upstream),
            text(&key.provider),
            text(&key.model),
            text(&key.ending),
            text(key.input_provenance.name()),
            text(key.output_provenance.name()),
            maybe_bytes(key.rate.as_ref()),
        ]);
    } else {
        values.extend([ValueRef::Null; 9]);
    }
    values.push(role);
    Ok(values)
}

/// The key of the table `line`.
pub(crate) fn of_key(key: &TotalKey) -> Values<'_> {
    vec![
        ValueRef::Integer(i64::from(key.day)),
        text(&key.tenant),
        text(key.principal.as_deref().unwrap_or("")),
        text(&key.upstream),
        text(&key.provider),
        text(&key.model),
        text(&key.ending),
        text(key.input_provenance.name()),
        text(key.output_provenance.name()),
        key.rate.as_ref().map_or(ValueRef::Blob(&[]), |rate| ValueRef::Blob(rate)),
        text(key.class.name()),
    ]
}

/// Of the table `line`, after its key.
pub(crate) fn of_sums(sums: &Sums) -> Result<Values<'static>, Error> {
    let mut values = vec![count(sums.exchanges)?];
    for tokens in first_tokens(&sums.tokens) {
        values.push(tokens?);
    }
    values.extend(split(sums.cost_pico)?);
    values.push(count(sums.energy_exchanges)?);
    values.extend(gpu(&sums.gpu)?);
    for tokens in later_tokens(&sums.tokens) {
        values.push(tokens?);
    }
    Ok(values)
}

fn gpu(sums: &GpuSums) -> Result<Values<'static>, Error> {
    let columns = [sums.energy_nj, sums.gpu_ns, sums.gpu_hours_pico, sums.gpu_energy_pico].map(split);
    columns.into_iter().try_fold(Vec::new(), |values, column| Ok([values, column?.to_vec()].concat()))
}

/// Of the table `device`.
pub(crate) fn of_device(line: &DeviceTotal) -> Result<Values<'_>, Error> {
    let mut values = vec![ValueRef::Integer(i64::from(line.day)), text(&line.hw_id), text(line.share.name())];
    values.extend(gpu(&line.sums)?);
    Ok(values)
}

/// Of the table `correction`, made by the act of a number.
pub(crate) fn of_correction(seq: i64, act: i64, correction: &Correction) -> Result<Values<'_>, Error> {
    let line = &correction.line;
    let delta = i64::try_from(line.sums.cost_pico).map_err(|_| too_much())?;
    let Some(rate) = &line.key.rate else {
        return Err(Error::row("a correction has to name the rate that holds from now on"));
    };
    Ok(vec![
        ValueRef::Integer(seq),
        ValueRef::Blob(&correction.id.0),
        ValueRef::Integer(correction.made_us),
        ValueRef::Integer(act),
        ValueRef::Blob(&correction.exchange.0),
        ValueRef::Integer(correction.ended_us),
        text(&line.key.tenant),
        maybe_text(line.key.principal.as_ref()),
        text(&line.key.upstream),
        text(&line.key.provider),
        text(&line.key.model),
        text(&line.key.ending),
        text(line.key.input_provenance.name()),
        text(line.key.output_provenance.name()),
        ValueRef::Blob(rate),
        ValueRef::Integer(i64::from(line.sums.exchanges != 0)),
        ValueRef::Integer(delta),
    ])
}

/// Of the table `gap`.
pub(crate) fn of_gap(seq: i64, gap: &Gap) -> Result<Values<'_>, Error> {
    Ok(vec![
        ValueRef::Integer(seq),
        ValueRef::Integer(gap.from_us),
        ValueRef::Integer(gap.until_us),
        text(&gap.why),
        gap.lost_rows.map_or(Ok(ValueRef::Null), count)?,
        ValueRef::Integer(i64::from(gap.totals_kept)),
    ])
}

/// Names that were read before, so that a million lines of ten tenants hold ten names.
#[derive(Default)]
pub(crate) struct Names(HashSet<Arc<str>>);

/// Names that are remembered: end users may be as many as exchanges.
const NAMES_MAX: usize = 16_384;

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        if self.0.len() >= NAMES_MAX {
            self.0.clear();
        }
        let new: Arc<str> = name.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// Reads a row column by column.
pub(crate) struct Columns<'a, 'v> {
    values: std::slice::Iter<'a, ValueRef<'v>>,
    names: &'a mut Names,
}

impl<'a, 'v> Columns<'a, 'v> {
    pub(crate) fn new(values: &'a [ValueRef<'v>], names: &'a mut Names) -> Self {
        Self { values: values.iter(), names }
    }

    fn next(&mut self) -> ValueRef<'v> {
        self.values.next().copied().unwrap_or(ValueRef::Null)
    }

    pub(crate) fn number(&mut self) -> Result<i64, Error> {
        self.maybe_number()?.ok_or_else(senseless)
    }

    fn maybe_number(&mut self) -> Result<Option<i64>, Error> {
        match self.next() {
            ValueRef::Integer(number) => Ok(Some(number)),
            ValueRef::Null => Ok(None),
            _ => Err(senseless()),
        }
    }

    pub(crate) fn count(&mut self) -> Result<u64, Error> {
        u64::try_from(self.number()?).map_err(|_| senseless())
    }

    fn maybe_count(&mut self) -> Result<Option<u64>, Error> {
        self.maybe_number()?.map(|number| u64::try_from(number).map_err(|_| senseless())).transpose()
    }

    fn word(&mut self) -> Result<&'v str, Error> {
        match self.next() {
            ValueRef::Text(text) => str::from_utf8(text).map_err(|_| senseless()),
            _ => Err(senseless()),
        }
    }

    pub(crate) fn text(&mut self) -> Result<Arc<str>, Error> {
        let word = self.word()?;
        Ok(self.names.of(word))
    }

    fn maybe_text(&mut self) -> Result<Option<Arc<str>>, Error> {
        match self.next() {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => Ok(Some(self.names.of(str::from_utf8(text).map_err(|_| senseless())?))),
            _ => Err(senseless()),
        }
    }

    /// A text of which no two are alike, so that none is worth remembering.
    fn maybe_own(&mut self) -> Result<Option<Arc<str>>, Error> {
        match self.next() {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => Ok(Some(str::from_utf8(text).map_err(|_| senseless())?.into())),
            _ => Err(senseless()),
        }
    }

    fn bytes(&mut self) -> Result<[u8; 16], Error> {
        self.maybe_bytes()?.ok_or_else(senseless)
    }

    /// Sixteen bytes; none for NULL and for no bytes.
    fn maybe_bytes(&mut self) -> Result<Option<[u8; 16]>, Error> {
        match self.next() {
            ValueRef::Null | ValueRef::Blob([]) => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes.try_into().map_err(|_| senseless())?)),
            _ => Err(senseless()),
        }
    }

    fn sum(&mut self) -> Result<i128, Error> {
        Ok(i128::from(self.number()?) * LOW + i128::from(self.number()?))
    }

    fn provenance(&mut self) -> Result<Provenance, Error> {
        let word = self.word()?;
        Provenance::ALL.into_iter().find(|one| one.name() == word).ok_or_else(senseless)
    }

    pub(crate) fn class(&mut self) -> Result<Class, Error> {
        let word = self.word()?;
        Class::ALL.into_iter().find(|one| one.name() == word).ok_or_else(senseless)
    }

    fn tokens(&mut self) -> Result<[u64; TokenType::ALL.len()], Error> {
        let mut tokens = [0; TokenType::ALL.len()];
        for place in &*FIRST_PLACES {
            let count = self.count()?;
            *place.and_then(|place| tokens.get_mut(place)).ok_or_else(senseless)? = count;
        }
        Ok(tokens)
    }

    fn later_tokens(&mut self, tokens: &mut [u64; TokenType::ALL.len()]) -> Result<(), Error> {
        for place in &*LATER_PLACES {
            if let Some(count) = self.maybe_count()? {
                *place.and_then(|place| tokens.get_mut(place)).ok_or_else(senseless)? = count;
            }
        }
        Ok(())
    }

    /// A part of a request; NULL is all of it.
    pub(crate) fn role(&mut self) -> Result<Role, Error> {
        let Some(word) = self.maybe_text()? else { return Ok(Role::Whole) };
        Role::ALL.into_iter().find(|one| one.name() == &*word).ok_or_else(senseless)
    }

    /// Of the table `rate`.
    pub(crate) fn rate(&mut self) -> Result<Rate, Error> {
        let mut rate = Rate {
            id: self.bytes()?,
            version: self.text()?,
            book: self.text()?,
            entry: self.text()?,
            tier: self.text()?,
            above_input_tokens: self.count()?,
            currency: Currency(self.word()?.as_bytes().try_into().map_err(|_| senseless())?),
            per_token: [None; TokenType::ALL.len()],
            per_request: 0,
        };
        for place in &*FIRST_PLACES {
            let price = self.maybe_number()?;
            *place.and_then(|place| rate.per_token.get_mut(place)).ok_or_else(senseless)? = price;
        }
        rate.per_request = self.number()?;
        for place in &*LATER_PLACES {
            if let Some(price) = self.maybe_number()? {
                *place.and_then(|place| rate.per_token.get_mut(place)).ok_or_else(senseless)? = Some(price);
            }
        }
        Ok(rate)
    }

    /// Of the table `exchange`, without `seq`. The rate is looked up by its id.
    pub(crate) fn row(&mut self, rate: impl FnOnce(&[u8; 16]) -> Option<Arc<Rate>>) -> Result<Row, Error> {
        let mut row = Row {
            id: ExchangeId(self.bytes()?),
            started_us: self.number()?,
            ended_us: self.number()?,
            tenant: self.text()?,
            principal: self.maybe_text()?,
            consumer: self.maybe_text()?,
            upstream: self.text()?,
            provider: self.text()?,
            dialect: self.text()?,
            model: self.text()?,
            response_model: self.maybe_text()?,
            response_id: self.maybe_own()?,
            service_tier: self.maybe_text()?,
            ending: self.text()?,
            status: u16::try_from(self.number()?).map_err(|_| senseless())?,
            streamed: self.number()? != 0,
            tokens: Tokens { by_type: self.tokens()?, ..Tokens::NONE },
            duration_us: 0,
            first_token_us: None,
            charge: Charge::Unpriced(Unpriced::NoBook),
            trace: None,
            role: Role::Whole,
            request_id: None,
            upstream_attempts: 1,
            cached_excess: 0,
        };
        row.tokens.input_provenance = self.provenance()?;
        row.tokens.output_provenance = self.provenance()?;
        row.duration_us = self.number()?;
        row.first_token_us = self.maybe_number()?;
        let (named, cost, unpriced) = (self.maybe_bytes()?, self.maybe_number()?, self.maybe_text()?);
        row.charge = match (named, cost, unpriced) {
            (Some(id), Some(cost), None) => {
                let rate = rate(&id).ok_or_else(|| Error::corrupt("a row's rate is not among the rates"))?;
                Charge::Priced { rate, cost }
            }
            (None, None, Some(why)) => Charge::Unpriced(
                Unpriced::ALL.into_iter().find(|one| *one.name() == *why).ok_or_else(senseless)?,
            ),
            _ => return Err(senseless()),
        };
        row.trace = self.maybe_bytes()?;
        row.role = self.role()?;
        row.request_id = self.maybe_own()?;
        row.upstream_attempts = u8::try_from(self.maybe_number()?.unwrap_or(1)).map_err(|_| senseless())?;
        row.cached_excess = self.maybe_count()?.unwrap_or(0);
        self.later_tokens(&mut row.tokens.by_type)?;
        Ok(row)
    }

    /// Of the table `energy`, from `energy_nj` on.
    pub(crate) fn used(&mut self) -> Result<Used, Error> {
        Ok(Used {
            energy_nj: self.maybe_count()?,
            gpu_ns: self.maybe_count()?,
            gpu_hours_pico: self.number()?,
            gpu_energy_pico: self.number()?,
        })
    }

    /// Of the table `line`.
    pub(crate) fn line(&mut self) -> Result<DailyTotal, Error> {
        let key = TotalKey {
            day: i32::try_from(self.number()?).map_err(|_| senseless())?,
            tenant: self.text()?,
            principal: self.maybe_text()?.filter(|principal| !principal.is_empty()),
            upstream: self.text()?,
            provider: self.text()?,
            model: self.text()?,
            ending: self.text()?,
            input_provenance: self.provenance()?,
            output_provenance: self.provenance()?,
            rate: self.maybe_bytes()?,
            class: self.class()?,
        };
        let mut sums = Sums {
            exchanges: self.count()?,
            tokens: self.tokens()?,
            cost_pico: self.sum()?,
            energy_exchanges: self.count()?,
            gpu: self.gpu()?,
        };
        self.later_tokens(&mut sums.tokens)?;
        Ok(DailyTotal { key, sums })
    }

    /// Of the table `energy`, from `class` on: the line's keys, if they are said.
    pub(crate) fn energy_key(&mut self, day: i32) -> Result<(Class, Option<TotalKey>), Error> {
        let class = self.class()?;
        let Some(tenant) = self.maybe_text()? else { return Ok((class, None)) };
        Ok((class, Some(self.key(day, tenant, class)?)))
    }

    fn key(&mut self, day: i32, tenant: Arc<str>, class: Class) -> Result<TotalKey, Error> {
        Ok(TotalKey {
            day,
            tenant,
            principal: self.maybe_text()?,
            upstream: self.text()?,
            provider: self.text()?,
            model: self.text()?,
            ending: self.text()?,
            input_provenance: self.provenance()?,
            output_provenance: self.provenance()?,
            rate: self.maybe_bytes()?,
            class,
        })
    }

    /// Of the table `correction`, without `seq`.
    pub(crate) fn correction(&mut self) -> Result<Correction, Error> {
        let (id, made_us, _act) = (ExchangeId(self.bytes()?), self.number()?, self.number()?);
        let (exchange, ended_us) = (ExchangeId(self.bytes()?), self.number()?);
        let tenant = self.text()?;
        let key = self.key(crate::month::day(ended_us), tenant, Class::Correction)?;
        let (exchanges, cost_pico) = (self.count()?, i128::from(self.number()?));
        let line = DailyTotal { key, sums: Sums { exchanges, cost_pico, ..Sums::default() } };
        Ok(Correction { id, made_us, exchange, line, ended_us })
    }

    /// Of the table `device`.
    pub(crate) fn device(&mut self) -> Result<DeviceTotal, Error> {
        Ok(DeviceTotal {
            day: i32::try_from(self.number()?).map_err(|_| senseless())?,
            hw_id: self.text()?,
            share: {
                let word = self.word()?;
                Share::ALL.into_iter().find(|one| one.name() == word).ok_or_else(senseless)?
            },
            sums: self.gpu()?,
        })
    }

    fn gpu(&mut self) -> Result<GpuSums, Error> {
        Ok(GpuSums {
            energy_nj: self.sum()?,
            gpu_ns: self.sum()?,
            gpu_hours_pico: self.sum()?,
            gpu_energy_pico: self.sum()?,
        })
    }

    /// Of the table `gap`, without `seq`.
    pub(crate) fn gap(&mut self) -> Result<Gap, Error> {
        Ok(Gap {
            from_us: self.number()?,
            until_us: self.number()?,
            why: self.text()?,
            lost_rows: self.maybe_count()?,
            totals_kept: self.number()? != 0,
        })
    }
}

fn senseless() -> Error {
    Error::corrupt("a column holds what it cannot hold")
}
