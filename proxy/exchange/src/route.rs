//! The requests that are metered, and the JSON shape of each. It follows from the upstream's kind if that is known,
//! then from the path, then from the request's body or the response's type.
//!
//! Paths are matched by their end, at a slash, because servers are often mounted under a prefix
//! (`/openai/v1/chat/completions`), and in any letter case, because some web frameworks ignore it. The longest matching
//! end wins. A spelling that a server may read as such a path counts as that path: the spelling never decides whether
//! the answer is metered.

use std::cmp::Reverse;
use std::sync::LazyLock;

use http::Method;
use scan::limits::OTHER_MODELS_MAX;
use scan::{Dialect, OtherModels, Request};

use crate::control::is_control;
use crate::found_route::generated_type;
pub use crate::found_route::{ModelInPath, Route};
use crate::path::{plain, slashed, unescaped};
use meter::{Passthrough, ServerKind};

/// The dialect of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// A known dialect.
    Known(Dialect),
    /// `/generate`: TGI, SGLang and LMDeploy each have one. The request's body distinguishes them.
    Generate,
    /// `/completions` of a server of an unknown kind: llama.cpp's own, or OpenAI's without its version. The answer
    /// distinguishes them. Usage is asked for, which llama.cpp ignores there.
    Completions,
    /// `/invocations`, one path for several endpoints. The request's body determines the dialect.
    Invocations,
    /// `/`, where TGI accepts the requests of its `/generate`.
    Root,
    /// Unknown. It is metered if the response is a stream, or reports token counts.
    Anything,
    /// Unknown, but a budget is enforced: the shape of the request's body may determine it.
    Shape,
}

impl Speaks {
    /// The dialect to expect before the request's body is read.
    pub(crate) fn expected(self) -> Dialect {
        match self {
            Self::Known(dialect) => dialect,
            Self::Completions => Dialect::LlamacppCompletion,
            _ => Dialect::Unknown,
        }
    }

    /// The dialect, with the request's body; `None` if it is still unknown.
    pub(crate) fn settle(self, request: &Request) -> Option<Dialect> {
        match self {
            Self::Known(dialect) => Some(dialect),
            Self::Generate => request.dialect_at_generate(),
            Self::Invocations => request.dialect_at_invocations(),
            Self::Root => request.dialect_at_generate().filter(|dialect| *dialect == Dialect::Tgi),
            Self::Completions => Some(Dialect::LlamacppCompletion),
            Self::Anything => None,
            Self::Shape => request.dialect_by_shape(),
        }
    }

    /// The dialect by which the path decides the usage to request, if it does.
    pub fn usage_dialect(self) -> Option<Dialect> {
        match self {
            Self::Known(dialect) => Some(dialect),
            // The body decides whether there is an option; a completion may need less.
            Self::Invocations => Some(Dialect::OpenaiChat),
            Self::Completions => Some(Dialect::OpenaiCompletions),
            _ => None,
        }
    }

    /// Returns true if the dialect depends on the request's body.
    pub(crate) fn is_decided_by_body(self) -> bool {
        matches!(self, Self::Invocations | Self::Shape)
    }
}

/// Returns the route of a request for `path` (as the upstream will see it), or the reason why it is not metered.
///
/// An escaped slash is a slash, as Python's servers and llama.cpp's read it, unless it is a character of a
/// model's name.
pub fn route(kind: Option<ServerKind>, method: &Method, path: &str) -> Result<Route, Passthrough> {
    let found = route_plain(kind, method, &plain(path));
    match slashed(path) {
        Some(path) if !found.is_ok_and(|route| !route.model.is_empty()) => {
            // What is known to run a model by either reading is not left out.
            let known = found.ok().filter(|route| route.speaks != Speaks::Anything);
            route_plain(kind, method, &path).or_else(|reason| known.ok_or(reason))
        }
        _ => found,
    }
}

