//! The command `ledger adjust`: charges or credits a tenant an amount of money without an exchange.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use ledger::source::Month;
use ledger::{Adjustment, Range, Source, SourceError, month};
use price::Currency;
use report::months::spans;
use ship::Amender;
use ship::address::is_postgres;
use tenant::{NAME_MAX_BYTES, Name};
use text::money;

use super::ledger::{LedgerError, address};
use super::ledger_path::LedgerFlags;
use super::{operator, spend};
use crate::plan::machine::ThisMachine;

/// The arguments of `ledger adjust`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AdjustArgs {
    #[command(flatten)]
    ledger: LedgerFlags,
    /// Tenant to charge.
    #[arg(long, value_name = "NAME", value_parser = tenant_name)]
    tenant: String,
    /// Amount, exact; a credit is negative.
    #[arg(long, value_name = "DECIMAL", value_parser = amount, allow_hyphen_values = true)]
    amount: i128,
    /// Currency, ISO 4217.
    #[arg(long, value_name = "CODE", value_parser = currency)]
    currency: Currency,
    /// Month of the charge, as in 2026-10.
    #[arg(long, value_parser = super::ledger::month)]
    month: i32,
    /// Reason, for reports and the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Operator's name, for the audit trail; by default the user of this process.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
}

/// Reads a name that the proxy can give a tenant: an amount under any other name would be on no tenant's bill.
fn tenant_name(text: &str) -> Result<String, String> {
    let name = Name::of_tenant(text).filter(|name| **name.text() == *text);
    name.map(|name| name.text().to_string()).ok_or_else(|| {
        format!(
            "`{}` names no tenant: a name has 1 to {NAME_MAX_BYTES} bytes, no control characters and no spaces around \
             it, and does not begin with `_`",
            text.escape_debug()
        )
    })
}

fn amount(text: &str) -> Result<i128, String> {
    price::exact_pico(text).ok_or_else(|| {
        format!(
            "`{}` is not a decimal number with at most 12 decimal places, or is too large",
            text.escape_debug()
        )
    })
}

fn currency(text: &str) -> Result<Currency, String> {
    let code = text.as_bytes().try_into().map(Currency).ok();
    code.filter(Currency::is_known).ok_or_else(|| {
        format!("`{}` is not a currency in use; write a code such as USD", text.escape_debug())
    })
}

/// Enters the adjustment. Returns the text to print.
pub(crate) fn run(args: &AdjustArgs) -> Result<String, LedgerError> {
    let named = args.ledger.named()?;
    let adjustment = Adjustment::new(&args.tenant, args.amount, args.currency, args.month, &args.reason)?;
    let who = operator::name(args.who.as_deref(), &ThisMachine);
    let now_us = ledger::now_us();
    let source = spend::open(&named).map_err(|error| LedgerError::Store(error.to_string().into()))?;
    let calendar = source.calendar();
    let is_tenant_known = check(&*source, &args.tenant, args.month, now_us).map_err(LedgerError::Store)?;
    drop(source);
    let is_new = if is_postgres(&named) {
        let mut store = Amender::open(&address(&named)?).map_err(|error| LedgerError::Store(error.into()))?;
        adjustment
            .enter(&calendar, &who, now_us, |amendment| Ok(store.amend(amendment)?))
            .map_err(LedgerError::Store)?
    } else {
        ledger::adjust(Path::new(&named), &adjustment, &who, now_us)?
    };
    let (amount, code) = (money(args.amount), args.currency.code());
    let (tenant, month) = (args.tenant.escape_debug(), month::name(args.month));
    Ok(match is_new {
        true if is_tenant_known => format!("{amount} {code} were entered for {tenant} in {month}"),
        true => format!(
            "{amount} {code} were entered for {tenant} in {month}; the ledger has no other charge of this tenant: if \
             the name is wrong, enter the opposite amount"
        ),
        false => format!(
            "{amount} {code} had already been entered for {tenant} in {month} for this reason: nothing changed; give \
             another adjustment another reason"
        ),
    })
}

/// Checks that a month has exchanges or totals in the ledger, is signed off, or is the current one. Any other month is
/// probably a typing error. Returns true if the ledger has a charge of the tenant.
fn check(source: &dyn Source, tenant: &str, asked: Month, now_us: i64) -> Result<bool, SourceError> {
    let mut known = BTreeSet::from([source.calendar().month(now_us)]);
    let mut is_tenant_known = false;
    source.daily_totals(&Range::ALL, &mut |billed, total| {
        known.extend([billed, month::of_day(total.key.day)]);
        is_tenant_known |= *total.key.tenant == *tenant;
        Ok(())
    })?;
    if known.contains(&asked) || source.closure(asked)?.digest().is_some() {
        return Ok(is_tenant_known);
    }
    let (asked, known) = (month::name(asked), spans(&Vec::from_iter(known)));
    Err(format!(
        "nothing was entered: the ledger has no data of {asked}; its months are {known}; check --month"
    )
    .into())
}

const EXAMPLES: &str = "\
Examples:
  tokenmeter ledger adjust --ledger tokenmeter.db --tenant acme --amount -50 \\
    --currency USD --month 2026-10 --reason 'outage of 12 October'
  tokenmeter ledger adjust --ledger postgres://owner@db/spend --tenant acme \\
    --amount 20.5 --currency EUR --month 2026-10 --reason 'support, 1 hour'

