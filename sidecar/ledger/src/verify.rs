//! Whether a ledger is what was written into it: everything read, summed and hashed again.
//!
//! Law: nothing that was stored is believed. Lines are made anew from rows, chains and digests from the
//! columns, and every difference is told with where it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use price::Currency;
use rusqlite::Connection;
use text::{money, nano};

use crate::failure::Failure;
use crate::file::{self, File};
use crate::key::Key;
use crate::line::{Class, Line};
use crate::missing::Missing;
use crate::report::period;
use crate::report::source::Month;
use crate::sign_off::SignOff;
use crate::table::{ACT, CORRECTION, DEVICE, Digest, ENERGY, EXCHANGE, GAP, LINE, RATE};
use crate::values::{Columns, Names};
use crate::{check, digest, files, month};

/// Of so many differences of one kind each is told; of more, how many there are.
const TOLD: usize = 20;

/// What was found of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The month.
    pub month: Option<Month>,
    /// The file.
    pub path: PathBuf,
    /// Exchanges that were read.
    pub rows: u64,
    /// The digest, if the month is closed.
    pub digest: Option<String>,
    /// What differs; nothing if all is well.
    pub differences: Vec<String>,
}

/// Verifies a ledger, or a month of it; also while it is being written.
///
/// # Errors
/// There is no such ledger or month.
pub fn verify(path: &Path, only: Option<Month>) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    let mut missing = Missing::new(path).map_err(|error| Failure::from(error).of(path.display()))?;
    let mut previous: Option<(Month, Digest)> = None;
    files::is_whole(path).map_err(|error| Failure::from(error).of(path.display()))?;
    for name in files::list(path).map_err(|error| Failure::from(error).of(path.display()))? {
        let mut verdict =
            Verdict { month: None, path: name.clone(), rows: 0, digest: None, differences: Vec::new() };
        let closed = match File::open_read(&name) {
            Ok(file) => {
                verdict.month = Some(file.month);
                missing.read(&file);
                let wanted = only.is_none_or(|month| month == file.month);
                if !wanted && file::number(&file.connection, "closed_us").is_ok_and(|closed| closed.is_none())
                {
                    continue;
                }
                let closed = look(path, &file, previous.as_ref(), &mut verdict, wanted);
                closed.unwrap_or_else(|failure| {
                    verdict.differences.push(failure.said);
                    None
                })
            }
            Err(failure) => {
                verdict.differences.push(failure.said);
                None
            }
        };
        if let (Some(month), Some(digest)) = (verdict.month, closed) {
            verdict.digest = Some(digest::hex(&digest));
            previous = Some((month, digest));
        }
        if only.is_none() || verdict.month.is_none() || verdict.month == only {
            verdicts.push(verdict);
        }
    }
    verdicts.extend(gone(path, &missing).filter(|gone| only.is_none() || gone.month == only));
    if let Some(wanted) = only.filter(|wanted| !verdicts.iter().any(|verdict| verdict.month == Some(*wanted)))
    {
        return Err(Failure::new(
            crate::Fault::Other,
            format!("{}: there is no file of {}", path.display(), month::name(wanted)),
        ));
    }
    if verdicts.is_empty() {
        return Err(Failure::new(
            crate::Fault::Other,
            format!("{}: there is no ledger here: is the path right?", path.display()),
        ));
    }
    Ok(verdicts)
}

/// A verdict for each month that is gone.
fn gone(path: &Path, missing: &Missing) -> impl Iterator<Item = Verdict> {
    missing.named().map(move |(month, why)| Verdict {
        month: Some(month),
        path: files::of_month(path, month),
        rows: 0,
        digest: None,
        differences: vec![format!("{why}, and its file is gone: put it back from a copy")],
    })
}

