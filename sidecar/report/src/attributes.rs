//! Attributes of tenants: cost centre, department, owner and tags, by tenant and day, from a YAML file.
//!
//! Values are text as written: the cost centre `00417` keeps its zeros.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::month;
use ledger::period::Time;
use origin::fields::{self, Fields};
use origin::file::{self, Node, Shape};
use origin::{Diagnostic, Diagnostics, Origin};

use super::key::{Key, Value};

/// Attributes of tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The entries of each tenant by the day from which they are in force.
    tenants: BTreeMap<Arc<str>, BTreeMap<i32, Arc<Entry>>>,
}

/// The attributes of a tenant from a day on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The cost centre.
    pub cost_center: Option<Arc<str>>,
    /// The department.
    pub department: Option<Arc<str>>,
    /// The owner.
    pub owner: Option<Arc<str>>,
    /// The tags, by name.
    pub tags: BTreeMap<Arc<str>, Arc<str>>,
}

const TENANT: &str = "tenant";
const ENTRY_KEYS: &[&str] = &[TENANT, "valid_from", "cost_center", "department", "owner", "tags"];

/// Maximum length of a name.
const NAME_MAX_BYTES: usize = 512;

impl Attributes {
    /// Parses the text of the file at `path`.
    ///
    /// # Errors
    /// Returns every error of the file, each with its line.
    pub fn parse(path: &str, text: &str) -> Result<Self, Diagnostics> {
        let root = file::parse(path, text).map_err(|error| Diagnostics(vec![error]))?;
        let mut reader = Reader { attributes: Self::default(), lines: BTreeMap::new(), errors: Vec::new() };
        reader.file(root);
        let Reader { attributes, errors, .. } = reader;
        if errors.is_empty() { Ok(attributes) } else { Err(Diagnostics(errors)) }
    }

    /// Returns the attributes of a tenant on a day, since 1970; `None` without an entry in force.
    pub fn of(&self, tenant: &str, day: i32) -> Option<&Arc<Entry>> {
        self.tenants.get(tenant)?.range(..=day).next_back().map(|(_, entry)| entry)
    }

    /// Returns each tenant with its entries and the day from which each is in force; `None` for all time.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Option<i32>, &Entry)> {
        self.tenants.iter().flat_map(|(tenant, entries)| {
            let from = |day: i32| (day != ALWAYS).then_some(day);
            entries.iter().map(move |(day, entry)| (&**tenant, from(*day), &**entry))
        })
    }
}

/// The first day of an entry without `valid_from`.
const ALWAYS: i32 = i32::MIN;

impl Entry {
    /// Returns the value of a key that is an attribute.
    pub fn value(&self, key: Key) -> Value {
        let text = match key {
            Key::CostCenter => self.cost_center.as_ref(),
            Key::Department => self.department.as_ref(),
            Key::Owner => self.owner.as_ref(),
            Key::Tag(tag) => self.tags.get(tag.name()),
            _ => None,
        };
        Value::maybe(text)
    }

    /// Returns the attributes that have a value, by name.
    pub fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let fixed = [Key::CostCenter, Key::Department, Key::Owner];
        let fixed = fixed.into_iter().zip([&self.cost_center, &self.department, &self.owner]);
        let fixed = fixed.filter_map(|(key, value)| Some((key.name(), &**value.as_ref()?)));
        fixed.chain(self.tags.iter().map(|(name, value)| (&**name, &**value)))
    }
}

struct Reader {
    attributes: Attributes,
    /// The line of each entry.
    lines: BTreeMap<(Arc<str>, i32), Origin>,
    errors: Vec<Diagnostic>,
}

impl Reader {
    fn error(&mut self, origin: &Origin, problem: impl Into<String>, remedy: impl Into<String>) {
        self.errors.push(Diagnostic::at(origin, problem, remedy));
    }

    fn fields(&mut self, node: Node, noun: &str, known: &[&str]) -> Option<Fields> {
        Fields::read(node, noun, known, &mut self.errors)
    }

    fn file(&mut self, root: Node) {
        let Some(mut top) = self.fields(root, "an attributes file", &["tenants"]) else { return };
        let remedy = "list the tenants under it, each after a `-`";
        let Some(node) = top.required("tenants", remedy, &mut self.errors) else { return };
        let Shape::List(items) = node.shape else {
            return self.error(&node.origin, "`tenants` is not a list", "write each tenant after a `-`");
        };
        items.into_iter().for_each(|item| self.entry(item));
    }

