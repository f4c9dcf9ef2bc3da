//! Hostile names, and any text.

use proptest::prelude::{any, proptest};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{columns, printable, shorten};

#[test]
fn hostile_characters_are_escaped() {
    for (name, printed) in [
        ("qwen3-8b", "qwen3-8b"),
        ("größe 模型", "größe 模型"),
        ("\u{1b}[2J\u{1b}]0;x\u{7}", "\\u{1b}[2J\\u{1b}]0;x\\u{7}"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("\u{202e}evil", "\\u{202e}evil"),
        ("a\u{301}\u{301}", "a\\u{301}\\u{301}"),
        ("שלום", "\\u{5e9}\\u{5dc}\\u{5d5}\\u{5dd}"),
        ("👩\u{200d}💻", "👩\\u{200d}💻"),
        ("🇩🇪👍🏽", "\\u{1f1e9}\\u{1f1ea}👍\\u{1f3fd}"),
        ("", ""),
    ] {
        assert_eq!(printable(name), printed, "{name:?}");
    }
}

#[test]
fn cut_text_fits() {
    for (text, most, cut) in [
        ("model", 5, "model"),
        ("model", 4, "mod…"),
        ("模型模型", 8, "模型模型"),
        ("模型模型", 7, "模型模…"),
        ("模型模型", 6, "模型…"),
        ("模型", 1, "…"),
        ("model", 0, ""),
    ] {
        assert_eq!(shorten(text, most), cut, "{text} in {most}");
    }
}

proptest! {
    #![proptest_config(chance::cases(512))]

    #[test]
    fn printed_text_has_the_columns_of_its_characters(name in any::<String>(), most in 0..40_usize) {
        let printed = printable(&name);
        assert!(printed.chars().all(|c| !c.is_control() && c.width().is_some_and(|width| width > 0)), "{printed:?}");
        assert_eq!(columns(&printed), printed.as_str().width(), "{printed:?}");
        assert!(columns(&shorten(&printed, most)) <= most, "{printed:?} in {most}");
    }
}
