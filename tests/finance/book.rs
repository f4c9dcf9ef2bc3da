//! A ledger of two months in a folder of its own, written as by a proxy.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ledger::{Plan, Row};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Book, Charge, Unpriced, Usage};

/// The price file that charges everything, and that recipes use to reprice.
const PRICES: &str = "\
version: example-2026
currency: USD
unit: per_million
models:
  - {pattern: 'llama*', developer: Meta, family: Llama, input: 0.50, cached_input: 0.05, output: 2.00}
";

/// The 2nd of October 2026, noon, and the 2nd of November: microseconds since 1970.
const OCTOBER_US: i64 = 1_790_942_400_000_000;
const NOVEMBER_US: i64 = 1_793_620_800_000_000;

/// The time between two exchanges of a tenant, microseconds.
const SPACING_US: i64 = 1_000_000_000;

/// A folder that is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A folder with `tokenmeter.db` of November, October beside it, and `prices.yaml`.
    pub(crate) fn with_a_ledger() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("tokenmeter-finance-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        std::fs::write(folder.0.join("prices.yaml"), PRICES).expect("written");
        let (book, _) = Book::read(PRICES).expect("it is right");
        let now = NOVEMBER_US + 20 * 86_400_000_000;
        let plan = Plan { clock: Arc::new(move || now), ..Plan::new(folder.0.join("tokenmeter.db")) };
        let ledger = ledger::start(plan);
        for (start, tenant, model, count) in [
            (OCTOBER_US, "acme", "llama-3", 2_140_u64),
            (OCTOBER_US, "beta", "llama-3-70b", 716),
            (NOVEMBER_US, "acme", "llama-3", 1_187),
            (NOVEMBER_US, "beta", "brand-new", 512),
        ] {
            for n in 0..count {
                ledger.enter(row(
                    &book,
                    start + i64::try_from(n).expect("small") * SPACING_US,
                    tenant,
                    model,
                    n,
                ));
            }
        }
        assert!(ledger.shutdown(Duration::from_secs(60)), "{:?}", ledger.status());
        assert!(folder.0.join("tokenmeter-2026-10.db").is_file(), "October lies beside it");
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn row(book: &Book, ended_us: i64, tenant: &str, model: &str, n: u64) -> Row {
    let mut by_type = [0; TokenType::ALL.len()];
    by_type[TokenType::Input as usize] = 10_000;
    by_type[TokenType::InputCached as usize] = 2_000;
    by_type[TokenType::Output as usize] = 1_000;
    let tokens = Tokens {
        by_type,
        input_provenance: Provenance::Reported,
        output_provenance: if n % 10 == 9 { Provenance::Frames } else { Provenance::Reported },
    };
    // The first attempt of every second request fails.
    let success = !n.is_multiple_of(4);
    let usage = Usage {
        tenant,
        model,
        response_model: None,
        provider: "vllm",
        upstream: "default",
        tier: None,
        requested_tier: None,
        at_us: ended_us,
        tokens: &by_type,
        success,
        processed: true,
        counted: true,
    };
    let charge = match book.charge(&usage) {
        Charge::Unpriced(_) => Charge::Unpriced(Unpriced::Model),
        priced => priced,
    };
    let began_ns = u64::try_from(ended_us).expect("after 1970") * 1000;
    Row {
        id: ExchangeId::new(began_ns, u128::from(n) << 8 | u128::from(model.len() as u64)),
        started_us: ended_us - 900_000,
        ended_us,
        tenant: tenant.into(),
        principal: Some("key-1".into()),
        consumer: None,
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: model.into(),
        response_model: Some(model.into()),
        response_id: None,
        service_tier: None,
        ending: if success { "complete" } else { "upstream_cut" }.into(),
        status: 200,
        streamed: true,
        tokens,
        duration_us: 900_000,
        first_token_us: Some(100_000),
        charge,
        trace: None,
        role: meter::Role::Whole,
        // Every second one is a repetition.
        request_id: Some(format!("{tenant}-{model}-{}", n / 2).into()),
        upstream_attempts: 1,
        cached_excess: 0,
        usage_disagreement: None,
        day: None,
    }
}
