//! The value of each setting as text, merged from flags, environment and file.

use std::collections::BTreeMap;

use origin::fields;
use origin::file::{Node, Shape};
use origin::{Diagnostic, Origin};
use text::suggestion;

use super::{BUDGET_LIST, List, MAPS, OBJECTIVE_LIST, SETTINGS, UPSTREAMS};

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The value, as text.
    pub text: String,
    /// The place it was written.
    pub origin: Origin,
}

/// One entry of a list in the file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line on which it begins.
    pub origin: Origin,
    /// The values of its keys.
    pub fields: BTreeMap<&'static str, Value>,
}

/// The settings as written, from all places.
#[derive(Clone, Debug, Default)]
pub struct RawSettings {
    /// The value that applies, by key; a key without one has its default.
    pub values: BTreeMap<&'static str, Value>,
    /// The file's list of upstreams and its line.
    pub upstreams: Option<(Origin, Vec<Entry>)>,
    /// The file's list of objectives and its line.
    pub objectives: Option<(Origin, Vec<Entry>)>,
    /// The file's list of budgets and its line.
    pub budgets: Option<(Origin, Vec<Entry>)>,
    /// True if the file could not be read: a setting that seems missing may be in it.
    pub file_unread: bool,
    /// Unknown keys, and values of a shape that no setting has.
    pub errors: Vec<Diagnostic>,
}

impl RawSettings {
    /// Merges flags, environment and file. `flags` holds text by key; `env` looks a variable up; an
    /// empty variable counts as unset.
    pub fn merge(
        flags: &BTreeMap<&'static str, String>,
        env: &dyn Fn(&str) -> Option<String>,
        file: Option<Node>,
    ) -> Self {
        let mut written = Self::default();
        if let Some(root) = file {
            written.take_root(root);
        }
        for setting in SETTINGS {
            if let Some(text) = env(&setting.variable()).filter(|text| !text.is_empty()) {
                written.values.insert(setting.key, Value { text, origin: Origin::Env(setting.variable()) });
            }
            if let Some(text) = flags.get(setting.key) {
                let value = Value { text: text.clone(), origin: Origin::Flag(setting.flag()) };
                written.values.insert(setting.key, value);
            }
        }
        written
    }

