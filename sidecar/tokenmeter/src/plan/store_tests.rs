//! Errors of a store's address, and the sources of its password.

use std::collections::BTreeMap;

use origin::Origin;

use crate::plan::machine::Alone;
use crate::plan::values::Reader;
use crate::settings::{RawSettings, Value};

/// Returns the errors and the warnings of these settings.
fn diagnostics(written: &[(&'static str, &str)], machine: &Alone) -> (Vec<String>, Vec<String>) {
    let values: BTreeMap<_, _> = written
        .iter()
        .map(|(key, text)| {
            let origin = Origin::Flag(format!("--{key}"));
            (*key, Value { text: (*text).to_owned(), origin })
        })
        .collect();
    let written = RawSettings { values, ..RawSettings::default() };
    let mut reader = Reader { written: &written, errors: Vec::new(), warnings: Vec::new() };
    reader.ledger(machine);
    let texts = |list: &[origin::Diagnostic]| list.iter().map(ToString::to_string).collect();
    (texts(&reader.errors), texts(&reader.warnings))
}

#[test]
fn errors_have_a_remedy_and_no_password() {
    let machine = Alone(&[]);
    for (written, part) in [
        (vec![("ledger_ship", "postgres://u:hunter2@h/x")], "set `ledger` to a file"),
        (
            vec![("ledger", "postgres://u:hunter2@h/x"), ("ledger_ship", "postgres://u:hunter2@h/x")],
            "set `ledger` to the file and `ledger_ship` to",
        ),
        (vec![("ledger", "x.db"), ("ledger_ship", "mysql://u:hunter2@h/x")], "not a PostgreSQL URL"),
        (vec![("ledger", "postgres://u:hunter2@h:port/x")], "cannot be read"),
        (
            vec![("ledger", "postgres://u@h/x"), ("ledger_ship_password_file", "/nowhere")],
            "no password can be read from /nowhere",
        ),
    ] {
        let (errors, warnings) = diagnostics(&written, &machine);
        assert_eq!(errors.len(), 1, "{written:?}: {errors:?}");
        assert!(errors[0].contains(part), "{written:?}: {errors:?}");
        assert!(!format!("{errors:?} {warnings:?}").contains("hunter2"), "{errors:?}");
    }
    let (errors, warnings) = diagnostics(&[("ledger", "postgres://u:hunter2@h/x")], &machine);
    assert_eq!((errors.len(), warnings.len()), (0, 1));
    assert!(warnings[0].contains("command line") && !warnings[0].contains("hunter2"), "{warnings:?}");
}

#[test]
fn password_is_found_in_every_source() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-passwords-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("one"), "from-file\nrest\n").unwrap();
    std::fs::write(folder.join("none"), "\n").unwrap();
    std::fs::write(folder.join(".pgpass"), "*:*:spend:u:from-home\n").unwrap();
    std::fs::write(folder.join("pgpass"), "*:*:spend:u:from-passfile\n").unwrap();
    let home: &'static str = folder.to_str().unwrap().to_owned().leak();
    let (plain, one) = ("postgres://u@h/spend", format!("{home}/one"));
    let with_passfile = format!("{plain}?passfile={home}/pgpass");
    let at_home = Alone(vec![("HOME", home)].leak());
    let with_variable = Alone(vec![("HOME", home), ("PGPASSWORD", "from-variable")].leak());
    for (url, file, machine, has) in [
        ("postgres://u:own@h/spend", Some(&*one), &with_variable, true),
        (plain, Some(&*one), &Alone(&[]), true),
        (plain, None, &with_variable, true),
        (plain, None, &at_home, true),
        (&*with_passfile, None, &Alone(&[]), true),
        ("postgres://other@h/spend", None, &at_home, false),
        (plain, None, &Alone(&[]), false),
    ] {
        let address = super::address(url, file, machine).unwrap();
        assert_eq!(address.has_password(), has, "{url} {file:?}");
    }
    let none = format!("{home}/none");
    assert!(super::address(plain, Some(&none), &at_home).unwrap_err().to_string().contains("is empty"));
    std::fs::remove_dir_all(&folder).unwrap();
}
