//! The flags of `ledger reprice`, and its result on a ledger.

use std::process::ExitCode;

use ledger::period::Time;

use super::super::ledger::LedgerArgs;
use super::super::parse;
use super::{RepriceArgs, run, summary};
use crate::cli::Action;

fn args(line: &str) -> Result<RepriceArgs, String> {
    match parse(&format!("ledger {line}"))? {
        Action::Ledger(LedgerArgs::Reprice(args)) => Ok(args),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn flags_are_parsed() {
    let line = "reprice --since 2026-10 --until 2026-11 --prices p.yaml --model llama* --where tenant!=acme";
    let args = args(&format!("{line} --unpriced-only --dry-run")).unwrap();
    assert_eq!(args.since, Time::Month(681));
    assert_eq!(args.until, Time::Month(682));
    let filters = ["tenant!=acme", "model=llama*"].map(|text| report::Filter::read(text).unwrap());
    assert_eq!(args.filters(), filters);
    assert!(args.dry_run && args.unpriced_only);
    for missing in ["reprice --since 2026-10 --until 2026-11", "reprice --since 2026-10 --prices p.yaml"] {
        assert!(self::args(missing).is_err(), "{missing}");
    }
}

#[test]
fn errors_have_remedies() {
    let line = "reprice --since 2026-10 --until 2026-11 --prices /nowhere/p.yaml --ledger";
    let error = run(&args(&format!("{line} x.db")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/p.yaml") && error.contains("--prices"), "{error}");
    let error = run(&args(&format!("{line} postgres://host/db")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/p.yaml"), "{error}");
}

#[test]
fn repricing_prints_its_result() {
    let folder = std::env::temp_dir().join(format!("reprice-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let prices = folder.join("prices.yaml");
    std::fs::write(&prices, "version: second\ncurrency: USD\nmodels:\n  - {name: m, input: 1, output: 2}\n")
        .unwrap();
    let path = folder.join("x.db");
    let ledger = ledger::start(ledger::Plan::new(&path));
    assert!(ledger.shutdown(std::time::Duration::from_secs(30)), "{:?}", ledger.status());
    let line = format!(
        "reprice --since 2026-10 --until 2026-11 --prices {} --ledger {}",
        prices.display(),
        path.display()
    );
    assert_eq!(run(&args(&format!("{line} --dry-run")).unwrap()).unwrap(), ExitCode::SUCCESS);
    assert_eq!(run(&args(&line).unwrap()).unwrap(), ExitCode::SUCCESS);
    std::fs::remove_dir_all(&folder).unwrap();

    let (book, _) =
        price::Book::read("version: v\ncurrency: USD\nmodels:\n  - {name: m, input: 1, output: 2}\n")
            .unwrap();
    let outcome = report::Outcome {
        exchanges: 1200,
        unchanged: 1189,
        differing: 7,
        newly_priced: 2,
        before_pico: 1_000_000_000_000,
        after_pico: 1_500_000_000_000,
        entered: 7,
        gone: [("old".into(), 1)].into(),
        unpriced: [(("new".into(), price::Unpriced::Model), 3)].into(),
        ..report::Outcome::default()
    };
    let text = summary(&outcome, &book, false);
    for part in [
        "1,200 exchanges compared with",
        "1,189 are charged the same by that book",
        "7 differ, 2 of them had no price: 1.00 USD before, 1.50 USD after, 0.50 USD in corrections",
        "3 exchanges of new, for which the book has no price (model)",
        "1 exchange of old, whose rows were deleted",
        "7 corrections were entered",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn dry_run_lists_differences_by_tenant_and_model() {
    let (book, _) =
        price::Book::read("version: v\ncurrency: EUR\nmodels:\n  - {name: m, input: 1, output: 2}\n")
            .unwrap();
    let change = |exchanges, newly_priced, before_pico, after_pico| report::Change {
        exchanges,
        newly_priced,
        before_pico,
        after_pico,
    };
    let unit = 1_000_000_000_000;
    let outcome = report::Outcome {
        exchanges: 2_000,
        differing: 1_203,
        newly_priced: 1,
        before_pico: 12 * unit,
        after_pico: 10 * unit + unit / 4,
        changes: [
            (("acme".into(), "llama".into()), change(1_200, 0, 12 * unit, 10 * unit)),
            (("beta".into(), "m\u{1b}".into()), change(1, 1, 0, unit / 4)),
        ]
        .into(),
        other_changes: change(2, 0, 0, 0),
        ..report::Outcome::default()
    };
    let expected = "\
  tenant  model    exchanges  no price  before  after  difference  currency
  acme    llama        1,200         0   12.00  10.00       -2.00  EUR
  beta    m\\u{1b}          1         1    0.00   0.25        0.25  EUR
  others                   2         0    0.00   0.00        0.00  EUR
  total                1,203         1   12.00  10.25       -1.75  EUR
";
    let text = summary(&outcome, &book, true);
    assert!(text.contains(expected), "{text}");
    assert!(!summary(&outcome, &book, false).contains("difference"), "the ledger has the corrections");
    assert!(!summary(&report::Outcome::default(), &book, true).contains("tenant"), "nothing differs");
}
