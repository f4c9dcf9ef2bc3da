//! Names as labels.

use super::*;

#[test]
fn name_is_cut_at_character_boundary_without_nul() {
    assert_eq!(label(&"x".repeat(200)).len(), 128);
    assert_eq!(label(&"ü".repeat(100)).chars().count(), 64);
    assert_eq!(label(&format!("x{}", "ü".repeat(100))).len(), 127, "no half character");
    assert_eq!(label("a\0b"), "a\u{fffd}b");
    let nul = "\0".repeat(100);
    assert!(label(&nul).len() <= 128, "the replacement is longer, and cut again");
}

#[test]
fn control_characters_are_replaced() {
    assert_eq!(label("a\u{1b}[31mred"), "a\u{fffd}[31mred");
    assert_eq!(label("a\nb\tc\u{7f}\u{9b}d"), "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}d");
    assert!(label(&"\u{1b}".repeat(128)).len() <= 128);
}

#[test]
fn leading_underscore_is_replaced() {
    assert_eq!(label("__name__"), "\u{fffd}_name__");
    assert_eq!(label("_others"), "\u{fffd}others");
    assert_eq!(label("_"), "\u{fffd}");
    assert_eq!(label("a_b"), "a_b");
    assert_eq!(label(&"_".repeat(128)).len(), 128);
}

#[test]
fn reserved_labels_are_kept() {
    assert_eq!(label(OTHER), OTHER);
    assert_eq!(label(UNKNOWN), UNKNOWN);
}