Reports show it as a charge of the tenant with the model __adjustment__ and the
class correction; the key `entry` is the reason. In a closed month it is billed
in the open one. Repeating the command enters nothing.";

#[cfg(test)]
mod tests {
    use ledger::testing::{NOON_US, row};

    use super::super::parse;
    use super::{AdjustArgs, run};
    use crate::cli::Action;
    use crate::commands::ledger::LedgerArgs;

    fn args(more: &str) -> Result<AdjustArgs, String> {
        match parse(&format!("ledger adjust --tenant acme --reason outage {more}"))? {
            Action::Ledger(LedgerArgs::Adjust(args)) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn invalid_flags_name_their_form() {
        let found = args("--amount -50.000000000001 --currency USD --month 2026-10 --ledger x.db").unwrap();
        assert_eq!((found.amount, found.month), (-50_000_000_000_001, 681));
        for (line, part) in [
            ("--amount fifty --currency USD --month 2026-10", "`fifty` is not a decimal number"),
            ("--amount 0.0000000000001 --currency USD --month 2026-10", "at most 12 decimal places"),
            ("--amount 1 --currency USD --month october", "write one as 2026-10"),
            ("--amount 1 --month 2026-10 --currency XYZ", "not a currency in use"),
        ] {
            let error = args(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
        let found = args("--amount -1e-12 --currency USD --month 2026-10").unwrap();
        assert_eq!(found.amount, -1);
    }

    #[test]
    fn tenants_that_no_exchange_has_are_refused() {
        let long = "x".repeat(129);
        for name in ["", " acme", "acme ", "__idle__", "_other", "a\nb", &long] {
            let error = super::tenant_name(name).unwrap_err();
            assert!(error.contains("names no tenant"), "{name}: {error}");
        }
        assert_eq!(super::tenant_name("../a <b>").as_deref(), Ok("../a <b>"));
    }

    /// A ledger whose only exchange ended in October 2026.
    fn with_october(name: &str) -> (crate::folder::Folder, std::path::PathBuf) {
        with_october_of("UTC", name)
    }

    fn with_october_of(zone: &str, name: &str) -> (crate::folder::Folder, std::path::PathBuf) {
        let folder = crate::folder::Folder::new(name);
        let path = folder.at("x.db");
        let plan = ledger::Plan {
            clock: std::sync::Arc::new(|| NOON_US),
            time_zone: Some(ledger::Zone::named(zone).unwrap()),
            ..ledger::Plan::new(&path)
        };
        let ledger = ledger::start(plan);
        ledger.enter(row(1));
        assert!(ledger.shutdown(std::time::Duration::from_secs(30)), "{:?}", ledger.status());
        (folder, path)
    }

    #[test]
    fn adjustment_is_entered_once() {
        let (_folder, path) = with_october("adjust");
        let line = format!("--amount -50 --currency USD --month 2026-10 --ledger {}", path.display());
        let known = AdjustArgs { tenant: "tenant-1".to_string(), ..args(&line).unwrap() };
        let said = [(); 2].map(|()| run(&known).unwrap());
        assert_eq!(said[0], "-50.00 USD were entered for tenant-1 in 2026-10");
        assert!(said[1].contains("nothing changed"), "{}", said[1]);
    }

    #[test]
    fn name_of_no_known_tenant_is_noted() {
        let (_folder, path) = with_october("adjust-tenant");
        let line = format!("--amount 7 --currency USD --month 2026-10 --ledger {}", path.display());
        assert!(run(&args(&line).unwrap()).unwrap().contains("no other charge of this tenant"));
    }

    #[test]
    fn current_month_is_that_of_the_time_zone() {
        let (_folder, path) = with_october_of("Pacific/Kiritimati", "adjust-zone");
        let source = crate::commands::spend::open(path.to_str().unwrap()).unwrap();
        let november = ledger::month::of(NOON_US) + 1;
        // There it begins 14 hours before UTC's.
        let now_us = ledger::month::begin_us(november) - 1;
        super::check(&*source, "acme", november, now_us).unwrap();
    }

    #[test]
    fn month_that_the_ledger_does_not_know_is_refused() {
        let (_folder, path) = with_october("adjust-month");
        let source = crate::commands::spend::open(path.to_str().unwrap()).unwrap();
        let october = ledger::month::of(NOON_US);
        let november_us = ledger::month::begin_us(october + 1);
        for known in [october, october + 1] {
            super::check(&*source, "acme", known, november_us).unwrap();
        }
        for (month, name) in [(october - 12, "2025-10"), (october + 2, "2026-12"), (october + 120, "2036-10")]
        {
            let error = super::check(&*source, "acme", month, november_us).unwrap_err().to_string();
            let expected =
                format!("the ledger has no data of {name}; its months are 2026-10, 2026-11; check --month");
            assert!(error.contains(&expected), "{error}");
        }
        let line = format!("--amount 1 --currency USD --month 2062-10 --ledger {}", path.display());
        assert!(run(&args(&line).unwrap()).unwrap_err().to_string().contains("2062-10"));
    }
}
