//! What is summed: lines where they say all that is asked, else rows. Of what rows no longer say, what
//! lines have beyond them is handed on as pieces without detail, so that both ways come to the same sum.

use std::collections::HashMap;
use std::sync::Arc;

use meter::{ExchangeId, Provenance};
use price::{Charge, Rate, Unpriced};

use super::ask::Ask;
use super::key::{Key, NO_DETAIL, Value};
use super::period;
use super::source::{Correction, Month, Range, Source, Trouble, Used};
use crate::key::Key as LineKey;
use crate::{Class, Line, Row};

/// A part of a report: a line, a row made a line, or what lines have beyond rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// What it sums.
    pub(crate) line: &'a Line,
    /// The month it is billed in.
    pub(crate) billed: Month,
    /// What rows say beyond lines.
    pub(crate) detail: Detail<'a>,
}

/// What rows say beyond lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail<'a> {
    /// It is a line's, and the keys were not asked for; or its row is not kept.
    None,
    /// A row's.
    Row(&'a Row),
}

impl Piece<'_> {
    /// The value of a key.
    pub(crate) fn value(&self, key: Key, rate: Option<&Rate>) -> Value {
        let line = self.line;
        match key {
            Key::Tenant => Value::Text(Arc::clone(&line.tenant)),
            Key::Principal => Value::maybe(line.principal.as_ref()),
            Key::Model => Value::Text(Arc::clone(&line.model)),
            Key::Upstream => Value::Text(Arc::clone(&line.upstream)),
            Key::Provider => Value::Text(Arc::clone(&line.provider)),
            Key::Ending => Value::Text(Arc::clone(&line.ending)),
            Key::Tier => Value::maybe(rate.map(|rate| &rate.tier)),
            Key::Version => Value::maybe(rate.map(|rate| &rate.version)),
            Key::Entry => Value::maybe(rate.map(|rate| &rate.entry)),
            Key::Currency => rate.map_or(Value::Null, |rate| Value::Text(rate.currency.code().into())),
            Key::Day => Value::Day(line.day),
            Key::Month => Value::Month(period::month_at(line.day)),
            Key::Billed => Value::Month(self.billed),
            Key::Class => Value::Word(line.class.name()),
            Key::InputProvenance => Value::Word(line.input_provenance.name()),
            Key::OutputProvenance => Value::Word(line.output_provenance.name()),
            Key::Unpriced => match (self.detail, line.class) {
                // Of a correction it is what its exchange was, so that both stand in one group.
                (Detail::Row(row), _) => match &row.charge {
                    Charge::Priced { .. } => Value::Null,
                    // It is charged with its decode leg.
                    Charge::Unpriced(Unpriced::Leg) => Value::Null,
                    Charge::Unpriced(why) => Value::Word(why.name()),
                },
                (Detail::None, Class::Usage | Class::Shed) if line.rate.is_some() => Value::Null,
                (Detail::None, _) => Value::Word(NO_DETAIL),
            },
            Key::Consumer | Key::ResponseModel | Key::Dialect => match self.detail {
                Detail::None => Value::Word(NO_DETAIL),
                Detail::Row(row) => match key {
                    Key::Consumer => Value::maybe(row.consumer.as_ref()),
                    Key::ResponseModel => Value::maybe(row.response_model.as_ref()),
                    _ => Value::Text(Arc::clone(&row.dialect)),
                },
            },
        }
    }
}

/// What takes pieces.
pub(crate) type To<'a> = dyn FnMut(Piece<'_>) -> Result<(), Trouble> + 'a;

/// Each piece that a report is made of, once; and each line, or what is left of one, that the range touches and of
/// which only rows that are gone said what falls into it.
pub(crate) fn each(
    source: &dyn Source,
    ask: &Ask,
    left_out: &mut To<'_>,
    to: &mut To<'_>,
) -> Result<(), Trouble> {
    // The line of prefill legs whose GPU use is not known makes no group of zeros.
    let mut to = |piece: Piece<'_>| match piece.line.class {
        Class::Usage | Class::Shed if is_nothing(piece.line) => Ok(()),
        _ => to(piece),
    };
    if ask.needs_rows() {
        from_rows(source, &ask.range, left_out, &mut to)
    } else {
        source.lines(&ask.range, &mut |billed, line| to(Piece { line, billed, detail: Detail::None }))
    }
}

/// What tells lines apart.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    billed: Month,
    day: i32,
    tenant: Arc<str>,
    principal: Option<Arc<str>>,
    upstream: Arc<str>,
    provider: Arc<str>,
    model: Arc<str>,
    ending: Arc<str>,
    input_provenance: Provenance,
    output_provenance: Provenance,
    rate: Option<[u8; 16]>,
}

impl Place {
    fn of(billed: Month, line: &Line) -> Self {
        Self {
            billed,
            day: line.day,
            tenant: Arc::clone(&line.tenant),
            principal: line.principal.clone(),
            upstream: Arc::clone(&line.upstream),
            provider: Arc::clone(&line.provider),
            model: Arc::clone(&line.model),
            ending: Arc::clone(&line.ending),
            input_provenance: line.input_provenance,
            output_provenance: line.output_provenance,
            rate: line.rate,
        }
    }
}