/// Returns the same for an upstream whose own paths are below `prefix`, which its operator configured.
pub fn route_below(
    prefix: &str,
    kind: Option<ServerKind>,
    method: &Method,
    path: &str,
) -> Result<Route, Passthrough> {
    let found = route(kind, method, path)?;
    let below = path.strip_prefix(prefix).filter(|_| !prefix.is_empty() && found.speaks == Speaks::Anything);
    match below {
        Some(below) if route(kind, method, below).is_err() => Err(Passthrough::Path),
        _ => Ok(found),
    }
}

fn route_plain(kind: Option<ServerKind>, method: &Method, path: &str) -> Result<Route, Passthrough> {
    if *method == Method::GET && is_replay(path) {
        return Err(Passthrough::Replay);
    }
    let found = endpoint(kind, path);
    match (method, found) {
        (&Method::POST, Some(route)) => Ok(route),
        (&Method::PUT, Some(route)) if PUT.iter().any(|end| ends_with(path, end)) => Ok(route),
        (&Method::POST, None) if is_control(path) => Err(Passthrough::Path),
        (&Method::POST, None) => {
            let generates = generated_type(|end| ends_with(path, end));
            // Of an unknown endpoint, the model is one segment; behind `models` it may be several.
            let mut deployed = mounts(path).filter(|(mount, _)| !mount.eq_ignore_ascii_case("models"));
            let route = match deployed.next().and_then(|(_, behind)| behind.split_once('/')) {
                Some((model, _)) => Route::naming(Speaks::Anything, model, ModelInPath::Mount),
                None => Route::new(Speaks::Anything),
            };
            Ok(Route { generates, ..route })
        }
        (_, Some(_)) if path != "/" => Err(Passthrough::Method),
        _ => Err(Passthrough::Path),
    }
}

fn endpoint(kind: Option<ServerKind>, path: &str) -> Option<Route> {
    if let Some((speaks, model, how)) = model_in_path(kind, path) {
        return Some(Route::naming(speaks, model, how));
    }
    let known = |dialect| Some(Route::new(Speaks::Known(dialect)));
    let (_, speaks) = ROUTES.iter().find(|(end, _)| ends_with(path, end))?;
    match (speaks, kind) {
        (Speaks::Generate | Speaks::Root, Some(ServerKind::Tgi)) => known(Dialect::Tgi),
        (Speaks::Generate, Some(ServerKind::Sglang)) => known(Dialect::Sglang),
        (Speaks::Generate, Some(ServerKind::Lmdeploy)) => known(Dialect::Lmdeploy),
        (Speaks::Known(Dialect::LlamacppCompletion), kind) if ends_with(path, "/completions") => match kind {
            Some(ServerKind::LlamaCpp) => known(Dialect::LlamacppCompletion),
            // Only llama.cpp has an endpoint of its own there.
            Some(_) => known(Dialect::OpenaiCompletions),
            None => Some(Route::new(Speaks::Completions)),
        },
        // Many paths end with a slash; only the root counts.
        (Speaks::Root, _) if path != "/" => None,
        _ => Some(Route::new(*speaks)),
    }
}

/// Returns true if the path has this end, in any letter case.
fn ends_with(path: &str, end: &str) -> bool {
    let (path, end) = (path.as_bytes(), end.as_bytes());
    let (Some(last), Some(letter)) = (path.last(), end.last()) else { return end.is_empty() };
    // Most paths that do not match differ in the last letter; this bit is that of its case.
    let may_be = (last ^ letter) & !0x20 == 0 && path.len() >= end.len();
    let tail = || &path[path.len() - end.len()..];
    may_be && (tail() == end || tail().eq_ignore_ascii_case(end))
}

/// Splits a path at the last occurrence of a text in any letter case. The text is ASCII between two slashes.
fn split_last<'a>(path: &'a str, text: &str) -> Option<(&'a str, &'a str)> {
    let is_text =
        |part: &[u8]| matches!(part, [b'/', .., b'/']) && part.eq_ignore_ascii_case(text.as_bytes());
    let at = path.as_bytes().windows(text.len()).rposition(is_text)?;
    Some((&path[..at], &path[at + text.len()..]))
}

