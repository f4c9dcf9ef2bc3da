//! The known servers, and the container that runs one.

use serde::Deserialize;
use serde_json::Value;

use crate::pod::{list, text, words};
use crate::reason::{Reason, bounded};

/// A known server: how it is recognised, and how its port is moved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The value of the setting `kind`.
    pub name: String,
    /// Words of its command line, or sequences of words, that show it.
    pub words: Vec<String>,
    /// Images whose entrypoint is the server, without registry; `NAME:TAG` limits to tags that begin so.
    pub images: Vec<String>,
    /// Flags of the port; the first is appended where none is written.
    pub port_flags: Vec<String>,
    /// The variable of the port, or empty.
    #[serde(default)]
    pub port_env: String,
    /// The form of the variable's value.
    #[serde(default)]
    pub port_env_form: EnvForm,
    /// The default port.
    pub port: u16,
    /// True if a flag at the end of the command line is valid. Else subcommands follow there, and only flags which are
    /// written can be changed.
    #[serde(default = "takes_new_flags")]
    pub takes_new_flags: bool,
    /// Flags of the address.
    #[serde(default)]
    pub host_flags: Vec<String>,
    /// Flags by which the server itself speaks TLS.
    #[serde(default)]
    pub tls_flags: Vec<String>,
    /// Flags of a settings file, which may hold the port.
    #[serde(default)]
    pub file_flags: Vec<String>,
    /// Flags of a server that does not get its requests on one HTTP port.
    #[serde(default)]
    pub elsewhere_flags: Vec<String>,
    /// Flags of the node's rank; above 0 a server gets no requests.
    #[serde(default)]
    pub rank_flags: Vec<String>,
}

/// The form of a variable that holds the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvForm {
    /// The number.
    #[default]
    Port,
    /// `HOST:PORT`, or one of the two.
    HostPort,
}

/// Most servers do.
fn takes_new_flags() -> bool {
    true
}

/// Shells, whose `-c` hides the words of a command line.
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];

/// Returns the index of the container to meter, and its server.
pub(crate) fn find<'c>(
    spec: &Value,
    servers: &'c [Server],
    named: Option<&str>,
) -> Result<(usize, &'c Server), Reason> {
    let containers = list(spec, "containers");
    let mut found = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let name = text(container, &["name"]).ok_or(Reason::NotAPod)?;
        if named.is_none_or(|named| named == name) {
            if let Some(server) = recognise(container, servers) {
                found.push((index, server));
            } else if is_scripted(container, servers) {
                return Err(Reason::Shell(bounded(name, 63)));
            }
        }
    }
    match (found.as_slice(), named) {
        ([one], _) => Ok(*one),
        ([], Some(named)) => Err(Reason::Container(bounded(named, 63))),
        ([], None) => Err(Reason::NoServer),
        _ => Err(Reason::SeveralServers),
    }
}

/// Returns the server that a container runs.
fn recognise<'c>(container: &Value, servers: &'c [Server]) -> Option<&'c Server> {
    let (words, command) = words(container)?;
    let is_flag = |word: &String| word.starts_with("--") && word.len() > 2;
    let line = words
        .iter()
        .take_while(|word| !is_flag(word))
        .map(|word| if is_sentence(word) { "" } else { base(word) });
    // Words are compared as whole lines, and a sentence is none, so that no line of a script counts.
    let line = format!("\n{}\n", line.collect::<Vec<_>>().join("\n"));
    let image = text(container, &["image"]).unwrap_or_default();
    servers.iter().find(|server| {
        server.words.iter().any(|word| line.contains(&format!("\n{}\n", word.replace(' ', "\n"))))
            || command == 0 && server.images.iter().any(|known| is_image(image, known))
    })
}

/// Returns true if a shell runs a script that names a known server; `env`, `tini` and others may start the shell.
fn is_scripted(container: &Value, servers: &[Server]) -> bool {
    let Some((words, _)) = words(container) else { return false };
    let has_shell = words.iter().any(|word| SHELLS.contains(&base(word)));
    let names =
        |server: &Server| server.words.iter().any(|name| words.iter().any(|word| word.contains(name)));
    has_shell && servers.iter().any(names)
}

/// Returns true for a word such as a script: it holds several words.
fn is_sentence(word: &str) -> bool {
    word.contains([' ', '\t', '\n'])
}

/// Returns the last part of a path.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns true if an image is a known one: `registry/NAME:tag@digest` ends in the name, before tag and digest.
fn is_image(image: &str, known: &str) -> bool {
    let image = image.split('@').next().unwrap_or_default();
    let start = image.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match image[start..].find(':') {
        Some(colon) => (&image[..start + colon], &image[start + colon + 1..]),
        None => (image, ""),
    };
    let (known, prefix) = known.split_once(':').unwrap_or((known, ""));
    format!("/{name}").ends_with(&format!("/{known}")) && tag.starts_with(prefix)
}
