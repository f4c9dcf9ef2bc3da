//! The annotations of one pod: its annotations `config.tokenmeter.io/NAME`.

use serde_json::Value;
use text::suggestion;

use crate::config::GRACE_MAX_SECONDS;
use crate::pod::{at, text};
use crate::reason::{Reason, bounded};

/// The names of the annotations, without their prefix.
pub const NAMES: [&str; 12] = [
    "mode",
    "container",
    "port",
    "server-port",
    "loopback",
    "grace-seconds",
    "usage",
    "kind",
    "role",
    "prices",
    "tenants",
    "image",
];

/// The values of the annotation `kind`, those of the setting.
pub const KINDS: [&str; 16] = [
    "auto",
    "vllm",
    "tgi",
    "llama_cpp",
    "sglang",
    "ollama",
    "tensorrt_llm",
    "triton",
    "lmdeploy",
    "mistral_rs",
    "dynamo",
    "openai",
    "anthropic",
    "gemini",
    "azure_openai",
    "openrouter",
];

/// The values of the annotation `usage`, those of the setting.
pub const USAGES: [&str; 3] = ["inject", "continuous", "observe"];

/// The values of the annotation `role`, those of the setting.
pub const ROLES: [&str; 4] = ["whole", "prefill", "decode", "auto"];

/// The way by which the sidecar gets the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The sidecar listens on the public number, the server moves.
    Takeover,
    /// The name of the port leads to the sidecar.
    NamedPort,
    /// Packets to the public number are redirected.
    Redirect,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Takeover, Self::NamedPort, Self::Redirect];

    /// Returns the value of the annotation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Takeover => "takeover",
            Self::NamedPort => "named-port",
            Self::Redirect => "redirect",
        }
    }
}

/// The annotations of one pod, checked.
#[derive(Debug)]
pub(crate) struct Annotations<'p> {
    pub(crate) mode: Mode,
    pub(crate) container: Option<&'p str>,
    pub(crate) port: Option<u16>,
    pub(crate) server_port: Option<u16>,
    pub(crate) loopback: bool,
    pub(crate) grace_seconds: Option<u32>,
    pub(crate) usage: Option<&'p str>,
    pub(crate) kind: Option<&'p str>,
    pub(crate) role: Option<&'p str>,
    pub(crate) prices: Option<&'p str>,
    pub(crate) tenants: Option<&'p str>,
    pub(crate) image: Option<&'p str>,
}

impl<'p> Annotations<'p> {
    /// Reads the annotations of a pod. An invalid value would stop the sidecar, and the pod with it.
    pub(crate) fn read(pod: &'p Value) -> Result<Self, Reason> {
        let annotation = |name: &str| text(pod, &["metadata", "annotations", &format!("{PREFIX}{name}")]);
        let one_of = |name: &'static str, known: &[&str]| match annotation(name) {
            Some(value) if !known.contains(&value) => Err(Reason::Annotation(name)),
            value => Ok(value),
        };
        let number = |name: &'static str, from: u32, to: u32| match annotation(name) {
            Some(value) => whole(value, from, to).map(Some).ok_or(Reason::Annotation(name)),
            None => Ok(None),
        };
        let port = |name: &'static str, from: u32| {
            Ok(number(name, from, 65_535)?.and_then(|number| u16::try_from(number).ok()))
        };
        let config_map = |name: &'static str| match annotation(name) {
            Some(value) if !is_dns_name(value) => Err(Reason::Annotation(name)),
            value => Ok(value),
        };
        let mode = one_of("mode", &Mode::ALL.map(Mode::name))?;
        let role = match text(pod, &["metadata", "labels", "llm-d.ai/role"]) {
            Some(role) if ["prefill", "decode"].contains(&role) => Some(role),
            _ => None,
        };
        let image = annotation("image");
        if image.is_some_and(|image| image.is_empty() || image.trim() != image) {
            return Err(Reason::Annotation("image"));
        }
        Ok(Self {
            mode: Mode::ALL.into_iter().find(|known| mode == Some(known.name())).unwrap_or(Mode::Takeover),
            container: annotation("container"),
            port: port("port", 1)?,
            server_port: port("server-port", 1024)?,
            loopback: one_of("loopback", &["true", "false"])? == Some("true"),
            grace_seconds: number("grace-seconds", 0, GRACE_MAX_SECONDS)?,
            usage: one_of("usage", &USAGES)?,
            kind: one_of("kind", &KINDS)?,
            role: one_of("role", &ROLES)?.or(role),
            prices: config_map("prices")?,
            tenants: config_map("tenants")?,
            image,
        })
    }
}

/// Returns a warning for each annotation of the prefix with an unknown name, which has no effect.
pub(crate) fn unknown(pod: &Value) -> Vec<String> {
    let all = at(pod, &["metadata", "annotations"]).and_then(Value::as_object);
    let names = all.into_iter().flat_map(|all| all.keys()).filter_map(|key| key.strip_prefix(PREFIX));
    let unknown = names.filter(|name| !NAMES.contains(name)).take(WARNINGS_MAX);
    let warning = |name: &str| {
        let suggestion = suggestion(name, NAMES.into_iter());
        let name = bounded(name, NAME_MAX_BYTES);
        format!("the annotation {PREFIX}{} is unknown and has no effect; {suggestion}", name.escape_debug())
    };
    unknown.map(warning).collect()
}

/// Returns a number of at most five digits within bounds.
pub(crate) fn whole(text: &str, from: u32, to: u32) -> Option<u32> {
    let is_number = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().filter(|number| (from..=to).contains(number))
}

const PREFIX: &str = "config.tokenmeter.io/";

/// Maximum number of warnings about unknown names; the API server cuts long lists.
const WARNINGS_MAX: usize = 5;

/// Maximum bytes of an unknown name in a warning; Kubernetes' own maximum is 63.
const NAME_MAX_BYTES: usize = 63;

/// Returns true for the name of a ConfigMap.
fn is_dns_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (first, last) = (name.bytes().next(), name.bytes().last());
    name.len() <= 253
        && first.is_some_and(is_inner)
        && last.is_some_and(is_inner)
        && name.bytes().all(|byte| is_inner(byte) || byte == b'-' || byte == b'.')
        && !["..", ".-", "-."].iter().any(|pair| name.contains(pair))
}