/// Returns the value of the first of these names that equals `word` in any letter case.
fn named<T: Copy>(word: &str, names: &[(&str, T)]) -> Option<T> {
    names.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

/// The endpoints whose path names the model: behind one of [`MOUNTS`], `/model/` or `/models/`, or before a colon.
fn model_in_path(kind: Option<ServerKind>, path: &str) -> Option<(Speaks, &str, ModelInPath)> {
    // The usual paths have none of these.
    let mut before = 0;
    let mut may_name = |byte: u8| {
        let is_start = std::mem::replace(&mut before, byte) == b'/';
        byte == b':' || is_start && matches!(byte | 0x20, b'd' | b'e' | b'm' | b's')
    };
    if !path.bytes().any(&mut may_name) {
        return None;
    }
    if kind == Some(ServerKind::AzureOpenai) {
        let (model, endpoint) = split_last(path, "/deployments/")?.1.split_once('/')?;
        let (_, dialect) = DEPLOYED.iter().find(|(end, _)| ends_with(endpoint, &end[1..]))?;
        return Some((Speaks::Known(*dialect), model, ModelInPath::Alone));
    }
    if let Some((dialect, model)) = gemini(path).or_else(|| bedrock(path)).or_else(|| served(path)) {
        let how = if kind.is_some() { ModelInPath::Alone } else { ModelInPath::Api };
        return Some((Speaks::Known(dialect), model, how));
    }
    let (speaks, model) = mounted(mounts(path).next()?.1)?;
    Some((speaks, model, ModelInPath::Mount))
}

/// The model of Vertex AI's and Triton's paths.
fn served(path: &str) -> Option<(Dialect, &str)> {
    let (parent, model_and_method) = split_last(path, "/models/")?;
    if let Some((model, method)) = model_and_method.split_once(':') {
        let is_run = ends_with(parent, "/publishers/anthropic") && !model.eq_ignore_ascii_case(VERTEX_COUNT);
        return is_run.then_some((named(method, &PREDICT)?, model));
    }
    let (model, rest) = model_and_method.split_once('/')?;
    let method = match rest.split_once('/') {
        Some((first, versioned)) if first.eq_ignore_ascii_case("versions") => versioned.split_once('/')?.1,
        _ => rest,
    };
    Some((named(method, &TRITON)?, model))
}

/// Each of [`MOUNTS`] in a path with the rest behind it, the longest first.
fn mounts(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_mount = |segment: &str| MOUNTS.iter().any(|mount| mount.eq_ignore_ascii_case(segment));
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        loop {
            let path = rest?;
            // `split_once` is dear for segments as short as these.
            let end = path.bytes().position(|byte| byte == b'/')?;
            let (segment, behind) = (&path[..end], &path[end + 1..]);
            rest = Some(behind);
            if is_mount(segment) {
                return Some((segment, behind));
            }
        }
    })
}

/// The endpoint at the end of a path behind a mount, and the model before it, which may have slashes: LiteLLM takes all
/// that precedes the endpoint.
fn mounted(behind: &str) -> Option<(Speaks, &str)> {
    let deployed = DEPLOYED.iter().map(|(end, dialect)| (*end, Speaks::Known(*dialect)));
    let is_named = |(end, _): &(&str, Speaks)| *end != "/" && ends_with(behind, end);
    let (end, speaks) = deployed.chain(ROUTES.iter().copied()).find(is_named)?;
    let model = &behind[..behind.len() - end.len()];
    // Azure's first endpoint for data of one's own, and Hugging Face's version.
    let model = model.strip_suffix("/extensions").or_else(|| model.strip_suffix("/v1")).unwrap_or(model);
    (!model.is_empty()).then_some((speaks, model))
}

