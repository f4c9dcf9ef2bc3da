//! The ports of a pod: the server's own, the public one, and the one that the pod gains.

use serde_json::Value;

use crate::annotations::{Annotations, Mode, whole};
use crate::config::Config;
use crate::pod::{containers, list, set_env, text, words};
use crate::reason::Reason;
use crate::server::{EnvForm, Server};

/// The ports of a pod that is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    /// The port on which the server listens as written.
    pub(crate) own: u16,
    /// The port that clients use.
    pub(crate) public: u16,
    /// The port that the pod gains.
    pub(crate) gained: u16,
}

/// Addresses by which a server is reached on loopback.
const REACHABLE: [&str; 6] = ["", "0.0.0.0", "127.0.0.1", "localhost", "::", "[::]"];

/// The number of ports that are tried for the one that the pod gains.
const TRIES: u16 = 10;

/// Reads the ports of a pod.
pub(crate) fn read(
    spec: &Value,
    container: &Value,
    server: &Server,
    annotations: &Annotations<'_>,
    config: &Config,
) -> Result<Ports, Reason> {
    let (words, _) = words(container).ok_or(Reason::NotAPod)?;
    if let Some(flag) = elsewhere(&words, server) {
        return Err(Reason::Elsewhere(flag));
    }
    if words.iter().any(|word| is_one(word, &server.tls_flags)) {
        return Err(Reason::Tls);
    }
    let host = value(&words, &server.host_flags).unwrap_or_default();
    if !annotations.loopback && !REACHABLE.contains(&host) {
        return Err(Reason::Host);
    }
    let own = own(container, &words, server, annotations)?;
    let public = annotations.port.unwrap_or(own);
    let admin = config.admin_port();
    if public == admin || own == admin {
        return Err(Reason::Conflict("the port of the sidecar's admin address"));
    }
    let declares = |container: &Value, port: u16| {
        list(container, "ports")
            .iter()
            .any(|entry| entry.get("containerPort").and_then(Value::as_u64) == Some(port.into()))
    };
    let declared = |port: u16| containers(spec).any(|container| declares(container, port));
    if declared(admin) {
        return Err(Reason::Conflict("the port of the sidecar's admin address"));
    }
    let is_of_another =
        |port| containers(spec).any(|other| !std::ptr::eq(other, container) && declares(other, port));
    if annotations.mode == Mode::Takeover && public != own && is_of_another(public) {
        return Err(Reason::Conflict(
            "the port of the annotation config.tokenmeter.io/port in another container",
        ));
    }
    let is_free = |port: &u16| ![own, public, admin].contains(port) && !declared(*port);
    let gained = match annotations.server_port {
        Some(port) => Some(port).filter(is_free),
        None => (config.server_port..config.server_port.saturating_add(TRIES)).find(is_free),
    };
    let gained = gained.ok_or(Reason::Conflict("the port to which the server would move"))?;
    Ok(Ports { own, public, gained })
}

/// Returns the port on which a server listens as written: by flag, by variable, or by default.
fn own(
    container: &Value,
    words: &[String],
    server: &Server,
    annotations: &Annotations<'_>,
) -> Result<u16, Reason> {
    if let Some(written) = value(words, &server.port_flags) {
        return number(written);
    }
    if words.iter().any(|word| is_one(word, &server.port_flags)) {
        return Err(Reason::Port("the port flag has no value"));
    }
    let written = variable(container, server)?;
    if let Some(written) = written {
        let (host, port) = match server.port_env_form {
            EnvForm::Port => ("", written),
            EnvForm::HostPort => written.rsplit_once(':').unwrap_or((written, "")),
        };
        if !annotations.loopback && !REACHABLE.contains(&host) {
            return Err(Reason::Host);
        }
        if !port.is_empty() {
            return number(port);
        }
    }
    if annotations.port.is_none() {
        if words.iter().any(|word| is_one(word, &server.file_flags)) {
            return Err(Reason::Port(
                "the server's port may stand in its settings file; \
                set the annotation config.tokenmeter.io/port",
            ));
        }
        let mut ports = list(container, "ports").iter().map(|port| port.get("containerPort")?.as_u64());
        let is_env_known =
            server.port_env.is_empty() || written.is_some() || list(container, "envFrom").is_empty();
        if ports.len() == 0 && !is_env_known {
            return Err(Reason::Port(
                "the server's port may come from envFrom; \
                set the annotation config.tokenmeter.io/port",
            ));
        }
        if ports.len() > 0 && !ports.any(|port| port == Some(server.port.into())) {
            return Err(Reason::Port(
                "the server's default port is none of its container's ports; \
                set the annotation config.tokenmeter.io/port",
            ));
        }
    }
    if server.takes_new_flags {
        Ok(server.port)
    } else {
        Err(Reason::Port("the server's port is not written in its port flag, and none can be appended"))
    }
}

fn number(text: &str) -> Result<u16, Reason> {
    let number = whole(text, 1, 65_535).and_then(|number| u16::try_from(number).ok());
    number.ok_or(Reason::Port("the server's port is not written as a number"))
}

/// Returns the literal value of the server's port variable.
fn variable<'c>(container: &'c Value, server: &Server) -> Result<Option<&'c str>, Reason> {
    if server.port_env.is_empty() {
        return Ok(None);
    }
    let named = |entry: &&Value| text(entry, &["name"]) == Some(&server.port_env);
    match list(container, "env").iter().rfind(named) {
        None => Ok(None),
        Some(entry) if entry.get("valueFrom").is_some() => {
            Err(Reason::Port("the server's port comes from a reference in a variable"))
        }
        Some(entry) => Ok(Some(text(entry, &["value"]).unwrap_or_default())),
    }
}

