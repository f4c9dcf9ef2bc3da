//! Names as labels: the first so many keep theirs.

use super::*;

#[test]
fn the_first_names_keep_their_labels_and_the_rest_is_other() {
    let mut names = Names::new(2);
    let mut label = |name: &str| names.label(name).to_string();
    assert_eq!(label("b"), "b");
    assert_eq!((label(""), label(UNKNOWN), label(OTHER)), (UNKNOWN.into(), UNKNOWN.into(), OTHER.into()));
    assert_eq!(label("a"), "a");
    assert_eq!(
        (label("c"), label("a"), label("b"), label("c")),
        (OTHER.into(), "a".into(), "b".into(), OTHER.into())
    );
}

#[test]
fn a_name_is_cut_before_it_is_looked_up() {
    let mut names = Names::new(1);
    let long = "x".repeat(200);
    assert_eq!(names.label(&long).len(), 128);
    assert_eq!(names.label(&long[..129]).len(), 128, "the same name to us");
    assert_eq!(&*Names::new(1).label("a\0b"), "a\u{fffd}b");
}
