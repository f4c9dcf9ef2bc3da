//! The public FOCUS validator, on exported datasets. It supports version 1.0 only, so it is a second opinion on the
//! columns that are the same in 1.2. Its expected faults are listed here with the reason, and must occur.

use std::collections::BTreeSet;
use std::fs;

use super::book::Folder;
use super::{command, installed, printed};

/// Rules that do not apply here, or that the validator implements wrongly.
const NOT_FOR_US: &[(&str, &str)] = &[
    ("BillingCurrency_IsCurrencyCode", "its list of currencies is looked for in the current directory"),
    ("CommitmentDiscountCategory_Required", "conditional since 1.0: there are no commitments"),
    ("CommitmentDiscountId_Required", "likewise"),
    ("CommitmentDiscountName_Required", "likewise"),
    ("CommitmentDiscountStatus_Required", "likewise"),
    ("CommitmentDiscountType_Required", "likewise"),
    ("ConsumedQuantity_IsDecimal", "it takes a column of whole numbers for no decimals"),
    ("InvoiceIssuer_Required", "the column is called InvoiceIssuerName"),
    ("Provider_Required", "the column is called ProviderName"),
    ("Publisher_Required", "the column is called PublisherName"),
    ("ResourceID_Required", "the column is called ResourceId"),
    ("SkuPriceId_Nullable", "it asks for ChargeType, which was renamed before 1.0"),
];

/// The rules that a file violates.
fn broken(folder: &Folder, file: &str) -> BTreeSet<String> {
    let output = command(folder, installed("focus-validator"))
        .args(["--data-file", file, "--validate-version", "1.0", "--column-namespace", "x"])
        .output()
        .expect("it runs");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let rules = said.lines().filter_map(|line| line.strip_suffix(" failed:")).map(str::to_owned).collect();
    assert!(said.contains("Validation failed!"), "it did not end:\n{said}");
    rules
}

#[test]
#[ignore = "needs tests/finance/install"]
fn validator_reports_only_known_differences_of_1_0() {
    let folder = Folder::with_a_ledger();
    let ours: BTreeSet<_> = NOT_FOR_US.iter().map(|(rule, _)| (*rule).to_owned()).collect();
    for (file, flags) in [("month.csv", "--by month"), ("day.csv", "--by day --focus-billing chargeback")] {
        let line = format!("tokenmeter spend --ledger tokenmeter.db --format focus {flags} --output {file}");
        printed(command(&folder, "bash").args(["-c", &line]).output().expect("it runs"), &line);
        assert_eq!(broken(&folder, file), ours, "{file}");
    }
    let text = fs::read_to_string(folder.path().join("month.csv")).expect("it was written");
    let wrong = text.replace("Usage-Based", "Sometimes").replace("ChargePeriodStart", "ChargePeriodBegin");
    fs::write(folder.path().join("wrong.csv"), wrong).expect("written");
    let more: Vec<_> = broken(&folder, "wrong.csv").difference(&ours).cloned().collect();
    assert!(more.iter().any(|rule| rule == "ChargePeriodStart_Required"), "{more:?}");
    assert!(more.iter().any(|rule| rule == "ChargeFrequency_Enum"), "{more:?}");
}