    fn take_root(&mut self, root: Node) {
        let entries = match root.shape {
            Shape::Map(entries) => entries,
            Shape::Nothing => return,
            Shape::Scalar(_) | Shape::List(_) => {
                let problem = "the file is not a map of settings";
                return self.errors.push(Diagnostic::at(&root.origin, problem, "write `key: value` lines"));
            }
        };
        let mut seen = BTreeMap::new();
        for (key, origin, node) in self.spread(entries) {
            self.check_repeat(&mut seen, &key, &origin);
            if key == UPSTREAMS.key {
                self.upstreams = self.list(&UPSTREAMS, origin, node).or(self.upstreams.take());
            } else if key == OBJECTIVE_LIST.key {
                self.objectives = self.list(&OBJECTIVE_LIST, origin, node).or(self.objectives.take());
            } else if key == BUDGET_LIST.key {
                self.budgets = self.list(&BUDGET_LIST, origin, node).or(self.budgets.take());
            } else if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
                if let Some(value) = self.scalar(setting.key, origin, node) {
                    self.values.insert(setting.key, value);
                }
            } else {
                let lists = [UPSTREAMS.key, OBJECTIVE_LIST.key, BUDGET_LIST.key];
                let known = SETTINGS.iter().map(|setting| setting.key).chain(lists);
                let problem = format!("there is no setting `{key}`");
                self.unknown(&key, problem, &origin, known);
            }
        }
    }

    fn list(&mut self, list: &'static List, origin: Origin, node: Node) -> Option<(Origin, Vec<Entry>)> {
        let Shape::List(items) = node.shape else {
            self.errors.push(Diagnostic::at(&origin, format!("`{}` is not a list", list.key), list.remedy()));
            return None;
        };
        let entries = items.into_iter().filter_map(|item| self.entry(list, item)).collect();
        Some((origin, entries))
    }

    fn entry(&mut self, list: &'static List, item: Node) -> Option<Entry> {
        let Shape::Map(keys) = item.shape else {
            let problem = format!("{} is not `key: value` lines", list.noun);
            let remedy = format!("write `{}` and its other keys below", list.example);
            self.errors.push(Diagnostic::at(&item.origin, problem, remedy));
            return None;
        };
        let mut fields = BTreeMap::new();
        self.fields(list, "", keys, &mut fields);
        Some(Entry { origin: item.origin, fields })
    }

    /// Reads the keys of an entry, or of the map under one of its keys: `within` is `key.` then, else empty.
    fn fields(
        &mut self,
        list: &'static List,
        within: &str,
        keys: Vec<(String, Origin, Node)>,
        fields: &mut BTreeMap<&'static str, Value>,
    ) {
        let mut seen = BTreeMap::new();
        for (key, origin, node) in self.spread(keys) {
            self.check_repeat(&mut seen, &key, &origin);
            let path = format!("{within}{key}");
            let inner = format!("{path}.");
            if let Some(known) = list.keys.iter().copied().find(|known| *known == path) {
                if let Some(value) = self.scalar(known, origin, node) {
                    fields.insert(known, value);
                }
            } else if list.keys.iter().any(|known| known.starts_with(&inner)) {
                match node.shape {
                    Shape::Map(keys) => self.fields(list, &inner, keys, fields),
                    _ => {
                        let problem = format!("`{path}` is not `key: value` lines");
                        self.errors.push(Diagnostic::at(&origin, problem, "write its keys below it"));
                    }
                }
            } else {
                let holder = match within.strip_suffix('.') {
                    Some(outer) => format!("`{outer}`"),
                    None => list.noun.to_owned(),
                };
                let known = list.keys.iter().filter_map(|known| known.strip_prefix(within));
                let mut known: Vec<_> = known.map(|known| known.split('.').next().unwrap_or(known)).collect();
                known.dedup();
                let problem = format!("{holder} has no key `{key}`");
                self.unknown(&key, problem, &origin, known.into_iter());
            }
        }
    }

    /// Replaces each map of [`MAPS`] by the settings that it stands for.
    fn spread(&mut self, entries: Vec<(String, Origin, Node)>) -> Vec<(String, Origin, Node)> {
        let mut all = Vec::new();
        for (key, origin, node) in entries {
            let map = MAPS.iter().find(|(map, _)| *map == key);
            match (map, node.shape) {
                (Some((_, keys)), Shape::Map(inner)) => {
                    for (name, origin, node) in inner {
                        match keys.iter().find(|(known, _)| *known == name) {
                            Some((_, setting)) => all.push(((*setting).to_owned(), origin, node)),
                            None => {
                                let problem = format!("`{key}` has no key `{name}`");
                                let known = keys.iter().map(|(known, _)| *known);
                                self.unknown(&name, problem, &origin, known);
                            }
                        }
                    }
                }
                (_, shape) => all.push((key, origin, Node { shape, ..node })),
            }
        }
        all
    }

    /// Returns the text of a value; a list of texts becomes one text with commas.
    fn scalar(&mut self, key: &str, origin: Origin, node: Node) -> Option<Value> {
        let is_text = |item: &Node| matches!(item.shape, Shape::Scalar(_));
        let shape = match node.shape {
            Shape::List(items) if LISTS.contains(&key) && items.iter().all(is_text) => {
                let names = items.into_iter().filter_map(|item| match item.shape {
                    Shape::Scalar(name) => Some(name),
                    _ => None,
                });
                let names: Vec<_> = names.collect();
                if let Some(name) = names.iter().find(|name| name.contains(',')) {
                    let problem = format!("`{key}` has a comma within one name, `{}`", name.escape_debug());
                    let remedy = "write each name as a separate item; in a pattern, `?` matches a comma";
                    self.errors.push(Diagnostic::at(&origin, problem, remedy));
                    return None;
                }
                Shape::Scalar(names.join(","))
            }
            other => other,
        };
        let (text, origin) = fields::scalar(key, Node { shape, origin }, &mut self.errors)?;
        Some(Value { text, origin })
    }

    fn check_repeat(&mut self, seen: &mut BTreeMap<String, Origin>, key: &str, origin: &Origin) {
        if let Some(first) = seen.insert(key.to_owned(), origin.clone()) {
            self.errors.push(Diagnostic::repeated(key, origin, &first));
        }
    }

    fn unknown(
        &mut self,
        key: &str,
        problem: String,
        origin: &Origin,
        known: impl Iterator<Item = &'static str> + Clone,
    ) {
        self.errors.push(Diagnostic::at(origin, problem, suggestion(key, known)));
    }
}

/// The keys whose value may be a list of names in place of names separated by commas.
const LISTS: [&str; 6] = ["admin_hosts", "tokenizers", "models", "tenants", "gpus", "otlp_signals"];