/// Each piece as rows have it, and what is left out as [`each`] says.
pub(crate) fn from_rows(
    source: &dyn Source,
    range: &Range,
    left_out: &mut To<'_>,
    to: &mut To<'_>,
) -> Result<(), Trouble> {
    let mut corrections: HashMap<ExchangeId, Vec<(Month, Correction)>> = HashMap::new();
    source.corrections(range, &mut |billed, correction| {
        corrections.entry(correction.exchange).or_default().push((billed, correction.clone()));
        Ok(())
    })?;
    // What the rows of whole days sum to; what lines have beyond it, rows do not say any more.
    let mut summed: HashMap<Place, Line> = HashMap::new();
    source.rows(&range.to_whole_days(), &mut |billed, row, used| {
        let line = line_of(row, used);
        if !range.holds(row.ended_us) {
            return sum(&mut summed, Place::of(billed, &line), &line);
        }
        let detail = Detail::Row(row);
        to(Piece { line: &line, billed, detail })?;
        for (billed, correction) in corrections.remove(&row.id).into_iter().flatten() {
            to(Piece { line: &correction.line, billed, detail })?;
        }
        sum(&mut summed, Place::of(billed, &line), &line)
    })?;
    let whole = range.whole_days();
    // A correction whose exchange has no row is left out where its exchange is.
    for (billed, correction) in corrections.into_values().flatten() {
        if whole.contains(&correction.line.day) {
            to(Piece { line: &correction.line, billed, detail: Detail::None })?;
        }
    }
    // A line without rows goes on as it is; one with rows waits, for a store may hand it in parts.
    let mut waiting: HashMap<Place, Line> = HashMap::new();
    source.lines(range, &mut |billed, line| {
        let place = Place::of(billed, line);
        match line.class {
            Class::Correction => Ok(()),
            Class::Usage if summed.contains_key(&place) => sum(&mut waiting, place, line),
            _ if whole.contains(&line.day) => to(Piece { line, billed, detail: Detail::None }),
            _ => left_out(Piece { line, billed, detail: Detail::None }),
        }
    })?;
    for (place, mut line) in waiting {
        take(&mut line, &summed[&place]).ok_or_else(|| disagree(&place))?;
        if is_nothing(&line) {
            continue;
        }
        let piece = Piece { line: &line, billed: place.billed, detail: Detail::None };
        // Part of a day: which of its exchanges fall into the range only rows say.
        if whole.contains(&place.day) { to(piece)? } else { left_out(piece)? }
    }
    Ok(())
}

fn sum(sums: &mut HashMap<Place, Line>, place: Place, line: &Line) -> Result<(), Trouble> {
    match sums.get_mut(&place) {
        Some(sum) => add(sum, line),
        None => {
            sums.insert(place, line.clone());
        }
    }
    Ok(())
}

fn is_nothing(line: &Line) -> bool {
    line.exchanges == 0
        && line.tokens.iter().all(|count| *count == 0)
        && line.energy_exchanges == 0
        && [line.cost_pico, line.energy_nj, line.gpu_ns, line.gpu_hours_pico, line.gpu_energy_pico] == [0; 5]
}

fn disagree(place: &Place) -> Trouble {
    format!(
        "the ledger's rows of {} for tenant `{}` and model `{}` sum to more than its daily totals: it was changed by hand or is damaged; run `tokenmeter ledger verify`",
        period::day(place.day),
        place.tenant.escape_debug(),
        place.model.escape_debug()
    )
    .into()
}

/// The line that a row alone would make.
pub fn line_of(row: &Row, used: Option<&Used>) -> Line {
    let mut line = LineKey::of_row(row, Class::Usage).line();
    line.add_row(row);
    if let Some(used) = used {
        line.add_used(used, row.role);
    }
    line
}

/// Adds the numbers of a line of the same keys.
pub(crate) fn add(to: &mut Line, line: &Line) {
    to.exchanges = to.exchanges.saturating_add(line.exchanges);
    for (to, from) in to.tokens.iter_mut().zip(line.tokens) {
        *to = to.saturating_add(from);
    }
    to.cost_pico += line.cost_pico;
    to.energy_exchanges += line.energy_exchanges;
    to.energy_nj += line.energy_nj;
    to.gpu_ns += line.gpu_ns;
    to.gpu_hours_pico += line.gpu_hours_pico;
    to.gpu_energy_pico += line.gpu_energy_pico;
}

/// Takes the numbers of a line off; `None` if there are not so many.
fn take(from: &mut Line, line: &Line) -> Option<()> {
    from.exchanges = from.exchanges.checked_sub(line.exchanges)?;
    for (from, take) in from.tokens.iter_mut().zip(line.tokens) {
        *from = from.checked_sub(take)?;
    }
    from.energy_exchanges = from.energy_exchanges.checked_sub(line.energy_exchanges)?;
    from.cost_pico -= line.cost_pico;
    from.energy_nj -= line.energy_nj;
    from.gpu_ns -= line.gpu_ns;
    from.gpu_hours_pico -= line.gpu_hours_pico;
    from.gpu_energy_pico -= line.gpu_energy_pico;
    Some(())
}
