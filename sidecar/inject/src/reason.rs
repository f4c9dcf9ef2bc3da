//! The reasons to leave a pod as it is.

use std::fmt;

/// The reason to leave a pod as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The object is not a pod, or lacks the parts of one.
    NotAPod,
    /// The request does not create the pod.
    NotCreated,
    /// The label `tokenmeter.io/inject` is `false`.
    OptedOut,
    /// The pod has a container named `tokenmeter`.
    Already,
    /// The pod uses the network of its node, where the moved port could be taken.
    HostNetwork,
    /// The pod runs on Windows.
    Windows,
    /// No container runs a known server.
    NoServer,
    /// Several containers run a known server.
    SeveralServers,
    /// A shell starts the server, in this container: the port stands in its script.
    Shell(String),
    /// The annotation `container` names no container that runs a known server.
    Container(String),
    /// With this flag the server does not get its requests on one HTTP port.
    Elsewhere(String),
    /// The server itself speaks TLS.
    Tls,
    /// The server listens on an address other than loopback or all.
    Host,
    /// The server's port cannot be read, for this cause.
    Port(&'static str),
    /// An annotation has an invalid value; the name of the annotation.
    Annotation(&'static str),
    /// The pod already uses a port or the name of a volume that the sidecar needs.
    Conflict(&'static str),
    /// The mode needs what the injection config does not offer.
    Mode(&'static str),
}

impl Reason {
    /// Returns the short name of the reason, for the log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotAPod => "not_a_pod",
            Self::NotCreated => "not_created",
            Self::OptedOut => "opted_out",
            Self::Already => "already",
            Self::HostNetwork => "host_network",
            Self::Windows => "windows",
            Self::NoServer => "no_server",
            Self::SeveralServers => "several_servers",
            Self::Shell(_) => "shell",
            Self::Container(_) => "container",
            Self::Elsewhere(_) => "elsewhere",
            Self::Tls => "tls",
            Self::Host => "host",
            Self::Port(_) => "port",
            Self::Annotation(_) => "annotation",
            Self::Conflict(_) => "conflict",
            Self::Mode(_) => "mode",
        }
    }

    /// Returns true if the owner of the pod wanted another result.
    ///
    /// In a labelled namespace there are pods without any server: `is_labelled` says that the pod itself asks.
    #[must_use]
    pub fn warns(&self, is_labelled: bool) -> bool {
        match self {
            Self::NotCreated | Self::OptedOut | Self::Already => false,
            Self::NotAPod | Self::NoServer | Self::HostNetwork | Self::Windows => is_labelled,
            _ => true,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPod => f.write_str("the object is not a readable pod"),
            Self::NotCreated => f.write_str("the request does not create a pod"),
            Self::OptedOut => f.write_str("the label tokenmeter.io/inject is \"false\""),
            Self::Already => f.write_str("it has a container named tokenmeter"),
            Self::HostNetwork => f.write_str("it uses hostNetwork"),
            Self::Windows => f.write_str("it runs on Windows"),
            Self::NoServer => f.write_str("no container runs a known inference server"),
            Self::SeveralServers => f.write_str(
                "several containers run an inference server; name one in the annotation \
                 config.tokenmeter.io/container",
            ),
            Self::Shell(container) => write!(
                f,
                "container {container} starts its server by a shell script; write the server's command and flags \
                 as separate words"
            ),
            Self::Container(name) => write!(
                f,
                "config.tokenmeter.io/container: {name} is not a container of this pod that runs a known server"
            ),
            Self::Elsewhere(flag) => {
                write!(f, "with the flag {flag}, the server does not get its requests on one HTTP port")
            }
            Self::Tls => f.write_str("the server itself speaks TLS"),
            Self::Host => f.write_str("the server listens on an address other than all or 127.0.0.1"),
            Self::Port(cause) => write!(f, "{cause}"),
            Self::Annotation(name) => {
                write!(f, "the annotation config.tokenmeter.io/{name} has an invalid value")
            }
            Self::Conflict(what) => write!(f, "the pod already uses {what}"),
            Self::Mode(cause) => write!(f, "{cause}"),
        }
    }
}

/// Returns at most `bytes` bytes of an untrusted text, cut at a character.
pub(crate) fn bounded(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}