/// Reads one file. The digest it was closed with, if it was.
fn look(
    path: &Path,
    file: &File,
    previous: Option<&(Month, Digest)>,
    verdict: &mut Verdict,
    wanted: bool,
) -> Result<Option<Digest>, Failure> {
    // One state, while others may write.
    let connection = file.connection.unchecked_transaction()?;
    let closed = match file::bytes(&connection, "digest")? {
        Some(digest) => Some(
            Digest::try_from(digest)
                .map_err(|_| Failure::corrupt("the digest is not as long as digests are"))?,
        ),
        None => None,
    };
    if !wanted {
        return Ok(closed);
    }
    let found = contents(file)?;
    verdict.rows = found.rows;
    verdict.differences.extend(found.differences);
    if let Some(stored) = &closed {
        let before = file::bytes(&connection, "previous")?;
        if before.as_deref() != previous.map(|(_, digest)| &digest[..]) {
            verdict.differences.push(match previous {
                Some((month, _)) => {
                    format!("it was not closed after {} as that is now", month::name(*month))
                }
                None => "the month closed before it is not there".to_owned(),
            });
        }
        let before = before.and_then(|digest| Digest::try_from(digest).ok());
        match digest::month(&connection, file.month, before.as_ref()) {
            Ok(made) if made == *stored => {}
            Ok(made) => verdict.differences.push(format!(
                "its digest is {} and was {} when it was closed",
                digest::hex(&made),
                digest::hex(stored)
            )),
            Err(failure) => verdict.differences.push(failure.said),
        }
        let signed = files::sign_off(path, file.month);
        match SignOff::of(&connection, &file.path).map(|sign_off| sign_off.differs_from(&signed)) {
            Ok(Some(difference)) => verdict.differences.push(difference),
            Ok(None) => {}
            Err(failure) => verdict.differences.push(failure.said),
        }
    }
    Ok(closed)
}

/// What a file holds.
pub(crate) struct Contents {
    /// Exchanges that were read.
    pub(crate) rows: u64,
    /// What is not as it was written; nothing if all is well.
    pub(crate) differences: Vec<String>,
}

/// Reads a file by itself, whatever the others hold.
pub(crate) fn contents(file: &File) -> Result<Contents, Failure> {
    let connection = &file.connection;
    let mut differences = Vec::new();
    let mut note = |result: Result<(), Failure>| differences.extend(result.err().map(|failure| failure.said));
    note(match check::lacks_log(file) {
        Ok(true) => Err(Failure::corrupt(check::LACKS_LOG)),
        other => other.map(|_| ()),
    });
    note(check::pages(file, "integrity_check"));
    for table in [&*DEVICE, &*ACT, &*GAP] {
        note(file::whole(connection, table, |_| Ok(())).map(|_| ()));
    }
    note(match file::days(connection) {
        Ok(Some(days)) if file::days_of_lines(connection)? != Some(days.clone()) => {
            Err(Failure::corrupt("its lines are not of the days that it says"))
        }
        other => other.map(|_| ()),
    });
    let mut sums = Sums::default();
    let compared = sums.read(connection);
    // First what was changed, then what follows from it.
    differences.extend(sums.wrong.said());
    match compared {
        Err(failure) => {
            differences.push(failure.said);
            differences.push("so its lines were not compared with its rows".to_owned());
        }
        // What lines are the sums of is not there any more; they have their own seal.
        Ok(()) if sums.compacted => {}
        Ok(()) => differences.extend(sums.differences()),
    }
    Ok(Contents { rows: sums.rows, differences })
}

/// What is wrong with rows: so much that is told, and how much more there is.
#[derive(Default)]
struct Wrong {
    told: Vec<String>,
    more: u64,
}

impl Wrong {
    fn tell(&mut self, failure: Failure) {
        match self.told.len() < TOLD {
            true => self.told.push(failure.said),
            false => self.more += 1,
        }
    }

    fn said(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} more of such", self.more));
        self.told.iter().cloned().chain(more)
    }
}

/// Lines as they are, and as they should be.
#[derive(Default)]
struct Sums {
    rows: u64,
    compacted: bool,
    wrong: Wrong,
    currencies: HashMap<[u8; 16], Currency>,
    made: BTreeMap<Key, Line>,
    stored: BTreeMap<Key, Line>,
    rates: BTreeSet<[u8; 16]>,
    named: BTreeSet<[u8; 16]>,
}

