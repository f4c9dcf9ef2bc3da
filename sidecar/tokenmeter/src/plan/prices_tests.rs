//! The price book, the errors and the warnings of a price file.

use std::path::PathBuf;

use origin::Origin;

use super::read;
use crate::plan::Plan;
use crate::plan::machine::ThisMachine;
use crate::settings::RawSettings;

/// A temporary file, removed on drop.
struct File(PathBuf);

impl File {
    fn of(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{}-{name}.yaml", std::process::id()));
        std::fs::write(&path, text).expect("the temporary directory can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("it is text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const HEAD: &str = "version: v\ncurrency: USD\nmodels:\n";

#[test]
fn valid_file_is_a_book() {
    let file = File::of("right", &format!("{HEAD}  - {{name: m, input: 1, output: 1}}\n"));
    let (book, warnings) = read(file.path(), &Origin::Default).expect("it is right");
    assert_eq!((&**book.version(), warnings.len()), ("v", 0));
}

#[test]
fn errors_name_the_price_file_and_its_lines() {
    let file = File::of("wrong", &format!("{HEAD}  - {{name: m, inptu: 1}}\n  - {{name: n, output: x}}\n"));
    let shown: Vec<String> = read(file.path(), &Origin::Default)
        .expect_err("it is wrong")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(
        shown[0],
        format!("{}:4: an entry of `models` has no key `inptu`; did you mean `input`?", file.path())
    );
    assert!(
        shown[1].starts_with(&format!("{}:5: `output`: `x` is not a decimal number; ", file.path())),
        "{shown:?}"
    );
}

#[test]
fn missing_file_is_an_error_of_the_setting() {
    let shown =
        read("/nowhere/prices.yaml", &Origin::Flag("--prices".to_owned())).expect_err("there is none");
    assert!(
        shown[0].to_string().starts_with("--prices: the price file /nowhere/prices.yaml cannot be read: ")
    );
}

#[test]
fn only_first_warnings_of_a_kind_are_reported() {
    let mut text = HEAD.to_owned();
    for number in 0..50 {
        text.push_str(&format!("  - {{name: m{number}, input: 0.12345678, output: 1, image: 1}}\n"));
    }
    let file = File::of("doubtful", &text);
    let (_, warnings) = read(file.path(), &Origin::Default).expect("it is right");
    let shown: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 6, "{shown:#?}");
    assert_eq!(
        shown
            .iter()
            .filter(|shown| shown.contains("and 48 more of this kind; `tokenmeter prices lint"))
            .count(),
        2
    );
}

#[test]
fn plan_has_the_book_or_an_error() {
    let right = File::of("planned", &format!("{HEAD}  - {{name: m, input: 1, output: 1}}\n"));
    let wrong = File::of("unplanned", &format!("{HEAD}  - {{name: m, input: -1}}\n"));
    for (path, version, error) in [
        ("", None, ""),
        (right.path(), Some("v"), ""),
        (wrong.path(), None, ":4: `input`: `-1` is below 0"),
        ("/nowhere/prices.yaml", None, "--prices: the price file /nowhere/prices.yaml cannot be read"),
    ] {
        let flags = [("upstream", "http://gpu:8000".to_owned()), ("prices", path.to_owned())];
        let written = RawSettings::merge(&flags.into_iter().collect(), &|_: &str| None, None);
        match Plan::make(&written, &ThisMachine) {
            Ok(plan) => {
                assert_eq!(plan.prices.as_deref().map(|book| &**book.version()), version, "{path}");
                assert_eq!(error, "");
            }
            Err(errors) => {
                assert!(!error.is_empty() && errors.to_string().contains(error), "{errors}")
            }
        }
    }
}
