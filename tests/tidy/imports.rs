//! The imports between the files of one crate: each path of the product code, followed to the file that defines its
//! symbol, also through re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The files that each file of a crate uses, by their paths below the crate's `src`.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reads the imports of the crate whose root is `src/lib.rs` or `src/main.rs`.
pub(super) fn of_crate(src: &Path) -> Imports {
    let root = ["lib.rs", "main.rs"].iter().find(|root| src.join(root).is_file());
    let root = root.unwrap_or_else(|| panic!("{}: no root", src.display()));
    let text = |path: &Path| fs::read_to_string(src.join(path)).ok();
    of_sources(Path::new(root), &text)
}

/// Reads the imports of the crate with this root; `text` returns the text of a file below `src`.
pub(super) fn of_sources(root: &Path, text: &dyn Fn(&Path) -> Option<String>) -> Imports {
    let mut modules = Modules::default();
    let code = product(&tokens(&text(root).expect("the root exists")));
    modules.add(None, root, Path::new(""), &code, text);
    let mut imports = Imports::new();
    for (id, module) in modules.0.iter().enumerate() {
        let used = imports.entry(module.file.clone()).or_default();
        used.extend(modules.used(id).into_iter().filter(|file| *file != module.file));
    }
    imports
}

/// One module: a file, or a part of one.
#[derive(Default)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The names that it defines.
    items: BTreeSet<String>,
    /// The names that its `use` declarations bring, with their paths.
    aliases: BTreeMap<String, Vec<String>>,
    /// Those that it brings for other modules.
    reexports: BTreeSet<String>,
    globs: Vec<Vec<String>>,
    /// The paths outside `use` declarations, of one name or more.
    paths: BTreeSet<Vec<String>>,
}

/// The modules of a crate; the first is its root.
#[derive(Default)]
struct Modules(Vec<Module>);

/// The end of a path.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// A symbol that this module defines.
    Symbol(usize),
    OtherCrate,
}

impl Modules {
    /// Adds the module with this code, and the modules below it, whose files are in `folder`.
    fn add(
        &mut self,
        parent: Option<usize>,
        file: &Path,
        folder: &Path,
        code: &[String],
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> usize {
        let id = self.0.len();
        self.0.push(Module { file: file.display().to_string(), parent, ..Module::default() });
        let (mut at, mut depth) = (0, 0);
        let token = |at: usize| code.get(at).map_or("", String::as_str);
        while at < code.len() {
            match token(at) {
                "use" => {
                    let is_reexport = matches!(at.checked_sub(1).map(token), Some("pub" | ")"));
                    at = self.0[id].add_use(code, at + 1, is_reexport);
                }
                "mod" if depth == 0 && token(at + 2) == ";" => {
                    let name = token(at + 1);
                    let below = folder.join(name);
                    let files = [below.with_extension("rs"), below.join("mod.rs")];
                    if let Some((file, text_of)) =
                        files.iter().find_map(|file| text(file).map(|text| (file, text)))
                    {
                        let child = self.add(Some(id), file, &below, &product(&tokens(&text_of)), text);
                        self.0[id].children.insert(name.to_owned(), child);
                    }
                    at += 3;
                }
                "mod" if depth == 0 && token(at + 2) == "{" => {
                    let end = closing(code, at + 2);
                    let child =
                        self.add(Some(id), file, &folder.join(token(at + 1)), &code[at + 3..end], text);
                    self.0[id].children.insert(token(at + 1).to_owned(), child);
                    at = end + 1;
                }
                open @ ("{" | "(" | "[" | "}" | ")" | "]") => {
                    depth += if matches!(open, "{" | "(" | "[") { 1 } else { -1 };
                    at += 1;
                }
                keyword if depth == 0 && DEFINES.contains(&keyword) && is_name(token(at + 1)) => {
                    self.0[id].items.insert(token(at + 1).to_owned());
                    at += 1;
                }
                "macro_rules" if token(at + 1) == "!" => {
                    self.0[id].items.insert(token(at + 2).to_owned());
                    at += 3;
                }
                name if is_name(name) && !matches!(at.checked_sub(1).map(token), Some("::" | ".")) => {
                    let mut path = vec![name.to_owned()];
                    at += 1;
                    while token(at) == "::" && is_name(token(at + 1)) {
                        path.push(token(at + 1).to_owned());
                        at += 2;
                    }
                    self.0[id].paths.insert(path);
                }
                _ => at += 1,
            }
        }
        id
    }

    /// Returns the files that define what a module uses.
    fn used(&self, id: usize) -> BTreeSet<String> {
        let module = &self.0[id];
        // A re-export is a use only if the module itself uses the name.
        let imported = module.aliases.iter().filter(|(name, _)| !module.reexports.contains(*name));
        let paths = module.paths.iter().chain(imported.map(|(_, path)| path)).chain(&module.globs);
        let targets = paths.map(|path| self.resolve(id, path, &mut Vec::new()));
        targets
            .filter_map(|target| match target {
                Target::Symbol(of) => Some(self.0[of].file.clone()),
                // An imported module is a use of its file only if a path goes through it.
                Target::Module(_) | Target::OtherCrate => None,
            })
            .collect()
    }

    /// Follows a path from a module. `seen` are the look-ups on the way, which end a circle of re-exports.
    fn resolve(&self, from: usize, path: &[String], seen: &mut Vec<(usize, String)>) -> Target {
        let mut at = from;
        let mut is_anchored = false;
        for (depth, name) in path.iter().enumerate() {
            let is_last = depth + 1 == path.len();
            match name.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.0[at].parent.expect("the root has no parent, and needs none"),
                name => match self.look_up(at, name, is_last, seen) {
                    Some(Target::Module(module)) => at = module,
                    Some(end) => return end,
                    // A symbol that a macro defines.
                    None if is_anchored => return Target::Symbol(at),
                    None => return Target::OtherCrate,
                },
            }
            is_anchored = true;
        }
        Target::Module(at)
    }

