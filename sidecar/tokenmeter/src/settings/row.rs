//! A row of the table of settings: its names, and the form of its value.

use super::Group;

/// A row of the table of settings.
#[derive(Debug)]
pub struct Setting {
    /// The key in the file; the flag and the variable derive from it.
    pub key: &'static str,
    /// The heading in the help and in `configuration.md`.
    pub group: Group,
    /// The form of the value.
    pub form: Form,
    /// The default as text; empty if it is computed or there is none.
    pub default: &'static str,
    /// The help text, without a full stop at its end.
    pub help: &'static str,
}

/// The form of a setting's value.
#[derive(Debug)]
pub enum Form {
    /// Text; the placeholder in the help.
    Text(&'static str),
    /// A whole number within bounds.
    Number {
        /// The unit, in the plural.
        unit: &'static str,
        /// The lower bound, inclusive.
        min: u64,
        /// The upper bound, inclusive.
        max: u64,
    },
    /// A non-negative decimal number; empty if there is none.
    Decimal {
        /// The unit, in the plural.
        unit: &'static str,
    },
    /// `true` or `false`.
    Switch,
    /// One of these names.
    Choice(&'static [&'static str]),
}

impl Setting {
    /// An optional file of the group `Proxy`.
    pub(super) const fn proxy_file(key: &'static str, help: &'static str) -> Self {
        Self { key, group: Group::Proxy, form: Form::Text("FILE"), default: "", help }
    }

    /// A switch of the group `Proxy`, off by default.
    pub(super) const fn proxy_switch(key: &'static str, help: &'static str) -> Self {
        Self { key, group: Group::Proxy, form: Form::Switch, default: "false", help }
    }

    /// A whole number of the group `Proxy`: its unit in the plural, and its inclusive bounds.
    pub(super) const fn proxy_number(
        key: &'static str,
        (unit, min, max): (&'static str, u64, u64),
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { key, group: Group::Proxy, form: Form::Number { unit, min, max }, default, help }
    }

    /// An optional text of the group `Spend`; `shape` is its placeholder in the help.
    pub(super) const fn spend_text(key: &'static str, shape: &'static str, help: &'static str) -> Self {
        Self { key, group: Group::Spend, form: Form::Text(shape), default: "", help }
    }

    /// A choice of the group `Spend`; the first name is the default.
    pub(super) const fn spend_choice(
        key: &'static str,
        names: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { key, group: Group::Spend, form: Form::Choice(names), default: names[0], help }
    }

    /// An optional text of the group `Gpu`, as [`Self::spend_text`].
    pub(super) const fn gpu_text(key: &'static str, shape: &'static str, help: &'static str) -> Self {
        Self { key, group: Group::Gpu, form: Form::Text(shape), default: "", help }
    }

    /// Returns the flag, with its dashes.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// Returns the name of the environment variable.
    pub fn variable(&self) -> String {
        variable(self.key)
    }
}

/// Returns the name of the environment variable of a key.
pub fn variable(key: &str) -> String {
    format!("TOKENMETER_{}", key.to_ascii_uppercase())
}
