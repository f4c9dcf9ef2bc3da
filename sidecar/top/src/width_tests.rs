//! Widths and shortening of arbitrary text.

use proptest::prelude::{any, proptest};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use text::printable;

use super::{columns, shorten};

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