/// Adds every model that a server may read in a path (as the upstream will see it).
pub(crate) fn add_models(path: &str, models: &mut OtherModels) {
    let mut add = |path: &str| {
        let mut mounts = mounts(path);
        // Each takes the rest of the path.
        for (_, behind) in mounts.by_ref().take(OTHER_MODELS_MAX) {
            if let Some((_, model)) = mounted(behind) {
                models.add(&unescaped(model));
            }
        }
        if mounts.next().is_some() {
            models.mark_incomplete();
        }
    };
    // The usual paths have none of these.
    let may_have = |pair: &[u8]| {
        matches!(pair, [b'/' | b'\\', first] if matches!(first | 0x20, b'd' | b'e' | b'm' | b's'))
            || pair[0] == b'%'
    };
    if !path.as_bytes().windows(2).any(may_have) {
        return;
    }
    add(&plain(path));
    slashed(path).iter().for_each(|path| add(path));
}

/// The model that a Gemini path names: a model, a tuned model (`tunedModels/`), or an endpoint of Vertex AI.
fn gemini(path: &str) -> Option<(Dialect, &str)> {
    let (path, method) = path.rsplit_once(':')?;
    let dialect = named(method, &GEMINI)?;
    let (_, model) = split_last(path, "/models/").or_else(|| path.rsplit_once('/'))?;
    Some((dialect, model))
}

/// The model that a path of Bedrock names: an id, or an ARN. An answer to `invoke` is in the shape of the model's own
/// API.
fn bedrock(path: &str) -> Option<(Dialect, &str)> {
    let (parent, method) = path.rsplit_once('/')?;
    let dialect = named(method, &BEDROCK)?;
    let (_, model) = split_last(parent, "/model/")?;
    let is_anthropic = dialect == Dialect::Unknown && model.contains("anthropic.");
    Some((if is_anthropic { Dialect::Anthropic } else { dialect }, model))
}

/// Returns true if a POST to this path, which [`plain`] returned, is answered by a known endpoint.
pub(crate) fn is_endpoint(path: &str) -> bool {
    endpoint(None, path).is_some()
}

/// The use of a WebSocket, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    /// Its messages are events of this dialect, and each answer is metered.
    Metered(Dialect),
    /// It runs a model, by messages that are not read.
    Unread,
    /// Unknown.
    Unknown,
}

/// Returns the use of a WebSocket at `path` (as the upstream will see it).
pub fn socket(path: &str) -> Socket {
    let of = |path: &str| {
        let known = SOCKETS.iter().find(|(end, _)| ends_with(path, end));
        known.map_or(Socket::Unknown, |(_, socket)| *socket)
    };
    match (of(&plain(path)), slashed(path)) {
        (Socket::Unknown, Some(path)) => of(&path),
        (socket, _) => socket,
    }
}

/// Returns true for streams that are replayed: their content was counted when it was generated.
/// `GET …/responses/{id}` is OpenAI's, `…/interactions/{id}` Gemini's, `…/v1/stream` llama.cpp's.
fn is_replay(path: &str) -> bool {
    let is_one_of =
        |list: &str| split_last(path, list).is_some_and(|(_, id)| !id.is_empty() && !id.contains('/'));
    is_one_of("/responses/") || is_one_of("/interactions/") || ends_with(path, "/v1/stream")
}

/// Gemini's methods on a model.
const GEMINI: [(&str, Dialect); 4] = [
    ("generateContent", Dialect::Gemini),
    ("streamGenerateContent", Dialect::Gemini),
    ("embedContent", Dialect::Embeddings),
    ("batchEmbedContents", Dialect::Embeddings),
];

/// Vertex AI's methods on a model of Anthropic.
const PREDICT: [(&str, Dialect); 2] =
    [("rawPredict", Dialect::Anthropic), ("streamRawPredict", Dialect::Anthropic)];

