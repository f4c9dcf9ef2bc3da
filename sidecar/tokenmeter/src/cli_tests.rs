//! The command line mirrors the table of settings.

use std::ffi::OsString;

use super::{Asked, Flags, command, read};
use crate::settings::{Form, SETTINGS};

fn asked(line: &str) -> Result<Asked, clap::Error> {
    read(line.split(' ').map(OsString::from))
}

fn flags(line: &str) -> Flags {
    match asked(line) {
        Ok(Asked::Run(flags)) => flags,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn clap_finds_no_fault_with_the_table() {
    command().debug_assert();
}

#[test]
fn run_is_what_happens_if_no_command_is_named() {
    let line = "--upstream http://gpu:8000 --stall-ms 5 --config a.yaml";
    assert_eq!(flags(&format!("tokenmeter {line}")), flags(&format!("tokenmeter run {line}")));
    let read = flags(&format!("tokenmeter run {line}"));
    assert_eq!(read.config.as_deref(), Some("a.yaml"));
    assert_eq!(read.settings.len(), 2, "only what was written: {read:?}");
    assert_eq!(read.settings["stall_ms"], "5");
}

#[test]
fn a_switch_needs_no_value_and_takes_one() {
    assert_eq!(flags("tokenmeter --half-close").settings["half_close"], "true");
    assert_eq!(flags("tokenmeter --half-close=false").settings["half_close"], "false");
    let stray = asked("tokenmeter --half-close false").unwrap_err().to_string();
    assert!(stray.contains("write the value of a switch behind `=`, as in --access-log=false"), "{stray}");
    let stray = asked("tokenmeter run --access-log true").unwrap_err().to_string();
    assert!(stray.contains("as in --access-log=true"), "{stray}");
    let other = asked("tokenmeter --half-close maybe").unwrap_err().to_string();
    assert!(!other.contains("switch"), "{other}");
}

/// A terminal of eighty columns wraps nothing, so that each example can be pasted.
#[test]
fn examples_fit_eighty_columns() {
    fn look(command: &clap::Command, checked: &mut usize) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            *checked += 1;
        }
        command.get_subcommands().for_each(|command| look(command, checked));
    }
    let mut checked = 0;
    look(&command(), &mut checked);
    assert!(checked > 40, "only {checked} lines");
}

#[test]
fn values_of_the_environment_are_not_shown() {
    let help = asked("tokenmeter prices show --help").unwrap_err().to_string();
    assert!(help.contains("[env: TOKENMETER_PRICES]"), "{help}");
}

#[test]
fn every_setting_is_a_flag_with_its_variable_unit_and_default_in_the_help() {
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

#[test]
fn the_demo_takes_its_own_flags_only() {
    let expected = Asked::Demo { seconds: Some(3), listen: None, admin: Some("127.0.0.1:0".to_owned()) };
    assert_eq!(asked("tokenmeter demo --seconds 3 --admin 127.0.0.1:0").unwrap(), expected);
    assert!(asked("tokenmeter demo --upstream http://gpu:8000").is_err());
    assert!(asked("tokenmeter demo --seconds 0").is_err());
}

#[test]
fn only_what_reads_a_central_store_says_so() {
    for (line, store) in [
        ("tokenmeter spend --help", true),
        ("tokenmeter ledger close --help", false),
        ("tokenmeter ledger verify --help", true),
        ("tokenmeter ledger status --help", false),
        ("tokenmeter ledger reprice --help", false),
    ] {
        let help = asked(line).unwrap_err().to_string();
        assert_eq!(help.contains("postgres://"), store, "{line}: {help}");
        assert!(help.contains("--ledger <PATH>"), "{line}: {help}");
    }
}

#[test]
fn mistakes_on_the_command_line_exit_with_2() {
    for line in ["tokenmeter --lisen x", "tokenmeter serve", "tokenmeter --listen a --listen b"] {
        assert_eq!(asked(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in ["tokenmeter --help", "tokenmeter --version", "tokenmeter run --help"] {
        assert_eq!(asked(line).unwrap_err().exit_code(), 0, "{line}");
    }
}
