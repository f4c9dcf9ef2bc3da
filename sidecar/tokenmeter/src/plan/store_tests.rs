//! What is said of a store that is wrong, and where its password is found.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::machine::Machine;
use crate::origin::Origin;
use crate::plan::values::Reader;
use crate::settings::{Value, Written};

struct Fake(&'static [(&'static str, &'static str)]);

impl Machine for Fake {
    fn cores(&self) -> usize {
        1
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }

    fn owns(&self, _: IpAddr) -> bool {
        false
    }

    fn host(&self) -> String {
        "node-1".to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn variables(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// What is planned, and what is said about it.
fn planned(written: &[(&'static str, &str)], machine: &Fake) -> (Vec<String>, Vec<String>) {
    let values: BTreeMap<_, _> = written
        .iter()
        .map(|(key, text)| {
            let origin = Origin::Flag(format!("--{key}"));
            (*key, Value { text: (*text).to_owned(), origin })
        })
        .collect();
    let written = Written { values, ..Written::default() };
    let mut reader = Reader { written: &written, mistakes: Vec::new(), warnings: Vec::new() };
    reader.books(machine);
    let said = |list: &[crate::mistake::Mistake]| list.iter().map(ToString::to_string).collect();
    (said(&reader.mistakes), said(&reader.warnings))
}

#[test]
fn mistakes_say_what_to_do_and_never_the_password() {
    let machine = Fake(&[]);
    for (written, says) in [
        (vec![("ledger_ship", "postgres://u:hunter2@h/x")], "name a file by `ledger`"),
        (
            vec![("ledger", "postgres://u:hunter2@h/x"), ("ledger_ship", "postgres://u:hunter2@h/x")],
            "name the file by `ledger`, the store by",
        ),
        (vec![("ledger", "x.db"), ("ledger_ship", "mysql://u:hunter2@h/x")], "not a PostgreSQL URL"),
        (vec![("ledger", "postgres://u:hunter2@h:port/x")], "cannot be read"),
        (
            vec![("ledger", "postgres://u@h/x"), ("ledger_ship_password_file", "/nowhere")],
            "no password is in /nowhere",
        ),
    ] {
        let (mistakes, warnings) = planned(&written, &machine);
        assert_eq!(mistakes.len(), 1, "{written:?}: {mistakes:?}");
        assert!(mistakes[0].contains(says), "{written:?}: {mistakes:?}");
        assert!(!format!("{mistakes:?} {warnings:?}").contains("hunter2"), "{mistakes:?}");
    }
    let (mistakes, warnings) = planned(&[("ledger", "postgres://u:hunter2@h/x")], &machine);
    assert_eq!((mistakes.len(), warnings.len()), (0, 1));
    assert!(warnings[0].contains("command line") && !warnings[0].contains("hunter2"), "{warnings:?}");
}

#[test]
fn a_password_is_found_where_it_may_be() {
    let folder = std::env::temp_dir().join(format!("tokenmeter-passwords-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("one"), "from-file\nrest\n").unwrap();
    std::fs::write(folder.join("none"), "\n").unwrap();
    std::fs::write(folder.join(".pgpass"), "*:*:spend:u:from-home\n").unwrap();
    std::fs::write(folder.join("pgpass"), "*:*:spend:u:from-passfile\n").unwrap();
    let home: &'static str = folder.to_str().unwrap().to_owned().leak();
    let (plain, one) = ("postgres://u@h/spend", format!("{home}/one"));
    let with_passfile = format!("{plain}?passfile={home}/pgpass");
    let at_home = Fake(vec![("HOME", home)].leak());
    let with_variable = Fake(vec![("HOME", home), ("PGPASSWORD", "from-variable")].leak());
    for (url, file, machine, has) in [
        ("postgres://u:own@h/spend", Some(&*one), &with_variable, true),
        (plain, Some(&*one), &Fake(&[]), true),
        (plain, None, &with_variable, true),
        (plain, None, &at_home, true),
        (&*with_passfile, None, &Fake(&[]), true),
        ("postgres://other@h/spend", None, &at_home, false),
        (plain, None, &Fake(&[]), false),
    ] {
        let address = super::address(url, file, machine).unwrap();
        assert_eq!(address.has_password(), has, "{url} {file:?}");
    }
    let none = format!("{home}/none");
    assert!(super::address(plain, Some(&none), &at_home).unwrap_err().to_string().contains("is empty"));
    std::fs::remove_dir_all(&folder).unwrap();
}
