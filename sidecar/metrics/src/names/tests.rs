//! Names as labels: short, and without what some scrapers stumble over.

use super::*;

#[test]
fn a_name_is_cut_between_characters_and_has_no_nul() {
    assert_eq!(label(&"x".repeat(200)).len(), 128);
    assert_eq!(label(&"ü".repeat(100)).chars().count(), 64);
    assert_eq!(label(&format!("x{}", "ü".repeat(100))).len(), 127, "no half character");
    assert_eq!(label("a\0b"), "a\u{fffd}b");
    let nul = "\0".repeat(100);
    assert!(label(&nul).len() <= 128, "the replacement is longer, and cut again");
}
