//! Compares a ledger's files, read by SQL without the ledger's own code, with the written rows: every row is unchanged
//! and unique, no acknowledged row is missing, and the daily totals are the sums of the rows.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ledger::Row;
use rusqlite::{Connection, OpenFlags};

use crate::rows::Place;

/// The result of one life of the scribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Rows it entered.
    pub entered: u32,
    /// The number of acknowledged rows, which are the first ones.
    pub acknowledged: u32,
}

/// The contents of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows.
    pub rows: u64,
    /// Exchanges that are known only as totals.
    pub shed: u64,
    /// Lost exchanges, by the gaps with a number.
    pub lost: u64,
    /// Gap markers.
    pub gaps: u64,
}

/// The files of a ledger: the open month, and those beside it.
pub fn files(ledger: &Path) -> Vec<PathBuf> {
    let folder = ledger.parent().expect("a ledger is in a folder");
    let stem = ledger.file_stem().and_then(|stem| stem.to_str()).expect("it has a name");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .filter(|path| {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            name == stem || name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-'))
        })
        .collect();
    files.sort();
    files
}

/// Audits the ledger at `path` against the rows that the `lives` of the scribe wrote, from `base_us` on.
///
/// # Errors
///
/// The first difference, for people.
pub fn audit(path: &Path, base_us: i64, lives: &[Life]) -> Result<Found, String> {
    let mut seen: HashMap<Place, u32> = HashMap::new();
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut lines: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut found = Found::default();
    for file in files(path) {
        let told = |error: rusqlite::Error| format!("{}: {error}", file.display());
        let file = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(told)?;
        read_rows(&file, &mut |got| {
            let place = Place::of(got.id);
            *seen.entry(place).or_default() += 1;
            let wanted = Told::of(&place.row(base_us));
            if got != wanted {
                return Err(format!("{place:?} is not as it was written:\n  {got:?}\n  {wanted:?}"));
            }
            sums.entry(got.key()).or_default().add(&got);
            found.rows += 1;
            Ok(())
        })?;
        read_lines(&file, &mut lines, &mut found.shed).map_err(told)?;
        let gaps: (u64, u64) = file
            .query_row(
                "SELECT count(*), coalesce(sum(lost_rows) FILTER (WHERE NOT totals_kept), 0) FROM gap",
                [],
                |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs())),
            )
            .map_err(told)?;
        found.gaps += gaps.0;
        found.lost += gaps.1;
    }
    if let Some((place, times)) = seen.iter().find(|(_, times)| **times > 1) {
        return Err(format!("{place:?} is there {times} times"));
    }
    if let Some(place) = seen.keys().find(|place| !was_entered(**place, lives)) {
        return Err(format!("{place:?} was never entered"));
    }
    if found.shed == 0 {
        for (life, did) in (0..).zip(lives) {
            let lost =
                (0..did.acknowledged).map(|index| Place { life, index }).find(|at| !seen.contains_key(at));
            if let Some(place) = lost {
                return Err(format!("{place:?} was acknowledged and is gone; its life did {did:?}"));
            }
        }
    }
    if sums != lines {
        let odd = sums.keys().chain(lines.keys()).find(|key| sums.get(*key) != lines.get(*key));
        let odd = odd.expect("they differ somewhere");
        return Err(format!(
            "the line {odd:?} says {:?} and its rows {:?}",
            lines.get(odd).copied().unwrap_or_default(),
            sums.get(odd).copied().unwrap_or_default(),
        ));
    }
    Ok(found)
}

fn was_entered(place: Place, lives: &[Life]) -> bool {
    lives.get(place.life as usize).is_some_and(|life| place.index < life.entered)
}

/// The compared facts of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    id: [u8; 16],
    ended_us: i64,
    tenant: String,
    principal: String,
    model: String,
    ending: String,
    provenances: [String; 2],
    tokens: [i64; TYPES.len()],
    cost: Option<i64>,
}

/// Day, tenant, principal, model, ending, provenances, and true with a price.
type Key = (i64, String, String, String, String, [String; 2], bool);