    fn entry(&mut self, node: Node) {
        let Some(mut fields) = self.fields(node, "an entry", ENTRY_KEYS) else { return };
        let origin = fields.origin.clone();
        let tenant = fields.required(TENANT, "write the tenant's name", &mut self.errors);
        let tenant = tenant.and_then(|node| self.name(TENANT, node));
        let from = fields.take("valid_from").map_or(Some(ALWAYS), |node| self.day(node));
        let mut name = |key| fields.take(key).and_then(|node| self.name(key, node));
        let (cost_center, department, owner) = (name("cost_center"), name("department"), name("owner"));
        let tags = fields.take("tags").map(|node| self.tags(node)).unwrap_or_default();
        let (Some(tenant), Some(from)) = (tenant, from) else { return };
        if let Some(first) = self.lines.insert((Arc::clone(&tenant), from), origin.clone()) {
            let problem =
                format!("`{}` has two entries from the same day, first at {first}", tenant.escape_debug());
            self.error(&origin, problem, "give one another `valid_from`, or remove it");
        }
        let entry = Entry { cost_center, department, owner, tags };
        self.attributes.tenants.entry(tenant).or_default().insert(from, Arc::new(entry));
    }

    fn tags(&mut self, node: Node) -> BTreeMap<Arc<str>, Arc<str>> {
        let remedy = || "write `name: value` lines, as in `tags: {env: prod}`".to_owned();
        // In FOCUS, tags and the other attributes are one map.
        let reject = |key: &str, origin: &Origin| {
            let is_attribute =
                ENTRY_KEYS.contains(&key) || key.trim().is_empty() || key.len() > NAME_MAX_BYTES;
            is_attribute.then(|| {
                let problem = format!("`{}` cannot be the name of a tag", key.escape_debug());
                Diagnostic::at(origin, problem, "give the tag another name")
            })
        };
        let Some(fields) = Fields::of_any(node, "`tags`", remedy, &mut self.errors, reject) else {
            return BTreeMap::new();
        };
        fields
            .into_entries()
            .filter_map(|(key, node)| Some((key.as_str().into(), self.name(&key, node)?)))
            .collect()
    }

    fn name(&mut self, key: &str, node: Node) -> Option<Arc<str>> {
        let (name, origin) = fields::text(key, node, &mut self.errors)?;
        if name.len() > NAME_MAX_BYTES || name.chars().any(char::is_control) {
            let problem = format!("`{}` is too long or has control characters", key.escape_debug());
            self.error(&origin, problem, format!("write up to {NAME_MAX_BYTES} bytes on one line"));
            return None;
        }
        Some(name.into())
    }

