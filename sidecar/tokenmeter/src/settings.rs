//! The settings as written: one table of all there are, and what was written for each.
//!
//! Each setting can be written in four places; the first that has it counts: flag, environment,
//! file, default. Flag, variable, key, help text and check all come from its row in [`SETTINGS`],
//! so none can be missing or differ. Values stay text here; `plan` gives them meaning.

use std::collections::BTreeMap;

use metrics::PRESETS;
use relay::Kind;

use crate::file::{Node, Shape};
use crate::mistake::Mistake;
use crate::nearest;
use crate::origin::Origin;

/// A setting there is.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file; the flag and the variable are made of it.
    pub key: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// The value it has if none is written; empty if that is worked out.
    pub default: &'static str,
    /// What it means, in one sentence without a full stop.
    pub help: &'static str,
}

/// What a setting's value looks like.
#[derive(Debug)]
pub enum Form {
    /// Text; the word shown for it in the help.
    Text(&'static str),
    /// A whole number of something, within bounds.
    Number {
        /// Of what, in the plural.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// `true` or `false`.
    Switch,
    /// One of these.
    Choice(&'static [&'static str]),
}

impl Setting {
    /// Its flag.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// Its environment variable.
    pub fn variable(&self) -> String {
        variable(self.key)
    }
}

/// The environment variable that mirrors a key.
pub fn variable(key: &str) -> String {
    format!("TOKENMETER_{}", key.to_ascii_uppercase())
}

/// Every setting, in the order of the help and of `check-config`.
pub const SETTINGS: [Setting; 26] = [
    Setting {
        key: "upstream",
        form: Form::Text("URL"),
        default: "",
        help: "The inference server behind us, as http://HOST:PORT[/PREFIX]; \
               for several, list them under `upstreams` in the file",
    },
    Setting {
        key: "kind",
        form: Form::Choice(&KINDS),
        default: "auto",
        help: "What kind of server it is; the provider label of its metrics; auto asks it, \
               and is openai until it is known",
    },
    Setting {
        key: "usage",
        form: Form::Choice(&USAGE),
        default: "inject",
        help: "What is done so that streams carry token counts: inject asks the server for usage when \
               the client did not, and takes exactly that out of the answer; continuous also asks for \
               running counts, which makes aborted streams exact on vLLM, SGLang, TensorRT-LLM and LMDeploy; \
               observe touches nothing",
    },
    Setting {
        key: "listen",
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9800",
        help: "Where clients reach the upstream through us, as ADDRESS:PORT; port 0 takes a free one",
    },
    Setting {
        key: "engine_metrics",
        form: Form::Choice(&SCRAPES),
        default: "auto",
        help: "Whether the server's own metrics page is read; auto does unless that disturbs others \
               who read it, as llama.cpp's would; off with a kind named asks the server nothing",
    },
    Setting {
        key: "engine_metrics_interval_ms",
        form: Form::Number { unit: "milliseconds", min: 1000, max: 3_600_000 },
        default: "15000",
        help: "How often it is read",
    },
    Setting {
        key: "admin",
        form: Form::Text("ADDR"),
        default: "127.0.0.1:9464",
        help: "Where /metrics, /livez, /readyz and the live page are, as ADDRESS:PORT",
    },
    Setting {
        key: "admin_hosts",
        form: Form::Text("NAMES"),
        default: "",
        help: "Host names, separated by commas, under which the admin address may be asked, \
               besides IP addresses and localhost (a guard against DNS rebinding)",
    },
    Setting {
        key: "workers",
        form: Form::Number { unit: "threads", min: 1, max: 1024 },
        default: "",
        help: "Worker threads; by default one for each core we may use",
    },
    Setting {
        key: "connections",
        form: Form::Number { unit: "connections", min: 1, max: 1_000_000 },
        default: "4096",
        help: "Client connections served at once by each worker; beyond it accepting pauses",
    },
    Setting {
        key: "pool_size",
        form: Form::Number { unit: "connections", min: 0, max: 100_000 },
        default: "256",
        help: "Idle upstream connections kept by each worker for each upstream",
    },
    Setting {
        key: "pool_idle_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 3_600_000 },
        default: "4000",
        help: "How long an idle upstream connection is kept; below uvicorn's 5000",
    },
    Setting {
        key: "connect_timeout_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 600_000 },
        default: "5000",
        help: "How long connecting to the upstream may take",
    },
    Setting {
        key: "head_timeout_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 600_000 },
        default: "10000",
        help: "How long a client may take to send a request head",
    },
    Setting {
        key: "stall_ms",
        form: Form::Number { unit: "milliseconds", min: 1, max: 3_600_000 },
        default: "1000",
        help: "A longer gap between two tokens counts as a stall",
    },
    Setting {
        key: "objective",
        form: Form::Choice(&OBJECTIVES),
        default: "off",
        help: "What every model's streams are to keep, at least 99 of 100: voice is a first token within 250 ms, \
               then 100 tokens per second; chat 1 s and 30; reading 2.5 s and 15; floor 10 s and 10; \
               for others, or for some models only, list them under `objectives` in the file",
    },
    Setting {
        key: "max_tokens_claimed",
        form: Form::Number { unit: "tokens", min: 1, max: 9_007_199_254_740_992 },
        default: "10000000",
        help: "The most tokens one number of one exchange may claim; more is refused and counted",
    },
    Setting {
        key: "half_close",
        form: Form::Switch,
        default: "false",
        help: "Go on answering a client that closed its write side; off, it counts as gone",
    },
    Setting {
        key: "drain_delay_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 3_600_000 },
        default: "5000",
        help: "After a stop signal: how long new connections are still served",
    },
    Setting {
        key: "drain_grace_ms",
        form: Form::Number { unit: "milliseconds", min: 0, max: 86_400_000 },
        default: "25000",
        help: "After that: how long streams may take to finish before they are cut",
    },
    Setting {
        key: "max_models",
        form: Form::Number { unit: "models", min: 1, max: 10_000 },
        default: "50",
        help: "Models with labels of their own; the others share `_other`",
    },
    Setting {
        key: "outbox_records",
        form: Form::Number { unit: "records", min: 1, max: 1_000_000 },
        default: "4096",
        help: "Finished exchanges that may wait for the control plane; more are dropped and counted",
    },
    Setting {
        key: "tokenizers",
        form: Form::Text("MODEL=PATH"),
        default: "",
        help: "Tokenizers, separated by commas, for models whose server counts nothing: each a model's name \
               and its tokenizer.json or the folder that holds it",
    },
    Setting {
        key: "access_log",
        form: Form::Switch,
        default: "false",
        help: "Log a line for each exchange: counts and times, never content",
    },
    Setting {
        key: "log_level",
        form: Form::Choice(&["error", "warn", "info", "debug", "trace"]),
        default: "info",
        help: "The least important messages that are logged",
    },
    Setting {
        key: "log_format",
        form: Form::Choice(&["auto", "text", "json"]),
        default: "auto",
        help: "How they look; auto is text on a terminal and JSON elsewhere",
    },
];

/// The kinds of server, values of `gen_ai.provider.name`; before them what finds them out.
pub const KINDS: [&str; Kind::ALL.len() + 1] = {
    let mut names = [AUTO; Kind::ALL.len() + 1];
    let mut at = 0;
    while at < Kind::ALL.len() {
        names[at + 1] = Kind::ALL[at].name();
        at += 1;
    }
    names
};

/// The kind that is found out.
pub const AUTO: &str = "auto";

/// Whether an upstream's own metrics page is read.
pub const SCRAPES: [&str; 3] = ["auto", "on", "off"];

/// The names of the usage policies.
pub const USAGE: [&str; 3] = ["inject", "continuous", "observe"];

/// The objectives with a name; before them that there is none.
pub const OBJECTIVES: [&str; PRESETS.len() + 1] = {
    let mut names = [OFF; PRESETS.len() + 1];
    let mut at = 0;
    while at < PRESETS.len() {
        names[at + 1] = PRESETS[at].name;
        at += 1;
    }
    names
};

/// No objective.
pub const OFF: &str = "off";

/// A list in the file, which no flag mirrors.
#[derive(Debug)]
pub struct List {
    /// Its key.
    pub key: &'static str,
    /// What one of its entries is, with its article.
    noun: &'static str,
    /// An entry, as short as can be.
    example: &'static str,
    /// The keys of one entry.
    pub keys: &'static [&'static str],
}