/// Exchanges, tokens, cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    exchanges: i64,
    tokens: [i64; TYPES.len()],
    cost: i128,
}

impl Sum {
    fn add(&mut self, row: &Told) {
        self.exchanges += 1;
        for (sum, count) in self.tokens.iter_mut().zip(row.tokens) {
            *sum += count;
        }
        self.cost += i128::from(row.cost.unwrap_or(0));
    }
}

impl Told {
    fn of(row: &Row) -> Self {
        Self {
            id: row.id.0,
            ended_us: row.ended_us,
            tenant: row.tenant.to_string(),
            principal: row.principal.as_deref().unwrap_or_default().to_owned(),
            model: row.model.to_string(),
            ending: row.ending.to_string(),
            provenances: [row.tokens.input_provenance.name(), row.tokens.output_provenance.name()]
                .map(str::to_owned),
            tokens: TYPES.map(|name| {
                let kind = meter::TokenType::ALL.into_iter().find(|kind| kind.name() == name);
                kind.map_or(0, |kind| row.tokens.of(kind).cast_signed())
            }),
            cost: row.charge.cost(),
        }
    }

    fn key(&self) -> Key {
        (
            self.ended_us.div_euclid(86_400_000_000),
            self.tenant.clone(),
            self.principal.clone(),
            self.model.clone(),
            self.ending.clone(),
            self.provenances.clone(),
            self.cost.is_some(),
        )
    }
}

/// The columns of tokens.
const TYPES: [&str; 14] = [
    "input",
    "input_cached",
    "input_cache_write",
    "input_cache_write_1h",
    "input_audio",
    "input_image",
    "input_video",
    "input_cached_audio",
    "input_cached_image",
    "output",
    "output_reasoning",
    "output_audio",
    "output_image",
    "output_video",
];

fn read_rows(file: &Connection, each: &mut dyn FnMut(Told) -> Result<(), String>) -> Result<(), String> {
    let told = |error: rusqlite::Error| error.to_string();
    let sql = format!(
        "SELECT id, ended_us, tenant, coalesce(principal, ''), model, ending, input_provenance,
                output_provenance, cost_pico, {} FROM exchange",
        TYPES.map(|name| format!("ifnull({name}, 0)")).join(", ")
    );
    let mut statement = file.prepare(&sql).map_err(told)?;
    let mut rows = statement.query([]).map_err(told)?;
    while let Some(row) = rows.next().map_err(told)? {
        let read = || {
            let mut tokens = [0; TYPES.len()];
            for (at, count) in (9..).zip(&mut tokens) {
                *count = row.get(at)?;
            }
            Ok(Told {
                id: row.get(0)?,
                ended_us: row.get(1)?,
                tenant: row.get(2)?,
                principal: row.get(3)?,
                model: row.get(4)?,
                ending: row.get(5)?,
                provenances: [row.get(6)?, row.get(7)?],
                cost: row.get(8)?,
                tokens,
            })
        };
        each(read().map_err(told)?)?;
    }
    Ok(())
}

fn read_lines(file: &Connection, lines: &mut BTreeMap<Key, Sum>, shed: &mut u64) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT day, tenant, principal, model, ending, input_provenance, output_provenance,
                length(rate) > 0, class, exchanges, cost_high, cost_low, {} FROM line",
        TYPES.map(|name| format!("ifnull({name}, 0)")).join(", ")
    );
    let mut statement = file.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let class: String = row.get(8)?;
        let exchanges: i64 = row.get(9)?;
        if class == "shed" {
            *shed += exchanges.unsigned_abs();
            continue;
        }
        let key = (
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            [row.get(5)?, row.get(6)?],
            row.get(7)?,
        );
        let sum = lines.entry(key).or_default();
        sum.exchanges += exchanges;
        sum.cost += i128::from(row.get::<_, i64>(10)?) * 1_000_000 + i128::from(row.get::<_, i64>(11)?);
        for (at, count) in (12..).zip(&mut sum.tokens) {
            *count += row.get::<_, i64>(at)?;
        }
    }
    Ok(())
}
