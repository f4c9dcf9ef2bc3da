//! The flags of `spend`, and the errors of invalid ones.

use ledger::{Calendar, Range, Zone};
use report::focus::{Billing, Version};
use report::{Basis, Column, Key, Order, Query};
use text::Glob;

use super::super::parse;
use super::{Format, SpendArgs, check_flags, columns, prices_flag, setting};
use crate::cli::Action;
use crate::plan::machine::Alone;

fn args(line: &str) -> Result<SpendArgs, String> {
    match parse(line)? {
        Action::Spend(args) => Ok(*args),
        other => panic!("{line}: {other:?}"),
    }
}

fn valid(line: &str) -> SpendArgs {
    args(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn query(line: &str) -> Query {
    valid(line).query(&Calendar::default(), ledger::now_us())
}

#[test]
fn default_is_one_row_of_everything() {
    let (args, query) = (valid("spend"), query("spend"));
    assert_eq!((query.range, query.billed), (Range::ALL, None));
    assert!(query.by.is_empty() && query.filters.is_empty());
    assert_eq!((query.basis, query.order), (Basis::Price, Order::Keys));
    assert_eq!((args.format, args.round), (Format::Table, None));
}

#[test]
fn months_days_and_times_are_parsed() {
    let october = Range { since_us: 1_790_812_800_000_000, until_us: 1_793_491_200_000_000 };
    for line in [
        "spend --month 2026-10",
        "spend --since 2026-10 --until 2026-11",
        "spend --since 2026-10-01 --until 2026-11-01",
        "spend --since 2026-10-01T00:00:00Z --until 2026-11-01T01:00:00+01:00",
    ] {
        assert_eq!(query(line).range, october, "{line}");
    }
    assert_eq!(query("spend --billed 2026-10").billed, Some(681));
}

#[test]
fn range_goes_by_the_time_zone() {
    let [berlin, tokyo] =
        ["Europe/Berlin", "Asia/Tokyo"].map(|name| Calendar::of(Zone::named(name).unwrap()));
    for (line, calendar) in [
        ("spend --month 2026-10", &berlin),
        ("spend --since 2026-10-01 --until 2026-11-01", &berlin),
        ("spend --month 2026-10 --time-zone asia/tokyo", &tokyo),
        ("spend --since 2026-10 --until 2026-11-01 --time-zone Asia/Tokyo", &tokyo),
    ] {
        let query = valid(line).query(&berlin, 0);
        assert_eq!(query.range, Range::of_month(calendar, 681), "{line}");
    }
    let at_us = 1_793_491_200_000_000 - 3_600_000_000; // 2026-11-01 00:00 in Berlin
    assert_eq!(valid("spend --billed this").query(&berlin, at_us).billed, Some(682));
    assert_eq!(valid("spend --billed this").query(&Calendar::default(), at_us).billed, Some(681));
    let error = args("spend --time-zone Berlin").unwrap_err();
    assert!(error.contains("write an IANA name such as Europe/Berlin"), "{error}");
    assert!(args("spend --time-zone UTC --billed 2026-10").is_err());
}

#[test]
fn empty_range_is_refused_by_the_ledgers_calendar() {
    let utc = Calendar::default();
    let berlin = Calendar::of(Zone::named("Europe/Berlin").unwrap());
    // November begins at 23:00 in Berlin.
    for (line, in_utc, in_berlin) in [
        ("spend --since 2026-11-01 --until 2026-10-31T23:30:00Z", false, true),
        ("spend --since 2026-10-31T23:00:00Z --until 2026-11-01", true, false),
        ("spend --since 2026-11 --until 2026-11-01", false, false),
        ("spend", true, true),
    ] {
        for (calendar, is_valid) in [(&utc, in_utc), (&berlin, in_berlin)] {
            let query = valid(line).with_calendar(query(line), calendar);
            assert_eq!(query.is_ok(), is_valid, "{line} {calendar}");
        }
    }
}

#[test]
fn keys_filters_and_formats_are_parsed() {
    let line = "spend --by tenant,model --by day,tenant --where tenant=a*,b --where ending!=complete --basis gpu --sort cost \
         --format focus --focus-version 1.4 --focus-billing chargeback --round 2";
    let (args, query) = (valid(line), query(line));
    assert_eq!(query.by, [Key::Tenant, Key::Model, Key::Day]);
    assert_eq!(query.filters.len(), 2);
    assert_eq!(query.filters[0].patterns, ["a*", "b"].map(Glob::new));
    assert!(query.filters[1].except);
    assert_eq!((query.basis, query.order, args.format), (Basis::Gpu, Order::Cost, Format::Focus));
    assert_eq!((args.focus.version, args.focus.billing), (Version::V1_4, Some(Billing::Chargeback)));
    assert_eq!(args.round, Some(2));
}

#[test]
fn billing_of_focus_is_a_setting() {
    let folder = crate::folder::Folder::new("spend-billing");
    let config = folder.at("tokenmeter.yaml");
    let of = |flags: &str| {
        let args = valid(&format!("spend --format focus --config {} {flags}", config.display()));
        args.focus.options(args.ledger.config.as_deref()).map(|options| options.billing)
    };
    std::fs::write(&config, "access_log: true\n").unwrap();
    assert_eq!(of("").unwrap(), Billing::Showback);
    std::fs::write(&config, "access_log: true\nfocus_billing: chargeback\n").unwrap();
    assert_eq!(of("").unwrap(), Billing::Chargeback);
    assert_eq!(of("--focus-billing showback").unwrap(), Billing::Showback);
    std::fs::write(&config, "access_log: true\nfocus_billing: charge-back\n").unwrap();
    let error = of("").unwrap_err().to_string();
    assert!(error.contains("tokenmeter.yaml:2") && error.contains("did you mean `chargeback`?"), "{error}");
    let machine = Alone(&[("TOKENMETER_FOCUS_BILLING", "charge")]);
    let error = setting::chosen("focus_billing", None, &machine).unwrap_err().to_string();
    assert!(
        error.contains("TOKENMETER_FOCUS_BILLING: `charge` is not one of showback, chargeback"),
        "{error}"
    );
}

#[test]
fn month_names_follow_the_clock() {
    let (this, last) = (query("spend --month this").range, query("spend --month last").range);
    assert!(this.holds(ledger::now_us()));
    assert_eq!(last.until_us, this.since_us);
    assert_eq!(query("spend --billed this").billed, query("spend --billed last").billed.map(|last| last + 1));
}

#[test]
fn synonyms_are_keys() {
    assert_eq!(query("spend --by team,week,date").by, [Key::Tenant, Key::Week, Key::Day]);
}

#[test]
fn top_sorts_by_cost_unless_sorted_otherwise() {
    let of = |line: &str| (valid(line).top, query(line).order);
    assert_eq!(of("spend --top 5"), (Some(5), Order::Cost));
    assert_eq!(of("spend --top 5 --sort tokens"), (Some(5), Order::Tokens));
    assert_eq!(of("spend"), (None, Order::Keys));
}

#[test]
fn columns_are_selected_by_name() {
    let of = |names: Option<&str>| {
        let named = columns(names, &Query::all(0));
        named.map(|all| all.unwrap_or_default().iter().map(|one| one.name()).collect::<Vec<_>>())
    };
    let usual = "exchanges,input_tokens,output_tokens,cost,currency,unpriced_exchanges,uncounted_prompts";
    let names = Column::usual(&Query::all(0)).iter().map(|one| one.name()).collect::<Vec<_>>();
    assert_eq!(names.join(","), usual);
    assert_eq!(of(None).unwrap(), [""; 0]);
    assert_eq!(of(Some("cost,input_cached")).unwrap(), ["cost", "input_cached"]);
    assert_eq!(of(Some("all")).unwrap().len(), Column::all(&Query::all(0)).len());
    let error = of(Some("cost,colour")).expect_err("there is no such column").to_string();
    assert!(error.contains("the columns are exchanges, input_tokens,"), "{error}");
}

#[test]
fn flags_are_rejected_where_they_do_not_apply() {
    for (line, said) in [
        ("spend --format json --columns cost", "--columns is only for --format table or csv"),
        ("spend --format csv --savings", "--savings is only for --format table or json"),
        ("spend --format focus --what-if p.yaml", "--what-if is only for --format table, csv or json"),
        ("spend --focus-metadata m.json", "--focus-metadata is only for --format focus"),
        ("spend --idle even", "--idle is only for --basis gpu"),
        ("spend --time-zone UTC --basis gpu", "--time-zone is only for --basis price"),
        ("spend --time-zone UTC --format focus", "--time-zone is only for --format table, csv or json"),
    ] {
        let error = check_flags(&valid(line)).expect_err(line).to_string();
        assert!(error.starts_with(said), "{line}: {error}");
    }
    for line in [
        "spend --columns cost --savings --what-if p.yaml",
        "spend --format csv --columns cost",
        "spend --format focus --focus-metadata m.json",
        "spend --idle even --basis gpu",
    ] {
        assert!(check_flags(&valid(line)).is_ok(), "{line}");
    }
}

#[test]
fn attributes_need_their_file() {
    let folder = crate::folder::Folder::new("spend-attributes");
    let path = folder.at("a.yaml").display().to_string();
    std::fs::write(&path, "tenants:\n- {tenant: a, cost_center: 007}\n").unwrap();
    let with = |line: &str| {
        let args = valid(line);
        args.with_files(args.query(&Calendar::default(), 0)).map(|query| query.attributes.entries().count())
    };
    assert_eq!(with(&format!("spend --by cost_center --attributes {path}")).unwrap(), 1);
    assert_eq!(with("spend --by tenant").unwrap(), 0);
    for key in ["cost_center", "tag.env"] {
        let error = with(&format!("spend --where {key}=x")).expect_err("no file").to_string();
        assert!(error.contains("name their file with --attributes"), "{error}");
    }
    let config = folder.at("t.yaml").display().to_string();
    std::fs::write(&config, format!("attributes: {path}\n")).unwrap();
    assert_eq!(with(&format!("spend --config {config} --by owner")).unwrap(), 1);
}

#[test]
fn hints_name_the_price_file_by_its_flag() {
    assert_eq!(prices_flag(&valid("spend --prices prices.yaml")).as_deref(), Some("--prices prices.yaml"));
    let folder = crate::folder::Folder::new("spend-hints");
    std::fs::write(folder.at("t.yaml"), "prices: p.yaml\n").unwrap();
    let config = folder.at("t.yaml").display().to_string();
    assert_eq!(prices_flag(&valid(&format!("spend --config {config}"))), Some(format!("--config {config}")));
    assert_eq!(prices_flag(&valid("spend")), None);
}

#[test]
fn errors_of_invalid_flags_have_remedies() {
    for (line, part) in [
        ("spend --by tennant", "did you mean `tenant`"),
        ("spend --by colour-of-the-sky", "the keys are tenant, cost_center"),
        ("spend --since yesterday", "2026-10-05T12:00:00Z"),
        ("spend --month 2026", "2026-10"),
        ("spend --month 2026-10 --since 2026-10", "cannot be used with"),
        ("spend --where acme", "KEY=VALUE"),
        ("spend --round 13", "0..=12"),
        ("spend --top 0", "write 1 or more"),
        ("spend --format yaml", "possible values: table, json, csv, focus"),
        ("spend --basis gp", "possible values: price, gpu"),
        ("spend --focus-billing none", "possible values: showback, chargeback"),
    ] {
        let error = args(line).expect_err(line);
        assert!(error.contains(part), "{line}: {error}");
    }
}