/// The inference servers.
pub const UPSTREAMS: List = List {
    key: "upstreams",
    noun: "an upstream",
    example: "- url: http://HOST:PORT",
    keys: &["name", "url", "kind", "usage", "listen", "engine_metrics"],
};

/// What is wanted of whose exchanges.
pub const OBJECTIVE_LIST: List = List {
    key: "objectives",
    noun: "an objective",
    example: "- preset: chat",
    keys: &["name", "preset", "models", "tenants", "first_token_ms", "tokens_per_second", "target"],
};

impl List {
    /// What to do about a list that is none, or empty.
    pub(crate) fn remedy(&self) -> String {
        let one = self.noun.split_once(' ').map_or(self.noun, |(_, one)| one);
        format!("write one `{}` for each {one} under it", self.example)
    }
}

/// The keys whose value may be a list of names, as well as names separated by commas.
const LISTS: [&str; 4] = ["admin_hosts", "tokenizers", "models", "tenants"];

/// The row of a key that is known to be in the table.
pub fn setting(key: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.key == key).expect("the caller names a row of the table")
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The value, as text.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// One entry of a list in the file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it begins.
    pub origin: Origin,
    /// What was written for it, by the list's keys.
    pub fields: BTreeMap<&'static str, Value>,
}

/// Everything that was written, the layers already merged.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// By key: the value that counts. A key nobody wrote is absent.
    pub values: BTreeMap<&'static str, Value>,
    /// The file's list of upstreams and where it begins.
    pub upstreams: Option<(Origin, Vec<Entry>)>,
    /// The file's list of objectives and where it begins.
    pub objectives: Option<(Origin, Vec<Entry>)>,
    /// What could not even be filed: unknown keys, shapes no setting has.
    pub mistakes: Vec<Mistake>,
}

