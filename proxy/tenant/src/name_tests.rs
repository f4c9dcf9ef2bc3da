//! Which text may be a name, and how many are kept.

use super::{KEPT, NAME_BYTES, Name, Names};

#[test]
fn names_are_bounded() {
    let long = "a".repeat(NAME_BYTES + 1);
    let wide = format!("{}é", "a".repeat(NAME_BYTES - 1));
    for (text, name) in [
        ("", None),
        ("  ", None),
        ("\t", None),
        ("a", Some("a")),
        (" a b ", Some("a b")),
        ("a\nb", None),
        ("a\0", None),
        ("a\u{85}b", None),
        ("é", Some("é")),
        (&*long, Some(&long[..NAME_BYTES])),
        (&*wide, Some(&wide[..NAME_BYTES - 1])),
    ] {
        assert_eq!(Name::of(text).as_ref().map(|name| &**name.text()), name, "{text:?}");
        assert_eq!(Names::default().shared(text).as_deref(), name, "{text:?}");
    }
}

#[test]
fn equal_names_are_one_and_made_up_ones_fill_nothing() {
    let names = Names::default();
    let first = names.shared("acme").unwrap();
    for index in 0..2 * KEPT {
        names.shared(&format!("made-up-{index}")).unwrap();
    }
    assert_eq!(names.kept(), KEPT);
    assert!(std::sync::Arc::ptr_eq(&first, &names.shared("acme").unwrap()));
    assert_eq!(names.shared("made-up-9999").as_deref(), Some("made-up-9999"), "though it is not kept");
}
