//! Parts of tests: a directory that goes away, rows, and months written in one transaction. Also for tests of other
//! crates, by the feature `testing`.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests fail by panics")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};

use crate::file::File;
use crate::source::{Correction, DeviceTotal, Gap, Month, Used};
#[cfg(test)]
use crate::source::{Range, Source};
use crate::txn::Txn;
use crate::{Calendar, DailyTotal, EnergyRow, Row, files, time_zone};
#[cfg(test)]
use crate::{Store, month};

/// The 15th of October 2026, noon.
pub const NOON_US: i64 = 1_792_065_600_000_000;

/// A directory of one test.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Makes one.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("ledger-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a name in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path of its ledger.
    pub fn ledger(&self) -> PathBuf {
        self.path("x.db")
    }

    /// All that is there now, somewhere else: what a crash would leave.
    #[cfg(test)]
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        for entry in std::fs::read_dir(&self.0).unwrap() {
            let entry = entry.unwrap();
            // The log's index is made anew by the next process that opens the file.
            if !entry.file_name().to_str().unwrap().ends_with("-shm") {
                std::fs::copy(entry.path(), copy.0.join(entry.file_name())).unwrap();
            }
        }
        copy
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl AsRef<Path> for Place {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns what a report of one month notes of its files, as far as it contains a text: `gap (REASON) from MONTH`, and
/// files without their log.
#[cfg(test)]
pub(crate) fn notes(ledger: &Path, of: Month, text: &str) -> Vec<String> {
    let range = Range { since_us: month::begin_us(of), until_us: month::begin_us(of + 1) };
    let store = Store::open_read(ledger).unwrap();
    let gaps = store.gaps(&range).unwrap().into_iter().filter(|gap| gap.concerns(&range));
    let gaps = gaps.map(|gap| format!("gap ({}) from {}", gap.why, month::name(month::of(gap.from_us))));
    let files = store.without_log(&range).unwrap();
    let without_log = files.iter().map(|file| format!("{}: {}", file.display(), crate::LACKS_LOG));
    gaps.chain(without_log).filter(|note| note.contains(text)).collect()
}

/// The contents of a month for [`write_month`].
#[derive(Clone, Debug, Default)]
pub struct Contents<'c> {
    /// The rates that the rest names.
    pub rates: &'c [Arc<Rate>],
    /// Rows, each with its GPU use.
    pub rows: Vec<&'c (Month, Row, Option<Used>)>,
    /// Totals without rows.
    pub shed: Vec<&'c DailyTotal>,
    /// Corrections.
    pub corrections: Vec<&'c Correction>,
    /// GPU use without an exchange.
    pub devices: Vec<&'c DeviceTotal>,
    /// Gaps.
    pub gaps: &'c [Gap],
    /// The ledger's calendar.
    pub calendar: Calendar,
}

/// Writes the file of a month in one transaction.
pub fn write_month(ledger: &Path, month: Month, is_open: bool, contents: &Contents<'_>) {
    let path = if is_open { ledger.to_owned() } else { files::of_month(ledger, month) };
    let mut file = File::create(&path, month, 1, |_| Ok(())).unwrap();
    let mut txn = Txn::begin(&mut file).unwrap();
    time_zone::write(&txn, &contents.calendar).unwrap();
    txn.rates(contents.rates.iter().map(|rate| &**rate)).unwrap();
    txn.exchanges(contents.rows.iter().map(|(_, row, _)| row)).unwrap();
    let used = contents.rows.iter().filter_map(|(_, row, used)| Some(EnergyRow::of(row, (*used)?)));
    txn.energies(&used.collect::<Vec<_>>()).unwrap();
    contents.shed.iter().for_each(|line| txn.total(&line.key, &line.sums));
    let act = txn.audit(1, "repriced", "a test", "{}").unwrap();
    txn.corrections(act, contents.corrections.iter().copied()).unwrap();
    txn.devices(contents.devices.iter().copied()).unwrap();
    contents.gaps.iter().for_each(|gap| txn.gap(gap).unwrap());
    txn.commit().unwrap();
}

/// Adds totals without rows to the file of the open month.
pub fn add_total(ledger: &Path, line: &DailyTotal) {
    let mut file = File::open(ledger).unwrap();
    let mut txn = Txn::begin(&mut file).unwrap();
    txn.total(&line.key, &line.sums);
    txn.commit().unwrap();
}

/// Takes the step of retention that is due at an instant. It deletes rows of closed months that are older than one day,
/// in files for which `may_forget` returns true.
pub fn retain(ledger: &Path, now_us: i64, may_forget: &dyn Fn(&Path) -> bool) {
    crate::retain::step(ledger, &Calendar::default(), 1, may_forget, "test", now_us).unwrap();
}

/// A charge by the rate of a number.
pub fn rate(n: u64) -> Charge {
    let mut id = [7; 16];
    id[..8].copy_from_slice(&n.to_le_bytes());
    let mut per_token = [Some(1_000_000); TokenType::ALL.len()];
    // Charged by the prices of other types.
    for kind in [
        TokenType::InputCacheWrite1h,
        TokenType::InputImage,
        TokenType::InputVideo,
        TokenType::InputCachedAudio,
        TokenType::InputCachedImage,
        TokenType::OutputImage,
        TokenType::OutputVideo,
    ] {
        per_token[kind as usize] = None;
    }
    let rate = Rate {
        id,
        version: "2026-10".into(),
        book: "b00c".into(),
        entry: format!("model-{n}").into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token,
        per_request: 0,
    };
    Charge::Priced { rate: Arc::new(rate), cost: i64::try_from(n % 1000).unwrap() * 1_000_001 + 1 }
}

/// The row of a number: one of three tenants, two models, priced but each seventh.
pub fn row(n: u64) -> Row {
    let mut by_type = [0; TokenType::ALL.len()];
    by_type[TokenType::Input as usize] = n % 100;
    by_type[TokenType::Output as usize] = n % 17 + 1;
    Row {
        id: ExchangeId::new(u64::try_from(NOON_US).unwrap() * 1000, u128::from(n)),
        started_us: NOON_US - 5_000,
        ended_us: NOON_US + i64::try_from(n).unwrap(),
        tenant: format!("tenant-{}", n % 3).into(),
        principal: n.is_multiple_of(2).then(|| "key-1".into()),
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: format!("model-{}", n % 2).into(),
        response_model: Some("m".into()),
        response_id: Some(format!("chatcmpl-{n}").into()),
        ending: "complete".into(),
        status: 200,
        streamed: n.is_multiple_of(2),
        tokens: Tokens {
            by_type,
            input_provenance: Provenance::Reported,
            output_provenance: if n.is_multiple_of(5) { Provenance::Frames } else { Provenance::Reported },
        },
        duration_us: 5_000,
        first_token_us: Some(100),
        charge: if n.is_multiple_of(7) { Charge::Unpriced(Unpriced::Model) } else { rate(n % 2) },
        ..Row::default()
    }
}