    /// Reads a day; a month is its first day.
    fn day(&mut self, node: Node) -> Option<i32> {
        let (text, origin) = fields::text("valid_from", node, &mut self.errors)?;
        match Time::read(&text) {
            Ok(Time::Month(month)) => Some(month::first_day(month)),
            Ok(Time::Day(day)) => Some(day),
            // Midnight of UTC is not the beginning of a day of another time zone.
            Ok(Time::Instant(_)) | Err(_) => {
                let problem = format!("`valid_from`: `{}` is not a day", text.escape_debug());
                self.error(
                    &origin,
                    problem,
                    "write it as in 2026-10-01; a day begins at midnight of the ledger's time zone",
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::{month, period};

    use super::Attributes;
    use crate::Key;

    fn day(text: &str) -> i32 {
        month::day(period::instant(text).expect("a day"))
    }

    fn value(attributes: &Attributes, tenant: &str, at: &str, key: &str) -> Option<String> {
        let key = Key::named(key).expect("a key");
        attributes.of(tenant, day(at)).map(|entry| entry.value(key).to_string())
    }

    #[test]
    fn names_keep_their_spelling() {
        let text = "tenants:\n- {tenant: 00417, cost_center: 0x1F, owner: no, tags: {007: 1e3, env: on}}\n";
        let read = Attributes::parse("a.yaml", text).expect("it is right");
        for (key, expected) in [
            ("cost_center", "0x1F"),
            ("owner", "no"),
            ("tag.007", "1e3"),
            ("tag.env", "on"),
            ("department", ""),
        ] {
            assert_eq!(value(&read, "00417", "2026-10-01", key).as_deref(), Some(expected), "{key}");
        }
        assert_eq!(value(&read, "417", "2026-10-01", "owner"), None);
    }

    #[test]
    fn latest_entry_in_force_applies() {
        let text = "tenants:\n- {tenant: a, cost_center: two, valid_from: 2026-10-15}\n\
                    - {tenant: a, cost_center: one, valid_from: 2026-10}\n- {tenant: b, owner: ann}\n";
        let read = Attributes::parse("a.yaml", text).expect("it is right");
        for (tenant, at, expected) in [
            ("a", "2026-09-30", None),
            ("a", "2026-10-01", Some("one")),
            ("a", "2026-10-14", Some("one")),
            ("a", "2026-10-15", Some("two")),
            ("b", "1970-01-01", Some("")),
            ("c", "2026-10-15", None),
        ] {
            assert_eq!(value(&read, tenant, at, "cost_center").as_deref(), expected, "{tenant} {at}");
        }
        let from: Vec<_> = read.entries().map(|(tenant, from, _)| (tenant.to_owned(), from)).collect();
        let expected = [("a", Some(day("2026-10-01"))), ("a", Some(day("2026-10-15"))), ("b", None)];
        assert_eq!(from, expected.map(|(tenant, from)| (tenant.to_owned(), from)));
    }

    /// Repricing does not read the file: it would select all or no exchanges.
    #[test]
    fn repricing_rejects_filters_by_attributes() {
        let filters = [crate::Filter::read("cost_center!=1").expect("a filter")];
        let text = "version: v\ncurrency: USD\nmodels:\n- {name: m, input: 1}\n";
        let (book, _) = price::Book::read(text).expect("a book");
        let request = crate::Reprice {
            range: ledger::Range::ALL,
            filters: &filters,
            unpriced_only: false,
            book: &book,
            who: "ann",
            at_us: 0,
        };
        let error = crate::rehearse(&crate::memory::Memory::default(), &request).expect_err("no attributes");
        assert!(error.to_string().contains("`cost_center` is an attribute"), "{error}");
    }

    #[test]
    fn every_error_has_its_line() {
        for (text, said) in [
            ("", "a.yaml:1: an attributes file is empty"),
            ("tenant: []", "a.yaml:1: an attributes file has no key `tenant`; did you mean `tenants`"),
            ("tenants: x", "a.yaml:1: `tenants` is not a list"),
            ("tenants:\n- x", "a.yaml:2: an entry is not a map"),
            ("tenants:\n- {owner: x}", "a.yaml:2: an entry has no `tenant`"),
            ("tenants:\n- {tenant: x, cost_centre: 1}", "did you mean `cost_center`"),
            ("tenants:\n- {tenant: x, owner: a, owner: b}", "`owner` is set twice, first at a.yaml:2"),
            ("tenants:\n- {tenant: x, owner: [a]}", "`owner` is not a single value"),
            ("tenants:\n- tenant: x\n  owner:\n", "a.yaml:3: `owner` has no value"),
            ("tenants:\n- {tenant: x, owner: \"a\\nb\"}", "`owner` is too long or has control characters"),
            ("tenants:\n- {tenant: x, valid_from: soon}", "`valid_from`: `soon` is not a day"),
            ("tenants:\n- {tenant: x, valid_from: \"2026-10-01T12:00:00Z\"}", "is not a day"),
            (
                "tenants:\n- {tenant: x, valid_from: \"2026-10-01T00:00:00Z\"}",
                "midnight of the ledger's time zone",
            ),
            ("tenants:\n- {tenant: x, tags: [a]}", "`tags` is not a map"),
            ("tenants:\n- {tenant: x, tags: {owner: a}}", "`owner` cannot be the name of a tag"),
            ("tenants:\n- {tenant: x, tags: {a: 1, a: 2}}", "`a` is set twice"),
            (
                "tenants:\n- {tenant: x}\n- {tenant: x}",
                "a.yaml:3: `x` has two entries from the same day, first at a.yaml:2",
            ),
            ("tenants: [", "a.yaml:1: not YAML"),
        ] {
            let errors = Attributes::parse("a.yaml", text).expect_err(text).to_string();
            assert!(errors.contains(said), "{text}: {errors}");
        }
    }
}
