//! The known servers, and the container that runs one.

use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
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
    /// Images whose entrypoint is the server, by the end of their name; `NAME:TAG` limits to tags that begin so.
    pub images: Vec<String>,
    /// Names that vendors' images have between words of [`Config::platforms`]; `NAME:TAG` as above.
    #[serde(default)]
    pub vendor_images: Vec<String>,
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
    config: &'c Config,
    named: Option<&str>,
) -> Result<(usize, &'c Server), Reason> {
    let containers = list(spec, "containers");
    let mut found = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let name = text(container, &["name"]).ok_or(Reason::NotAPod)?;
        if named.is_none_or(|named| named == name) {
            if let Some(server) = recognise(container, config) {
                found.push((index, server));
            } else if is_scripted(container, &config.servers) {
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
fn recognise<'c>(container: &Value, config: &'c Config) -> Option<&'c Server> {
    let (words, command) = words(container)?;
    let is_flag = |word: &String| word.starts_with("--") && word.len() > 2;
    let line = words
        .iter()
        .take_while(|word| !is_flag(word))
        .map(|word| if is_sentence(word) { "" } else { base(word) });
    // Words are compared as whole lines, and a sentence is none, so that no line of a script counts.
    let line = format!("\n{}\n", line.collect::<Vec<_>>().join("\n"));
    let (name, tag) = name_and_tag(text(container, &["image"]).unwrap_or_default());
    config.servers.iter().find(|server| {
        let takes_flags = words.first().map_or(!server.port_env.is_empty(), |word| word.starts_with('-'));
        server.words.iter().any(|word| line.contains(&format!("\n{}\n", word.replace(' ', "\n"))))
            || command == 0 && server.images.iter().any(|known| is_image(name, tag, known))
            || command == 0
                && takes_flags
                && server
                    .vendor_images
                    .iter()
                    .any(|known| is_vendor_image(name, tag, known, &config.platforms))
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

/// Splits `registry/NAME:tag@digest` into the name with its registry, and the tag.
fn name_and_tag(image: &str) -> (&str, &str) {
    let image = image.split('@').next().unwrap_or_default();
    let start = image.len() - base(image).len();
    image[start..]
        .find(':')
        .map_or((image, ""), |colon| (&image[..start + colon], &image[start + colon + 1..]))
}

/// Returns true if an image is a known one: it ends in the name.
fn is_image(name: &str, tag: &str, known: &str) -> bool {
    let (known, prefix) = known.split_once(':').unwrap_or((known, ""));
    format!("/{name}").ends_with(&format!("/{known}")) && tag.starts_with(prefix)
}

/// Returns true if a vendor's image is of a known server: only words of platforms and numbers are around the name, so that
/// images of routers, exporters and clients of the server do not count.
fn is_vendor_image(name: &str, tag: &str, known: &str, platforms: &[String]) -> bool {
    let (known, prefix) = known.split_once(':').unwrap_or((known, ""));
    let name = format!("-{}-", base(name).replace('_', "-"));
    let is_platform = |part: &str| {
        let word = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
        word.is_empty() || platforms.iter().any(|platform| platform == word)
    };
    let are_platforms = |words: &str| words.split(['-', '.']).all(is_platform);
    name.split_once(&format!("-{known}-"))
        .is_some_and(|(before, after)| are_platforms(before) && are_platforms(after))
        && tag.starts_with(prefix)
}
