//! The tree of a dialect's paths. `*` in a path means each member of an object that has no path of its own.

use super::Field;
use crate::limits::PATH_LEVELS;

/// The index of no node: nothing below has a field.
pub(crate) const NOWHERE: u8 = u8::MAX;

/// The node of the members of a usage object that no path names.
pub(crate) const UNKNOWN: u8 = 1;

/// The node of such members in an object whose name says that it holds numbers of tokens.
pub(crate) const UNKNOWN_TOKENS: u8 = 2;

/// The tree of a dialect's paths, built once per process.
#[derive(Debug)]
pub(crate) struct Fields {
    nodes: Vec<Node>,
    /// The fields of [`Field::Cased`], by index.
    cased: Vec<Field>,
}

#[derive(Debug)]
struct Node {
    field: Field,
    element: u8,
    /// The node of each member without a name here.
    other: u8,
    /// Bit `slot` of each name in `keys` and `cased`.
    name_bits: u64,
    /// Names, in the order of their slots.
    keys: Vec<Member>,
    /// The index in `keys` at which each slot begins, and the length of `keys`; empty without keys.
    slots: Box<[u8]>,
    /// Names in any letter case, used if no entry of `keys` matches.
    cased: Vec<(&'static str, u8)>,
}

/// A member of an object.
#[derive(Clone, Debug)]
struct Member {
    /// Few names have an equal beginning, so that most differ without a call.
    beginning: u64,
    name: Box<str>,
    to: u8,
}

/// Returns the first eight bytes of a name, or all and zeros.
#[inline]
fn beginning(name: &[u8]) -> u64 {
    if let Some(first) = name.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    match (name.first_chunk(), name.last_chunk()) {
        // Both halves of four to seven bytes; they overlap in equal bytes.
        (Some(first), Some(last)) => {
            let last = u64::from(u32::from_le_bytes(*last));
            u64::from(u32::from_le_bytes(*first)) | last << ((name.len() - size_of::<u32>()) * 8)
        }
        _ => name.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The number of slots of names.
const SLOTS: usize = u64::BITS as usize;

/// Returns the slot of the names with this beginning, in any letter case. Most members that a server adds have no
/// field: an empty slot shows that without a comparison of names.
#[inline]
fn slot(beginning: u64) -> usize {
    const LOWER_CASE: u64 = u64::from_ne_bytes([0x20; 8]);
    ((beginning | LOWER_CASE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Returns true if no name of these bits has this beginning. A beginning with a letter outside ASCII is never missing,
/// because [`is_folded`] accepts two such letters.
#[inline]
fn is_missing(name_bits: u64, beginning: u64, slot: usize) -> bool {
    const NOT_ASCII: u64 = u64::from_ne_bytes([0x80; 8]);
    name_bits & 1 << slot == 0 && beginning & NOT_ASCII == 0
}

impl Fields {
    /// Builds the tree of `paths`.
    pub(crate) fn of(paths: &[(&'static str, Field)]) -> Self {
        let unknown =
            |itself| Node { field: Field::UnknownCount, element: itself, other: itself, ..Node::new() };
        let nodes = vec![Node::new(), unknown(UNKNOWN), unknown(UNKNOWN_TOKENS)];
        let mut fields = Self { nodes, cased: Vec::new() };
        for &(path, field) in paths {
            let node = fields.node_or_new(path);
            fields.nodes[usize::from(node)].field = field;
        }
        fields
    }

    /// Adds `field` at `place`, with the members of the object at `like`.
    #[must_use]
    pub(crate) fn also_at(mut self, place: &'static str, field: Field, like: &'static str) -> Self {
        let at = self.node_or_new(place);
        self.nodes[usize::from(at)].field = field;
        self.also_below(place, like)
    }

    /// Adds the members of the object at `like` to the one at `place`.
    #[must_use]
    pub(crate) fn also_below(mut self, place: &'static str, like: &'static str) -> Self {
        let like = self.node_or_new(like);
        let members = self.nodes[usize::from(like)].keys.clone();
        let at = self.node_or_new(place);
        let node = &mut self.nodes[usize::from(at)];
        let mut own = Vec::new();
        for member in members {
            match node.key(member.beginning, member.name.as_bytes()) {
                None => node.add(member),
                Some(to) => own.push((to, member)),
            }
        }
        for (to, member) in own {
            if self.is_foreign(to) {
                let keys = &mut self.nodes[usize::from(at)].keys;
                let found = keys.iter_mut().find(|key| key.name == member.name);
                found.expect("it has the key").to = member.to;
            }
        }
        self
    }

    /// Returns true if only answers in the shape of another dialect have the member.
    fn is_foreign(&self, node: u8) -> bool {
        let node = &self.nodes[usize::from(node)];
        matches!(node.field, Field::Foreign(_)) || node.keys.iter().any(|key| self.is_foreign(key.to))
    }

    /// Reads the members of the usage object at `place` that no path names, and those of the objects in it, as
    /// [`Field::UnknownCount`].
    #[must_use]
    pub(crate) fn with_unknown(mut self, place: &'static str) -> Self {
        let node = self.node_or_new(place);
        self.add_unknown(node, UNKNOWN);
        self
    }

    fn add_unknown(&mut self, node: u8, unknown: u8) {
        let Node { other, keys, element, .. } = &mut self.nodes[usize::from(node)];
        if *other == NOWHERE && !keys.is_empty() {
            *other = unknown;
        }
        let element = *element;
        for Member { name, to, .. } in keys.clone() {
            // Each place has the members of the first, which is done.
            if !self.is_done(to) {
                self.add_unknown(to, if says_tokens(name.as_bytes()) { UNKNOWN_TOKENS } else { UNKNOWN });
            }
        }
        if !self.is_done(element) {
            self.add_unknown(element, unknown);
        }
    }

    fn is_done(&self, node: u8) -> bool {
        self.nodes.get(usize::from(node)).is_none_or(|node| node.other != NOWHERE)
    }

    fn node_or_new(&mut self, path: &'static str) -> u8 {
        steps(path).fold(0, |node, step| match step {
            "[]" => self.element_or_new(node),
            "*" => self.other_or_new(node),
            key => self.key_or_new(node, key),
        })
    }

    /// Reads the same paths in each element of a top-level array, too.
    #[must_use]
    pub(crate) fn or_in_list(mut self) -> Self {
        self.nodes[0].element = 0;
        self
    }

    /// Adds `field` at a path of literal keys, which may contain `.` and `[]`.
    pub(crate) fn add_path<const N: usize>(&mut self, keys: [&str; N], field: Field) {
        const { assert!(N <= PATH_LEVELS) };
        let node = keys.into_iter().fold(0, |node, key| self.key_or_new(node, key));
        self.nodes[usize::from(node)].field = field;
    }

    /// The field of a node.
    pub(crate) fn field(&self, node: u8) -> Field {
        self.nodes.get(usize::from(node)).map_or(Field::Intermediate, |n| n.field)
    }

    /// The node of an array's elements.
    pub(crate) fn element(&self, node: u8) -> u8 {
        self.nodes.get(usize::from(node)).map_or(NOWHERE, |n| n.element)
    }

    /// The node of an object's member.
    pub(crate) fn member(&self, node: u8, key: &[u8]) -> u8 {
        let Some(node) = self.nodes.get(usize::from(node)) else { return NOWHERE };
        if node.name_bits == 0 {
            return node.other;
        }
        let beginning = beginning(key);
        if is_missing(node.name_bits, beginning, slot(beginning)) {
            return self.otherwise(node, key);
        }
        let cased = || node.cased.iter().find(|(name, _)| is_folded(name, key));
        let named = node.key(beginning, key).or_else(|| cased().map(|&(_, to)| to));
        named.unwrap_or_else(|| self.otherwise(node, key))
    }

    /// The node of an object's member without a name there. Tokens of a usage object may be named in another style.
    #[inline]
    fn otherwise(&self, node: &Node, key: &[u8]) -> u8 {
        match node.other {
            UNKNOWN | UNKNOWN_TOKENS if says_tokens(key) => self.restyled(node, key),
            other => other,
        }
    }

    /// The node of the member whose name has the same words in any style: `PromptTokens` for `prompt_tokens`.
    #[cold]
    fn restyled(&self, node: &Node, key: &[u8]) -> u8 {
        fn letters(name: &[u8]) -> impl Iterator<Item = u8> {
            name.iter().filter(|byte| **byte != b'_').map(u8::to_ascii_lowercase)
        }
        let same = node.keys.iter().filter(|member| letters(member.name.as_bytes()).eq(letters(key)));
        // A name of the dialect itself comes first.
        same.min_by_key(|member| self.is_foreign(member.to)).map_or(node.other, |member| member.to)
    }

    /// Adds the same paths with keys in other letter case, as [`Field::Cased`].
    pub(crate) fn add_cased(&mut self, paths: &[(&'static str, Field)]) {
        for &(path, field) in paths {
            // The node of the path with its exact keys, and the node of its other spellings.
            let (mut exact, mut cased) = (0, None);
            for step in steps(path) {
                (exact, cased) = match step {
                    "[]" => (self.element_or_new(exact), cased.map(|node| self.element_or_new(node))),
                    key => {
                        let to = self.cased_or_new(exact, cased, key);
                        (self.key_or_new(exact, key), Some(to))
                    }
                };
            }
            let place = u8::try_from(self.cased.len()).expect("fewer fields than nodes");
            if let Some(node) = cased {
                self.nodes[usize::from(node)].field = Field::Cased(place);
                self.cased.push(field);
            }
        }
    }

    /// The field of a [`Field::Cased`].
    pub(crate) fn cased(&self, place: u8) -> Field {
        self.cased.get(usize::from(place)).copied().unwrap_or(Field::Intermediate)
    }

    /// The node of `key` in other letter case, below the exact node and below the node of other spellings.
    fn cased_or_new(&mut self, exact: u8, cased: Option<u8>, key: &'static str) -> u8 {
        let find = |node: &Node| node.cased.iter().find(|(name, _)| *name == key).map(|&(_, to)| to);
        if let Some(to) = find(&self.nodes[usize::from(exact)]) {
            return to;
        }
        let to = self.add();
        for node in [Some(exact), cased].into_iter().flatten() {
            let node = &mut self.nodes[usize::from(node)];
            node.cased.push((key, to));
            node.name_bits |= 1 << slot(beginning(key.as_bytes()));
        }
        to
    }

    fn element_or_new(&mut self, node: u8) -> u8 {
        if self.nodes[usize::from(node)].element == NOWHERE {
            self.nodes[usize::from(node)].element = self.add();
        }
        self.nodes[usize::from(node)].element
    }

    fn other_or_new(&mut self, node: u8) -> u8 {
        if self.nodes[usize::from(node)].other == NOWHERE {
            self.nodes[usize::from(node)].other = self.add();
        }
        self.nodes[usize::from(node)].other
    }

    fn key_or_new(&mut self, node: u8, key: &str) -> u8 {
        let beginning = beginning(key.as_bytes());
        if let Some(to) = self.nodes[usize::from(node)].key(beginning, key.as_bytes()) {
            return to;
        }
        let to = self.add();
        self.nodes[usize::from(node)].add(Member { beginning, name: key.into(), to });
        to
    }

    fn add(&mut self) -> u8 {
        self.nodes.push(Node::new());
        u8::try_from(self.nodes.len() - 1).expect("a dialect's table has fewer than 255 nodes")
    }
}

impl Node {
    fn new() -> Self {
        Self {
            field: Field::Intermediate,
            element: NOWHERE,
            other: NOWHERE,
            name_bits: 0,
            keys: Vec::new(),
            slots: Box::default(),
            cased: Vec::new(),
        }
    }

    /// Returns the node of the member with exactly this name.
    #[inline]
    fn key(&self, beginning: u64, key: &[u8]) -> Option<u8> {
        let is_equal = |member: &&Member| {
            member.beginning == beginning
                && member.name.len() == key.len()
                // A name of up to eight bytes is its beginning.
                && (key.len() <= size_of::<u64>() || member.name.as_bytes() == key)
        };
        self.of_slot(slot(beginning)).iter().find(is_equal).map(|member| member.to)
    }

    /// Returns the keys in a slot.
    #[inline]
    fn of_slot(&self, slot: usize) -> &[Member] {
        match self.slots.get(slot..slot + 2) {
            Some(&[from, to]) => &self.keys[usize::from(from)..usize::from(to)],
            _ => &[],
        }
    }

    /// Inserts a key as the last of its slot.
    fn add(&mut self, member: Member) {
        let slot = slot(member.beginning);
        self.name_bits |= 1 << slot;
        if self.slots.is_empty() {
            self.slots = [0; SLOTS + 1].into();
        }
        self.keys.insert(usize::from(self.slots[slot + 1]), member);
        for end in &mut self.slots[slot + 1..] {
            *end += 1;
        }
    }
}

/// Returns true if a member of a usage object with this name is a number of tokens: not a time, a rate or an amount of
/// money, of which some are named after tokens, too.
pub(crate) fn says_tokens(name: &[u8]) -> bool {
    let others = ["time", "latency", "_rate", "per_", "persec", "cost", "price"];
    has(name, "token") && !others.into_iter().any(|other| has(name, other))
}

/// Returns true if a number of tokens with this name is one of the answer.
pub(crate) fn says_answer(name: &[u8]) -> bool {
    ["output", "complet", "generat", "answer", "respon", "reason", "think", "thought", "predict", "accept"]
        .into_iter()
        .any(|word| has(name, word))
}

/// Returns true if a name has this part, in any letter case.
fn has(name: &[u8], part: &str) -> bool {
    name.windows(part.len()).any(|text| text.eq_ignore_ascii_case(part.as_bytes()))
}

/// Returns true if Go's `encoding/json` accepts `key` for the member `name`: letters of any case, and the
/// two characters beyond ASCII that fold to ASCII letters, the long s and the Kelvin sign.
fn is_folded(name: &str, key: &[u8]) -> bool {
    let mut rest = key;
    name.bytes().all(|wanted| {
        let (folded, len) = match *rest {
            [0xC5, 0xBF, ..] => (b's', 2),
            [0xE2, 0x84, 0xAA, ..] => (b'k', 3),
            [byte, ..] => (byte.to_ascii_lowercase(), 1),
            [] => return false,
        };
        rest = &rest[len..];
        folded == wanted.to_ascii_lowercase()
    }) && rest.is_empty()
}

/// Splits a path: `a[].b` → `a`, `[]`, `b`.
fn steps(path: &'static str) -> impl Iterator<Item = &'static str> {
    let steps: Vec<_> = path
        .split('.')
        .flat_map(|part| {
            let key = part.trim_end_matches("[]");
            let elements = (part.len() - key.len()) / 2;
            (!key.is_empty()).then_some(key).into_iter().chain(std::iter::repeat_n("[]", elements))
        })
        .collect();
    assert!(steps.len() <= PATH_LEVELS, "{path}: deeper than PATH_LEVELS");
    steps.into_iter()
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn beginning_is_eight_bytes_or_all_and_zeros() {
        let name = b"abcdefghijk";
        for len in 0..=name.len() {
            let mut padded = [0; 8];
            padded[..len.min(8)].copy_from_slice(&name[..len.min(8)]);
            assert_eq!(beginning(&name[..len]), u64::from_le_bytes(padded), "{len}");
        }
    }
}