/// Bedrock's methods on a model.
const BEDROCK: [(&str, Dialect); 4] = [
    ("converse", Dialect::BedrockConverse),
    ("converse-stream", Dialect::BedrockConverse),
    ("invoke", Dialect::Unknown),
    ("invoke-with-response-stream", Dialect::Unknown),
];

/// Triton's methods on a model.
const TRITON: [(&str, Dialect); 2] = [("generate", Dialect::Triton), ("generate_stream", Dialect::Triton)];

/// The segments behind which a path names the model for any endpoint: those of Azure OpenAI and LiteLLM, of OpenAI's first
/// version, of Databricks and of Hugging Face.
const MOUNTS: [&str; 4] = ["deployments", "engines", "serving-endpoints", "models"];

/// The ends of the paths of a deployment.
const DEPLOYED: [(&str, Dialect); 5] = [
    ("/chat/completions", Dialect::OpenaiChat),
    ("/completions", Dialect::OpenaiCompletions),
    ("/embeddings", Dialect::Embeddings),
    ("/audio/transcriptions", Dialect::Transcription),
    ("/audio/translations", Dialect::Transcription),
];

/// The name under which Vertex AI counts the tokens of a request to Anthropic's models, without running one.
const VERTEX_COUNT: &str = "count-tokens";

/// Paths that several dialects share.
const SHARED: [(&str, Speaks); 4] = [
    ("/generate", Speaks::Generate),
    ("/invocations", Speaks::Invocations),
    ("/", Speaks::Root),
    // YandexGPT; the end alone is llama.cpp's.
    ("/foundationModels/v1/completion", Speaks::Anything),
];

/// All path ends, the longest first: `/completions` alone is llama.cpp's own endpoint.
static ROUTES: LazyLock<Vec<(&str, Speaks)>> = LazyLock::new(|| {
    let own = |dialect: Dialect| dialect.paths().iter().map(move |end| (*end, Speaks::Known(dialect)));
    let mut routes: Vec<_> = Dialect::ALL.into_iter().flat_map(own).chain(SHARED).collect();
    routes.sort_by_key(|(end, _)| Reverse(end.len()));
    routes
});

/// The ends of paths of WebSockets: OpenAI's and vLLM's Realtime, OpenAI's and xAI's Responses; OpenAI's translations,
/// which have no answers and state no usage; and Gemini Live, whose messages have no ids and no reliable end of an
/// answer.
const SOCKETS: [(&str, Socket); 6] = [
    ("/realtime", Socket::Metered(Dialect::Realtime)),
    ("/responses", Socket::Metered(Dialect::OpenaiResponses)),
    ("/realtime/translations", Socket::Unread),
    (".BidiGenerateContent", Socket::Unread),
    (".BidiGenerateContentConstrained", Socket::Unread),
    ("/interactions/live", Socket::Unread),
];

/// The paths that SGLang also accepts with `PUT`.
const PUT: [&str; 4] = ["/generate", "/encode", "/v1/rerank", "/classify"];

/// Every known path of a request, made from the tables above.
#[cfg(test)]
pub(crate) fn known_paths() -> Vec<String> {
    let gemini = GEMINI.iter().map(|(name, _)| format!("/v1beta/models/g-2:{name}"));
    let predict = PREDICT.iter().map(|(name, _)| format!("/v1/p/publishers/anthropic/models/c-5:{name}"));
    let triton = TRITON.iter().map(|(name, _)| format!("/v2/models/ens/{name}"));
    let deployed = DEPLOYED.iter().map(|(end, _)| format!("/openai/deployments/d-1{end}"));
    let bedrock = ["us.anthropic.c-5-v1:0", "l-4"]
        .into_iter()
        .flat_map(|model| BEDROCK.iter().map(move |(name, _)| format!("/model/{model}/{name}")));
    let named = gemini.chain(predict).chain(triton).chain(deployed).chain(bedrock);
    ROUTES.iter().map(|(end, _)| (*end).to_owned()).chain(named).collect()
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
