//! The command line and its help.

use std::ffi::OsString;

use super::{Action, FIRST_SETTINGS, Flags, definition as command, read};
#[cfg(feature = "demo")]
use crate::demo::DemoArgs;
use crate::settings::{Form, Group, SETTINGS, Setting};

fn parse(line: &str) -> Result<Action, clap::Error> {
    read(line.split(' ').map(OsString::from))
}

fn flags(line: &str) -> Flags {
    match parse(line) {
        Ok(Action::Run(flags)) => flags,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn clap_accepts_the_command_line() {
    command().debug_assert();
}

#[test]
fn run_is_the_default_command() {
    let line = "--upstream http://gpu:8000 --stall-ms 5 --config a.yaml";
    assert_eq!(flags(&format!("tokenmeter {line}")), flags(&format!("tokenmeter run {line}")));
    let read = flags(&format!("tokenmeter run {line}"));
    assert_eq!(read.config.as_deref(), Some("a.yaml"));
    assert_eq!(read.settings.len(), 2, "only the given flags: {read:?}");
    assert_eq!(read.settings["stall_ms"], "5");
}

#[test]
fn switch_takes_an_optional_value() {
    assert_eq!(flags("tokenmeter --half-close").settings["half_close"], "true");
    assert_eq!(flags("tokenmeter --half-close=false").settings["half_close"], "false");
    let stray = parse("tokenmeter --half-close false").unwrap_err().to_string();
    assert!(stray.contains("write the value of a switch after `=`, as in --access-log=false"), "{stray}");
    let stray = parse("tokenmeter run --access-log true").unwrap_err().to_string();
    assert!(stray.contains("as in --access-log=true"), "{stray}");
    let other = parse("tokenmeter --half-close maybe").unwrap_err().to_string();
    assert!(!other.contains("switch"), "{other}");
}

#[test]
fn brief_help_fits_a_screen() {
    let brief = command().term_width(80).render_help().to_string();
    assert!(brief.lines().count() <= 40, "{} lines:\n{brief}", brief.lines().count());
    let shown: Vec<&Setting> =
        SETTINGS.iter().filter(|row| brief.contains(&format!("{} ", row.flag()))).collect();
    assert_eq!(shown.len(), FIRST_SETTINGS.len(), "{shown:?}");
    let whole = command().render_long_help().to_string();
    let missing: Vec<_> = SETTINGS.iter().filter(|row| !whole.contains(&row.variable())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// An example that does not wrap can be pasted.
#[test]
fn examples_fit_eighty_columns() {
    fn check(command: &clap::Command, checked: &mut usize) {
        for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
            for line in text.to_string().lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
                *checked += 1;
            }
        }
        command.get_subcommands().for_each(|command| check(command, checked));
    }
    let mut checked = 0;
    check(&command(), &mut checked);
    assert!(checked > 40, "only {checked} lines");
}

#[test]
fn help_omits_values_of_the_environment() {
    let help = parse("tokenmeter prices show --help").unwrap_err().to_string();
    assert!(help.contains("[env: TOKENMETER_PRICES]"), "{help}");
}

#[test]
fn help_has_settings_under_their_headings() {
    let mut all = command();
    let help = all.find_subcommand_mut("run").unwrap().render_long_help().to_string();
    let mut places = Group::ALL.map(|group| help.find(&format!("\n{}:\n", group.title())).unwrap()).to_vec();
    assert!(places.is_sorted(), "{help}");
    places.push(help.len());
    for setting in SETTINGS {
        let at = Group::ALL.iter().position(|group| *group == setting.group).unwrap();
        let section = &help[places[at]..places[at + 1]];
        assert!(section.contains(&format!("      {}", setting.flag())), "{}", setting.key);
    }
}

#[test]
fn help_has_flags_of_reports_under_their_headings() {
    let help = parse("tokenmeter spend --help").unwrap_err().to_string();
    let parts = "Options: --ledger Period: --since --billed Rows: --by --top Output: --format --output FOCUS --prices";
    let place = |part: &str| help.find(&format!("\n{part}")).or(help.find(&format!("  {part} "))).unwrap();
    let places: Vec<_> = parts.split(' ').map(place).collect();
    assert!(places.is_sorted(), "{places:?}: {help}");
}

#[test]
fn help_has_variable_unit_and_default_of_settings() {
    for name in ["run", "check-config"] {
        let mut all = command();
        let help = all.find_subcommand_mut(name).unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for setting in SETTINGS {
            assert!(help.contains(&setting.flag()), "{name}: {}", setting.key);
            assert!(help.contains(&format!("[env: {}]", setting.variable())), "{name}: {}", setting.key);
            if !setting.default.is_empty() {
                assert!(help.contains(&format!("default: {}", setting.default)), "{name}: {}", setting.key);
            }
            if let Form::Number { unit, .. } = setting.form {
                assert!(help.contains(unit), "{name}: {}", setting.key);
            }
        }
    }
}

#[cfg(feature = "demo")]
#[test]
fn demo_takes_its_own_flags_only() {
    let expected =
        Action::Demo(DemoArgs { seconds: Some(3), listen: None, admin: Some("127.0.0.1:0".to_owned()) });
    assert_eq!(parse("tokenmeter demo --seconds 3 --admin 127.0.0.1:0").unwrap(), expected);
    assert!(parse("tokenmeter demo --upstream http://gpu:8000").is_err());
    assert!(parse("tokenmeter demo --seconds 0").is_err());
}

#[test]
fn only_commands_for_central_stores_mention_them() {
    for (line, store) in [
        ("tokenmeter spend --help", true),
        ("tokenmeter ledger close --help", true),
        ("tokenmeter ledger verify --help", true),
        ("tokenmeter ledger status --help", false),
        ("tokenmeter ledger reprice --help", true),
        ("tokenmeter ledger adjust --help", true),
    ] {
        let help = parse(line).unwrap_err().to_string();
        assert_eq!(help.contains("postgres://"), store, "{line}: {help}");
        assert!(help.contains("--ledger <PATH>"), "{line}: {help}");
    }
}

#[test]
fn invalid_command_line_exits_with_2() {
    for line in ["tokenmeter --lisen x", "tokenmeter serve", "tokenmeter --listen a --listen b"] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in ["tokenmeter --help", "tokenmeter --version", "tokenmeter run --help"] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 0, "{line}");
    }
}
