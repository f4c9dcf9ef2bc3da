//! The JSON of a review: the members that the injection reads, and a bounded number of values. A pod of 1.4 MB may have
//! 120,000 objects, and each costs hundreds of bytes in memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The most values of a review that are kept: objects, lists, texts, numbers. Each costs at most about 700 bytes, and
/// the injection has up to four copies.
pub(crate) const VALUES_MAX: usize = 10_000;

/// The members that are kept of an object.
enum Kept {
    All,
    Members(&'static [(&'static str, Kept)]),
}

static REVIEW: Kept = Kept::Members(&[
    ("apiVersion", Kept::All),
    ("kind", Kept::All),
    (
        "request",
        Kept::Members(&[
            ("uid", Kept::All),
            ("kind", Kept::All),
            ("name", Kept::All),
            ("namespace", Kept::All),
            ("operation", Kept::All),
            (
                "object",
                Kept::Members(&[
                    (
                        "metadata",
                        Kept::Members(&[
                            ("generateName", Kept::All),
                            ("labels", Kept::All),
                            ("annotations", Kept::All),
                        ]),
                    ),
                    ("spec", Kept::All),
                ]),
            ),
        ]),
    ),
]);

/// The reason why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    NotJson,
    TooManyValues,
}

/// Reads the body of a review.
pub(crate) fn read(body: &[u8]) -> Result<Value, Unread> {
    let left = Cell::new(VALUES_MAX);
    let is_over = Cell::new(false);
    let tree = Tree { kept: &REVIEW, left: &left, is_over: &is_over };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = tree.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|_| if is_over.get() { Unread::TooManyValues } else { Unread::NotJson })
}

#[derive(Clone, Copy)]
struct Tree<'c> {
    kept: &'c Kept,
    left: &'c Cell<usize>,
    is_over: &'c Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => {
                self.is_over.set(true);
                return Err(D::Error::custom("too many values"));
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Tree { kept: &Kept::All, ..self })? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let kept = match self.kept {
                Kept::All => Some(&Kept::All),
                Kept::Members(named) => named.iter().find(|(name, _)| *name == key).map(|(_, kept)| kept),
            };
            match kept {
                Some(kept) => {
                    let value = members.next_value_seed(Tree { kept, ..self })?;
                    map.insert(key, value);
                }
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Unread, VALUES_MAX, read};

    #[test]
    fn members_that_no_injection_reads_are_dropped() {
        let metadata = json!({"labels": {"a": "b"}, "managedFields": [{"f:spec": {}}], "generateName": "x-"});
        let object =
            json!({"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Pending"}});
        let review =
            json!({"kind": "AdmissionReview", "request": {"uid": "1", "object": object, "oldObject": {}}});
        let kept =
            json!({"metadata": {"labels": {"a": "b"}, "generateName": "x-"}, "spec": {"containers": []}});
        let kept = json!({"kind": "AdmissionReview", "request": {"uid": "1", "object": kept}});
        assert_eq!(read(review.to_string().as_bytes()), Ok(kept));
    }

    #[test]
    fn values_beyond_the_bound_are_not_read() {
        // The list, `spec`, `object`, `request` and the review are values, too.
        for (items, expected) in [(VALUES_MAX - 5, true), (VALUES_MAX - 4, false)] {
            let list = vec!["0"; items].join(",");
            let body = format!(r#"{{"request": {{"object": {{"spec": {{"x": [{list}]}}}}}}}}"#);
            assert_eq!(
                read(body.as_bytes()).map(|_| ()).map_err(|why| why == Unread::TooManyValues),
                if expected { Ok(()) } else { Err(true) }
            );
        }
    }

    #[test]
    fn text_after_the_review_is_not_json() {
        assert_eq!(read(b"{} {}"), Err(Unread::NotJson));
    }
}
