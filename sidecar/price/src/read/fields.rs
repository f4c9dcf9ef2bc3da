//! The keys of one map in the file. Unknown and repeated keys are errors.

use text::nearest;
use yaml::{Node, Shape};

use super::{Reader, quoted};

/// The known keys of a map, each once.
pub(super) struct Fields<'n>(Vec<(&'n str, &'n Node)>);

impl<'n> Fields<'n> {
    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, node)| *node)
    }
}

impl Reader {
    /// Reads the keys of `node`; `kind` names it in messages.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, kind: &str, known: &[&str]) -> Option<Fields<'n>> {
        let Shape::Map(entries) = &node.shape else {
            let found = match node.shape {
                Shape::Nothing => "is empty",
                _ => "is not a list of keys with values",
            };
            let remedy = format!("write its keys, of {}", known.join(", "));
            self.error(node.line, format!("{kind} {found}"), remedy);
            return None;
        };
        let mut fields: Vec<(&str, u64, &Node)> = Vec::new();
        for (key, line, node) in entries {
            if !known.contains(&key.as_str()) {
                let remedy = match nearest(key, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys of {kind} are {}", known.join(", ")),
                };
                self.error(*line, format!("there is no key `{}`", quoted(key)), remedy);
            } else if let Some((_, first, _)) = fields.iter().find(|(seen, ..)| seen == key) {
                let message = format!("`{key}` is written twice, first on line {first}");
                self.error(*line, message, "remove one of them");
            } else {
                fields.push((key, *line, node));
            }
        }
        Some(Fields(fields.into_iter().map(|(key, _, node)| (key, node)).collect()))
    }

    /// Returns the value of a required key.
    pub(super) fn required<'n>(
        &mut self,
        fields: &Fields<'n>,
        node: &Node,
        key: &str,
        remedy: &str,
    ) -> Option<&'n Node> {
        let found = fields.get(key);
        if found.is_none() {
            self.error(node.line, format!("there is no `{key}`"), remedy);
        }
        found
    }
}
