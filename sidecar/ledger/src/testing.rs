//! What the tests of this crate are made of: a place on the disk that goes away, and rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};

use crate::report::source::Month;
use crate::report::{Ask, Basis, Key, Order, Range, make};
use crate::table::LATER_TOKENS;
use crate::{Row, Store, month};

/// The 15th of October 2026, noon.
pub(crate) const NOON_US: i64 = 1_792_065_600_000_000;

/// A directory of one test.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("ledger-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// One whose ledger a program of version 1 wrote.
    pub(crate) fn of_version_1() -> Self {
        let place = Self::new();
        let file = rusqlite::Connection::open(place.ledger()).unwrap();
        file.pragma_update(None, "journal_mode", "WAL").unwrap();
        file.execute_batch(include_str!("testing/version_1.sql")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path("x.db")
    }

    /// All that is there now, somewhere else: what a crash would leave.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        for entry in std::fs::read_dir(&self.0).unwrap() {
            let entry = entry.unwrap();
            // What maps the log is made anew by whoever opens it first.
            if !entry.file_name().to_str().unwrap().ends_with("-shm") {
                std::fs::copy(entry.path(), copy.0.join(entry.file_name())).unwrap();
            }
        }
        copy
    }

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

/// The notes of a report of one month that contain a text.
pub(crate) fn notes(ledger: &Path, of: Month, text: &str) -> Vec<String> {
    let ask = Ask {
        range: Range { since_us: month::begin_us(of), until_us: month::begin_us(of + 1) },
        billed: None,
        by: vec![Key::Tenant],
        filters: Vec::new(),
        basis: Basis::Price,
        order: Order::Keys,
        now_us: month::begin_us(of + 1),
    };
    let mut notes = make(&Store::open_read(ledger).unwrap(), &ask).unwrap().sentences(None);
    notes.retain(|note| note.contains(text));
    notes
}

/// A charge by the rate of a number.
pub(crate) fn rate(n: u64) -> Charge {
    let mut id = [7; 16];
    id[..8].copy_from_slice(&n.to_le_bytes());
    // Images and videos have no price of their own, so that a file of version 1 can hold the rate.
    let per_token = TokenType::ALL.map(|kind| (!LATER_TOKENS.contains(&kind.name())).then_some(1_000_000));
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
pub(crate) fn row(n: u64) -> Row {
    let mut by_type = [0; TokenType::ALL.len()];
    by_type[TokenType::Input as usize] = n % 100;
    by_type[TokenType::Output as usize] = n % 17 + 1;
    Row {
        id: ExchangeId::new(u64::try_from(NOON_US).unwrap() * 1000, u128::from(n)),
        started_us: NOON_US - 5_000,
        ended_us: NOON_US + i64::try_from(n).unwrap(),
        tenant: format!("tenant-{}", n % 3).into(),
        principal: n.is_multiple_of(2).then(|| "key-1".into()),
        consumer: None,
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: format!("model-{}", n % 2).into(),
        response_model: Some("m".into()),
        response_id: Some(format!("chatcmpl-{n}").into()),
        service_tier: None,
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
        trace: None,
        role: meter::Role::Whole,
        request_id: None,
        upstream_attempts: 1,
        cached_excess: 0,
    }
}
