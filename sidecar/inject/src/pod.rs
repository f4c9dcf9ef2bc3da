//! The parts of a pod, read without trust in its shape.

use serde_json::{Map, Value};

use crate::reason::Reason;

/// The name of the sidecar's container.
pub(crate) const CONTAINER: &str = "tokenmeter";

/// Returns the value at a path of keys.
pub(crate) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Returns the text at a path of keys.
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    at(value, path).and_then(Value::as_str)
}

/// Returns the items of a list; an absent one is empty.
pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the map at a key, which is created if it is absent or null.
pub(crate) fn map_mut<'v>(value: &'v mut Value, key: &str) -> Result<&'v mut Map<String, Value>, Reason> {
    let map = value.as_object_mut().ok_or(Reason::NotAPod)?;
    let entry = map.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut().ok_or(Reason::NotAPod)
}

/// Returns the list at a key, which is created if it is absent or null.
pub(crate) fn list_mut<'v>(value: &'v mut Value, key: &str) -> Result<&'v mut Vec<Value>, Reason> {
    let map = value.as_object_mut().ok_or(Reason::NotAPod)?;
    let entry = map.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Array(Vec::new());
    }
    entry.as_array_mut().ok_or(Reason::NotAPod)
}

/// Returns the words of command and args, and how many of them are the command's. `None` if one is not text.
pub(crate) fn words(container: &Value) -> Option<(Vec<String>, usize)> {
    let mut words = Vec::new();
    let mut command = 0;
    for key in ["command", "args"] {
        for word in list(container, key) {
            words.push(word.as_str()?.to_owned());
        }
        if key == "command" {
            command = words.len();
        }
    }
    Some((words, command))
}

/// Returns all containers: those of init first.
pub(crate) fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    list(spec, "initContainers").iter().chain(list(spec, "containers"))
}

/// Sets a variable of a container, and keeps the place of one that exists.
pub(crate) fn set_env(container: &mut Value, name: &str, value: &str) -> Result<(), Reason> {
    let env = list_mut(container, "env")?;
    let entry = serde_json::json!({ "name": name, "value": value });
    let mut found = false;
    for old in env.iter_mut().filter(|old| text(old, &["name"]) == Some(name)) {
        *old = entry.clone();
        found = true;
    }
    if !found {
        env.push(entry);
    }
    Ok(())
}
