//! Valid names, and the limit of shared ones.

use super::{MAX_SHARED_NAMES, NAME_MAX_BYTES, Name, Names};

#[test]
fn names_are_bounded() {
    let long = "a".repeat(NAME_MAX_BYTES + 1);
    let wide = format!("{}é", "a".repeat(NAME_MAX_BYTES - 1));
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
        (&*long, Some(&long[..NAME_MAX_BYTES])),
        (&*wide, Some(&wide[..NAME_MAX_BYTES - 1])),
    ] {
        assert_eq!(Name::of(text).as_ref().map(|name| &**name.text()), name, "{text:?}");
        assert_eq!(Names::default().shared(text).as_deref(), name, "{text:?}");
    }
}

#[test]
fn equal_names_are_shared_up_to_the_limit() {
    let names = Names::default();
    let first = names.shared("acme").unwrap();
    for index in 0..2 * MAX_SHARED_NAMES {
        names.shared(&format!("invented-{index}")).unwrap();
    }
    assert_eq!(names.len(), MAX_SHARED_NAMES);
    assert!(std::sync::Arc::ptr_eq(&first, &names.shared("acme").unwrap()));
    assert_eq!(names.shared("invented-9999").as_deref(), Some("invented-9999"), "although it is not shared");
}