/// Returns the flag with which the server does not get its requests on one HTTP port.
fn elsewhere(words: &[String], server: &Server) -> Option<String> {
    let flag = server.elsewhere_flags.iter().find(|flag| words.iter().any(|word| is_flag(word, flag)));
    if flag.is_some() {
        return flag.cloned();
    }
    // A reference, such as the index of the pod, may be 0 in the pod that gets the requests.
    let rank = value(words, &server.rank_flags)?.trim_start_matches('0');
    let is_above = !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit());
    server.rank_flags.first().filter(|_| is_above).map(|flag| format!("{flag} above 0"))
}

/// Returns true for a word that is one of the flags, or begins with one and its value.
fn is_one(word: &str, flags: &[String]) -> bool {
    flags.iter().any(|flag| is_flag(word, flag))
}

/// Returns true for `FLAG`, `FLAG=VALUE` and `-xVALUE`.
fn is_flag(word: &str, flag: &str) -> bool {
    word == flag || prefix(word, flag).is_some()
}

/// Returns what precedes the value in `FLAG=VALUE` or `-xVALUE`.
fn prefix<'w>(word: &'w str, flag: &str) -> Option<&'w str> {
    let rest = word.strip_prefix(flag)?;
    match rest.strip_prefix('=') {
        Some(_) => Some(&word[..=flag.len()]),
        None => (is_short(flag) && !rest.is_empty()).then(|| &word[..flag.len()]),
    }
}

/// Returns true for `-x`, whose value may stand in the same word.
fn is_short(flag: &str) -> bool {
    flag.len() == 2 && flag != "--"
}

/// Returns true if a flag of the address is written.
pub(crate) fn has_host(container: &Value, server: &Server) -> bool {
    words(container).is_some_and(|(words, _)| !places(&words, &server.host_flags).is_empty())
}

/// Returns where the values of a flag stand: in its own word, or in the next one.
fn places(words: &[String], flags: &[String]) -> Vec<usize> {
    let is_flag = |word: &String| flags.contains(word);
    let holds = |index: &usize| {
        assigned(&words[*index], flags).is_some() || *index > 0 && is_flag(&words[*index - 1])
    };
    (0..words.len()).filter(holds).collect()
}

/// Returns what precedes the value, and the value, of a word that is a flag with its value.
fn assigned<'w>(word: &'w str, flags: &[String]) -> Option<(&'w str, &'w str)> {
    flags.iter().find_map(|flag| prefix(word, flag)).map(|prefix| word.split_at(prefix.len()))
}

/// Returns the value of a flag that the server uses: the last one.
fn value<'w>(words: &'w [String], flags: &[String]) -> Option<&'w str> {
    let word = &words[*places(words, flags).last()?];
    Some(assigned(word, flags).map_or(word.as_str(), |(_, value)| value))
}

/// Moves the server of a container to a port: by its flags where they are written, else by its variable, else by a
/// new flag.
pub(crate) fn move_server(
    container: &mut Value,
    server: &Server,
    port: u16,
    loopback: bool,
) -> Result<(), Reason> {
    let (words, command) = words(container).ok_or(Reason::NotAPod)?;
    let mut changed = words.clone();
    if !places(&words, &server.port_flags).is_empty() || server.port_env.is_empty() {
        set_flag(&words, &mut changed, &server.port_flags, &port.to_string())?;
    } else {
        let host = if loopback { "127.0.0.1" } else { host(container, server) };
        let value = match server.port_env_form {
            EnvForm::Port => port.to_string(),
            EnvForm::HostPort => format!("{host}:{port}"),
        };
        set_env(container, &server.port_env, &value)?;
    }
    if loopback && !server.host_flags.is_empty() {
        set_flag(&words, &mut changed, &server.host_flags, "127.0.0.1")?;
    }
    let args = changed.split_off(command);
    let container = container.as_object_mut().ok_or(Reason::NotAPod)?;
    for (key, words) in [("command", changed), ("args", args)] {
        if !words.is_empty() {
            container.insert(key.to_owned(), words.into());
        }
    }
    Ok(())
}

/// Returns the host of a `HOST:PORT` variable; without one the images of the known servers listen on all addresses.
fn host(container: &Value, server: &Server) -> &'static str {
    let written = variable(container, server).ok().flatten().unwrap_or_default();
    let host = written.rsplit_once(':').map_or(written, |(host, _)| host);
    REACHABLE.into_iter().find(|known| *known == host && !host.is_empty()).unwrap_or("0.0.0.0")
}

/// Sets the value of a flag wherever it is in `words`, or appends the first of `flags`.
fn set_flag(
    words: &[String],
    changed: &mut Vec<String>,
    flags: &[String],
    value: &str,
) -> Result<(), Reason> {
    let places = places(words, flags);
    for index in &places {
        let prefix = assigned(&words[*index], flags).map_or("", |(prefix, _)| prefix);
        changed[*index] = format!("{prefix}{value}");
    }
    if places.is_empty() {
        changed.extend([flags.first().ok_or(Reason::NotAPod)?.clone(), value.to_owned()]);
    }
    Ok(())
}