impl Sums {
    fn read(&mut self, connection: &Connection) -> Result<(), Failure> {
        let mut names = Names::default();
        let mut rates = HashMap::new();
        file::whole(connection, &RATE, |values| {
            let rate = Columns::new(values, &mut names).rate()?;
            self.rates.insert(rate.id);
            self.currencies.insert(rate.id, rate.currency);
            rates.insert(rate.id, std::sync::Arc::new(rate));
            Ok(())
        })?;
        file::whole(connection, &LINE, |values| {
            let line = Columns::new(values, &mut names).line()?;
            self.named.extend(line.rate);
            self.stored.insert(Key::of(&line), line);
            Ok(())
        })?;
        self.compacted = file::compacted(connection, &EXCHANGE)?.entered > 0;
        let Self { wrong, made, compacted, rows, .. } = self;
        let mut tell = |failure| wrong.tell(failure);
        file::whole_as_it_is(connection, &EXCHANGE, &mut tell, |values| {
            let row = Columns::new(&values[1..], &mut names).row(|id| rates.get(id).cloned())?;
            *rows += 1;
            let key = Key::of_row(&row, Class::Usage);
            made.entry(key.clone()).or_insert_with(|| key.line()).add_row(&row);
            Ok(())
        })?;
        let mut find = connection.prepare(&format!("{} WHERE id = ?", EXCHANGE.select()))?;
        let mut scratch = Vec::new();
        file::whole_as_it_is(connection, &ENERGY, &mut tell, |values| {
            let mut columns = Columns::new(&values[2..], &mut names);
            let (ended_us, used) = (columns.number()?, columns.used()?);
            let (class, key) = columns.energy_key(month::day(ended_us))?;
            let role = Columns::new(&values[values.len() - 1..], &mut names).role()?;
            let key = match key {
                Some(key) => key,
                None => {
                    table_id(&mut find, values[1])?;
                    let mut found = find.raw_query();
                    let Some(row) = found.next()? else {
                        if *compacted {
                            return Ok(());
                        }
                        return Err(Failure::corrupt("the exchange of an energy is not there"));
                    };
                    let (values, ..) = EXCHANGE.read_as_it_is(row, &mut scratch)?;
                    Key::of_row(
                        &Columns::new(&values[1..], &mut names).row(|id| rates.get(id).cloned())?,
                        class,
                    )
                }
            };
            made.entry(key.clone()).or_insert_with(|| key.line()).add_used(&used, role);
            Ok(())
        })?;
        file::whole_as_it_is(connection, &CORRECTION, &mut tell, |values| {
            let line = Columns::new(&values[1..], &mut names).correction()?.line;
            let key = Key::of(&line);
            made.entry(key.clone()).or_insert_with(|| key.line()).add(&line);
            Ok(())
        })?;
        Ok(())
    }

    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let keys: BTreeSet<&Key> = self.made.keys().chain(self.stored.keys()).collect();
        // The rows of what was shed were never written; its lines have their seal.
        let keys = keys.into_iter().filter(|key| key.class != Class::Shed);
        for key in keys {
            let (made, stored) = (self.made.get(key), self.stored.get(key));
            if made != stored {
                let currency = key.rate.and_then(|rate| self.currencies.get(&rate));
                let said = difference(key, currency.map(Currency::code), made, stored);
                differences.push(match self.wrong.told.is_empty() {
                    true => said,
                    false => format!("so {said}"),
                });
            }
        }
        let missing = self.named.difference(&self.rates).count();
        if missing > 0 {
            differences.push(match missing {
                1 => "1 rate that lines name is not there".to_owned(),
                _ => format!("{missing} rates that lines name are not there"),
            });
        }
        let more = differences.len().saturating_sub(TOLD);
        if more > 0 {
            differences.truncate(TOLD);
            differences.push(format!("and {more} more of such lines"));
        }
        differences
    }
}

fn table_id(find: &mut rusqlite::Statement<'_>, id: rusqlite::types::ValueRef<'_>) -> Result<(), Failure> {
    crate::table::bind(find, &[id])
}

/// What a line says and what its rows come to, where the two differ; `None` if there is neither.
pub fn line_difference(currency: Option<&str>, made: Option<&Line>, stored: Option<&Line>) -> Option<String> {
    Some(difference(&Key::of(stored.or(made)?), currency, made, stored))
}

fn difference(key: &Key, currency: Option<&str>, made: Option<&Line>, stored: Option<&Line>) -> String {
    let told = |line: Option<&Line>| match line {
        None => "nothing".to_owned(),
        Some(line) => format!(
            "{} exchanges, {} tokens, {}, {} s of GPU time",
            line.exchanges,
            line.tokens.iter().map(|count| u128::from(*count)).sum::<u128>(),
            match currency {
                Some(code) => format!("{} {code}", money(line.cost_pico)),
                None => "no price".to_owned(),
            },
            nano(line.gpu_ns)
        ),
    };
    format!(
        "the {} line of {} of tenant {:?}, model {:?} ({}) says {}; its rows come to {}",
        key.class.name(),
        period::day(key.day),
        key.tenant,
        key.model,
        key.ending,
        told(stored),
        told(made)
    )
}