    /// Returns the meaning of a name in a module, if it has one there.
    fn look_up(
        &self,
        id: usize,
        name: &str,
        is_last: bool,
        seen: &mut Vec<(usize, String)>,
    ) -> Option<Target> {
        let key = (id, name.to_owned());
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        let module = &self.0[id];
        let child = module.children.get(name).map(|child| Target::Module(*child));
        let item = module.items.contains(name).then_some(Target::Symbol(id));
        // A function and a module may share a name.
        let own = if is_last { item.or(child) } else { child.or(item) };
        own.or_else(|| module.aliases.get(name).map(|path| self.resolve(id, path, seen))).or_else(|| {
            module.globs.iter().find_map(|glob| match self.resolve(id, glob, seen) {
                Target::Module(module) => self.look_up(module, name, is_last, seen),
                Target::Symbol(_) | Target::OtherCrate => None,
            })
        })
    }
}

impl Module {
    /// Adds the declaration whose tree begins at `at`, and returns the index behind it.
    fn add_use(&mut self, code: &[String], at: usize, is_reexport: bool) -> usize {
        let end = (at..code.len()).find(|at| code[*at] == ";").unwrap_or(code.len());
        // `use ::name` is another crate.
        if code.get(at).is_some_and(|first| first != "::") {
            self.add_tree(&code[at..end], Vec::new(), is_reexport);
        }
        end + 1
    }

    fn add_tree(&mut self, tree: &[String], mut path: Vec<String>, is_reexport: bool) {
        let mut at = 0;
        while let Some(token) = tree.get(at).map(String::as_str) {
            match token {
                "::" => {}
                "*" => return self.globs.push(path),
                "{" => {
                    let end = closing(tree, at);
                    let (mut depth, mut start) = (0, at + 1);
                    for at in at + 1..=end {
                        match tree[at].as_str() {
                            "," | "}" if depth == 0 => {
                                self.add_tree(&tree[start..at], path.clone(), is_reexport);
                                start = at + 1;
                            }
                            "{" => depth += 1,
                            "}" => depth -= 1,
                            _ => {}
                        }
                    }
                    return;
                }
                "as" => return self.add_alias(tree[at + 1].clone(), path, is_reexport),
                name => path.push(name.to_owned()),
            }
            at += 1;
        }
        // `use a::{self}` brings `a`.
        path.pop_if(|last| last == "self" && !tree.is_empty());
        if let Some(name) = path.last().filter(|_| !tree.is_empty()).cloned() {
            self.add_alias(name, path, is_reexport);
        }
    }

    fn add_alias(&mut self, name: String, path: Vec<String>, is_reexport: bool) {
        if is_reexport {
            self.reexports.insert(name.clone());
        }
        self.aliases.insert(name, path);
    }
}

/// Keywords before the name of a definition.
const DEFINES: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_') && !DEFINES.contains(&token)
}

/// Returns the index of the bracket that closes the one at `open`.
fn closing(code: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in code.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    code.len() - 1
}

/// Returns the tokens without the items of tests.
fn product(code: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = code[at..].iter().map(String::as_str);
        let is_test = [
            &["#", "[", "cfg", "(", "test", ")", "]"] as &[&str],
            &["#", "[", "cfg", "(", "any", "(", "test", ","],
        ]
        .iter()
        .any(|start| rest.clone().take(start.len()).eq(start.iter().copied()));
        if is_test {
            at = item_end(code, closing(code, at + 1) + 1);
        } else {
            kept.push(code[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index behind the item, field, variant or statement at `at`.
fn item_end(code: &[String], mut at: usize) -> usize {
    let mut is_use = false;
    let mut is_item = false;
    while let Some(token) = code.get(at).map(String::as_str) {
        match token {
            "#" => at = closing(code, at + 1),
            "}" | ")" | "]" => return at,
            "{" if !is_use => return closing(code, at) + 1,
            "{" | "(" | "[" => at = closing(code, at),
            ";" => return at + 1,
            // Commas of an item are those of its type parameters.
            "," if !is_item => return at + 1,
            "use" => is_use = true,
            _ => {}
        }
        is_item |= token == "impl" || DEFINES.contains(&token);
        at += 1;
    }
    at
}

/// Returns the names, `::` and punctuation of a source text: no comment, no literal, no lifetime.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = string(rest) {
            length
        } else if c == '\'' {
            quoted(rest)
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            tokens.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the string literal with which `rest` begins.
fn string(rest: &str) -> Option<usize> {
    let start = rest.find('"').filter(|at| *at < 8)?;
    let prefix = &rest[..start];
    let hashes = prefix.trim_start_matches(['b', 'c', 'r']);
    if hashes.contains(|c| c != '#') {
        return None;
    }
    let body = start + 1;
    if prefix.contains('r') {
        let end = format!("\"{hashes}");
        return Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()));
    }
    let mut is_escaped = false;
    let end = rest[body..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    hashes.is_empty().then(|| end.map_or(rest.len(), |end| body + end + 1))
}

/// Returns the length of the character literal, or of the lifetime's mark, with which `rest` begins.
fn quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(rest.len(), |end| end + 4),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}