impl Written {
    /// Merges what was written in the three places. `flags` hold text by key; `env` looks a
    /// variable up, an empty one being as good as none.
    pub fn merge(
        flags: &BTreeMap<&'static str, String>,
        env: &dyn Fn(&str) -> Option<String>,
        file: Option<Node>,
    ) -> Self {
        let mut written = Self::default();
        if let Some(root) = file {
            written.take_root(root);
        }
        for setting in &SETTINGS {
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
                let what = "the file does not hold settings";
                return self.mistakes.push(Mistake::at(&root.origin, what, "write `key: value` lines"));
            }
        };
        let mut seen = BTreeMap::new();
        for (key, origin, node) in entries {
            self.note_repeat(&mut seen, &key, &origin);
            if key == UPSTREAMS.key {
                self.upstreams = self.list(&UPSTREAMS, origin, node).or(self.upstreams.take());
            } else if key == OBJECTIVE_LIST.key {
                self.objectives = self.list(&OBJECTIVE_LIST, origin, node).or(self.objectives.take());
            } else if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
                if let Some(value) = self.scalar(setting.key, origin, node) {
                    self.values.insert(setting.key, value);
                }
            } else {
                let known =
                    SETTINGS.iter().map(|setting| setting.key).chain([UPSTREAMS.key, OBJECTIVE_LIST.key]);
                self.unknown(&key, "setting", &origin, known);
            }
        }
    }

    fn list(&mut self, list: &'static List, origin: Origin, node: Node) -> Option<(Origin, Vec<Entry>)> {
        let Shape::List(items) = node.shape else {
            self.mistakes.push(Mistake::at(&origin, format!("`{}` is not a list", list.key), list.remedy()));
            return None;
        };
        let entries = items.into_iter().filter_map(|item| self.entry(list, item)).collect();
        Some((origin, entries))
    }

    fn entry(&mut self, list: &'static List, item: Node) -> Option<Entry> {
        let Shape::Map(keys) = item.shape else {
            let what = format!("{} is not `key: value` lines", list.noun);
            let remedy = format!("write `{}` and its other keys below", list.example);
            self.mistakes.push(Mistake::at(&item.origin, what, remedy));
            return None;
        };
        let mut fields = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for (key, origin, node) in keys {
            self.note_repeat(&mut seen, &key, &origin);
            match list.keys.iter().copied().find(|known| *known == key) {
                Some(known) => {
                    if let Some(value) = self.scalar(known, origin, node) {
                        fields.insert(known, value);
                    }
                }
                None => {
                    let noun = format!("key of {}", list.noun);
                    self.unknown(&key, &noun, &origin, list.keys.iter().copied());
                }
            }
        }
        Some(Entry { origin: item.origin, fields })
    }

    /// The text of a value; a list of texts is one text with commas.
    fn scalar(&mut self, key: &str, origin: Origin, node: Node) -> Option<Value> {
        let text = match node.shape {
            Shape::Scalar(text) => text,
            Shape::List(items) if LISTS.contains(&key) => {
                let names = items.into_iter().map(|item| match item.shape {
                    Shape::Scalar(name) => Some(name),
                    _ => None,
                });
                match names.collect::<Option<Vec<_>>>() {
                    Some(names) => names.join(","),
                    None => return self.shapeless(key, &origin),
                }
            }
            Shape::Nothing => {
                let what = format!("`{key}` has no value");
                self.mistakes.push(Mistake::at(&origin, what, "write one, or remove the line"));
                return None;
            }
            Shape::List(_) | Shape::Map(_) => return self.shapeless(key, &origin),
        };
        Some(Value { text, origin })
    }

    fn shapeless(&mut self, key: &str, origin: &Origin) -> Option<Value> {
        let what = format!("`{key}` is not a single value");
        self.mistakes.push(Mistake::at(
            origin,
            what,
            "write the value on the same line, in quotes if it holds `[` or `{`",
        ));
        None
    }

    fn note_repeat(&mut self, seen: &mut BTreeMap<String, Origin>, key: &str, origin: &Origin) {
        if let Some(first) = seen.insert(key.to_owned(), origin.clone()) {
            let what = format!("`{key}` is written twice, first at {first}");
            self.mistakes.push(Mistake::at(origin, what, "remove one of them"));
        }
    }

    fn unknown(
        &mut self,
        key: &str,
        noun: &str,
        origin: &Origin,
        known: impl Iterator<Item = &'static str> + Clone,
    ) {
        let what = format!("there is no {noun} `{key}`");
        let remedy = match nearest::word(key, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.mistakes.push(Mistake::at(origin, what, remedy));
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
