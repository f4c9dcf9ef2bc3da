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
use scan::{Dialect, Name, Request};

use crate::path::{plain, slashed};
use meter::{Passthrough, ServerKind};

/// The facts of an exchange from its request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The dialect, as far as the head determines it.
    pub speaks: Speaks,
    /// The model, if the path names it; else empty.
    pub model: Name,
}

/// The dialect of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// A known dialect.
    Known(Dialect),
    /// `/generate`: TGI, SGLang and LMDeploy each have one. The request's body distinguishes them.
    Generate,
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
    /// The dialect, with the request's body; `None` if it is still unknown.
    pub(crate) fn settle(self, request: &Request) -> Option<Dialect> {
        match self {
            Self::Known(dialect) => Some(dialect),
            Self::Generate => request.dialect_at_generate(),
            Self::Invocations => request.dialect_at_invocations(),
            Self::Root => request.dialect_at_generate().filter(|dialect| *dialect == Dialect::Tgi),
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
        Some(path) if !found.is_ok_and(|route| !route.model.is_empty()) => route_plain(kind, method, &path),
        _ => found,
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
        (&Method::POST, None) if CONTROL.iter().any(|end| ends_with(path, end)) => Err(Passthrough::Path),
        (&Method::POST, None) => Ok(Route { speaks: Speaks::Anything, model: Name::default() }),
        (_, Some(_)) if path != "/" => Err(Passthrough::Method),
        _ => Err(Passthrough::Path),
    }
}

fn endpoint(kind: Option<ServerKind>, path: &str) -> Option<Route> {
    if let Some((dialect, model)) = model_in_path(path) {
        return Some(Route { speaks: Speaks::Known(dialect), model: Name::cut(model.as_bytes()) });
    }
    let known = |dialect| Some(Route { speaks: Speaks::Known(dialect), model: Name::default() });
    let (_, speaks) = ROUTES.iter().find(|(end, _)| ends_with(path, end))?;
    match (speaks, kind) {
        (Speaks::Generate | Speaks::Root, Some(ServerKind::Tgi)) => known(Dialect::Tgi),
        (Speaks::Generate, Some(ServerKind::Sglang)) => known(Dialect::Sglang),
        (Speaks::Generate, Some(ServerKind::Lmdeploy)) => known(Dialect::Lmdeploy),
        // Only llama.cpp has this endpoint.
        (Speaks::Known(Dialect::LlamacppCompletion), Some(kind))
            if kind != ServerKind::LlamaCpp && ends_with(path, "/completions") =>
        {
            known(Dialect::OpenaiCompletions)
        }
        // Many paths end with a slash; only the root counts.
        (Speaks::Root, _) if path != "/" => None,
        _ => Some(Route { speaks: *speaks, model: Name::default() }),
    }
}

/// Returns true if the path has this end, in any letter case.
fn ends_with(path: &str, end: &str) -> bool {
    let Some(at) = path.len().checked_sub(end.len()) else { return false };
    let (tail, end) = (&path.as_bytes()[at..], end.as_bytes());
    // Most paths have the usual letter case, and most that do not match differ in the last letter.
    let may_be = tail.last().map(u8::to_ascii_lowercase) == end.last().map(u8::to_ascii_lowercase);
    tail == end || may_be && tail.eq_ignore_ascii_case(end)
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

/// The endpoints whose path names the model.
fn model_in_path(path: &str) -> Option<(Dialect, &str)> {
    if let Some(found) = deployment(path) {
        return Some(found);
    }
    if let Some(found) = gemini(path) {
        return Some(found);
    }
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

/// The model that a Gemini path names: a model, a tuned model (`tunedModels/`), or an endpoint of Vertex AI.
fn gemini(path: &str) -> Option<(Dialect, &str)> {
    let (path, method) = path.rsplit_once(':')?;
    let dialect = named(method, &GEMINI)?;
    let (_, model) = split_last(path, "/models/").or_else(|| path.rsplit_once('/'))?;
    Some((dialect, model))
}

/// The deployment that an Azure OpenAI path names: it answers whatever model the body names.
fn deployment(path: &str) -> Option<(Dialect, &str)> {
    let (_, model_and_endpoint) = split_last(path, "/deployments/")?;
    let (model, endpoint) = model_and_endpoint.split_at(model_and_endpoint.find('/')?);
    let (_, dialect) = DEPLOYED.iter().find(|(end, _)| ends_with(endpoint, end))?;
    Some((*dialect, model))
}

/// Returns true if a POST to `path` (as the upstream will see it) starts a batch, whose results are fetched later.
pub fn begins_batch(path: &str) -> bool {
    let begins = |path: &str| BATCHES.iter().any(|end| ends_with(path, end));
    begins(&plain(path)) || slashed(path).is_some_and(|path| begins(&path))
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

/// Triton's methods on a model.
const TRITON: [(&str, Dialect); 2] = [("generate", Dialect::Triton), ("generate_stream", Dialect::Triton)];

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
const SHARED: [(&str, Speaks); 3] =
    [("/generate", Speaks::Generate), ("/invocations", Speaks::Invocations), ("/", Speaks::Root)];

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

/// Paths that start a batch: those of OpenAI, Anthropic, LiteLLM and Gemini, and the runs of OpenAI's assistants.
const BATCHES: [&str; 4] = ["/batches", "/runs", ":batchGenerateContent", ":asyncBatchEmbedContent"];

/// The paths that SGLang also accepts with `PUT`.
const PUT: [&str; 4] = ["/generate", "/encode", "/v1/rerank", "/classify"];

/// Paths of POST requests that do not run the model. Some of them stream. llama.cpp's `/chat/completions/control` ends
/// the reasoning of another request, which is metered itself, and `/streams/lookup` lists the caller's streams.
const CONTROL: [&str; 15] = [
    "/count_tokens",
    "/input_tokens",
    "/chat/completions/control",
    "/streams/lookup",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/cancel",
    "/api/pull",
    "/api/push",
    "/api/create",
    "/api/copy",
    "/api/show",
    "/abort_request",
    "/abort_requests",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn speaks(kind: Option<ServerKind>, path: &str) -> Option<Speaks> {
        route(kind, &Method::POST, path).ok().map(|route| route.speaks)
    }

    #[test]
    fn each_path_end_has_one_dialect() {
        let mut ends: Vec<_> = ROUTES.iter().map(|(end, _)| *end).collect();
        assert!(ends.iter().all(|end| end.starts_with('/')), "{ends:?}");
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), ROUTES.len());
    }

    #[test]
    fn paths_are_matched_by_their_end() {
        let rows = [
            ("/v1/chat/completions", Dialect::OpenaiChat),
            ("/chat/completions", Dialect::OpenaiChat),
            ("/openai/v1/chat/completions", Dialect::OpenaiChat),
            ("/v1/chat/completions/batch", Dialect::OpenaiChat),
            ("/v1/completions", Dialect::OpenaiCompletions),
            ("/mounted/v1/completions", Dialect::OpenaiCompletions),
            ("/completions", Dialect::LlamacppCompletion),
            ("/completion", Dialect::LlamacppCompletion),
            ("/infill", Dialect::LlamacppCompletion),
            ("/v1/responses", Dialect::OpenaiResponses),
            ("/v1/systemone", Dialect::OpenaiResponses),
            ("/v1beta/interactions", Dialect::GeminiInteractions),
            ("/v1beta1/projects/p/locations/l/interactions", Dialect::GeminiInteractions),
            ("/v1/messages", Dialect::Anthropic),
            ("/api/chat", Dialect::OllamaChat),
            ("/api/generate", Dialect::OllamaGenerate),
            ("/inference/v1/generate", Dialect::VllmGenerate),
            ("/cohere/v2/chat", Dialect::Cohere),
            ("/generate_stream", Dialect::Tgi),
            ("/v1/embeddings", Dialect::Embeddings),
            ("/api/embed", Dialect::Embeddings),
            ("/v2/rerank", Dialect::Rerank),
            ("/generative_scoring", Dialect::Rerank),
            ("/vertex_generate", Dialect::Sglang),
            ("/v1/audio/transcriptions", Dialect::Transcription),
        ];
        for (path, dialect) in rows {
            assert_eq!(speaks(None, path), Some(Speaks::Known(dialect)), "{path}");
        }
    }

    #[test]
    fn a_segment_is_matched_whole() {
        for path in [
            "/autocompletion",
            "/v1/my-infill",
            "/xchat/completionsx",
            "/v1/control",
            "/v1/chat/completions/my_input_tokens",
            "/v1/chat/completions%2Fx",
            "/v1/chat/completions%20",
            "/v1/chat/complet%2569ons",
            "/regenerate",
        ] {
            assert_eq!(speaks(None, path), Some(Speaks::Anything), "{path}");
        }
    }

    #[test]
    fn sockets_are_found_by_the_end_of_their_path() {
        for path in [
            "/v1/realtime",
            "/openai/v1/realtime/",
            "/V1/Realtime",
            "/v1/realtim%65",
            "/v1%2frealtime",
            "/v1/realtime/.",
        ] {
            assert_eq!(socket(path), Socket::Metered(Dialect::Realtime), "{path}");
        }
        assert_eq!(socket("/v1/responses"), Socket::Metered(Dialect::OpenaiResponses));
        let live = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
        assert_eq!(socket(live), Socket::Unread);
        assert_eq!(socket("/v1/realtime/translations"), Socket::Unread);
        assert_eq!(socket("/v1beta/interactions/live"), Socket::Unread);
        for path in
            ["/", "/v1/realtime/calls", "/v1/unrealtime", "/v1/responses/resp_1", "/v1/chat/completions"]
        {
            assert_eq!(socket(path), Socket::Unknown, "{path}");
        }
    }

    #[test]
    fn kind_decides_ambiguous_paths() {
        let rows = [
            (None, "/generate", Speaks::Generate),
            (Some(ServerKind::Vllm), "/generate", Speaks::Generate),
            (Some(ServerKind::Tgi), "/generate", Speaks::Known(Dialect::Tgi)),
            (Some(ServerKind::Sglang), "/generate", Speaks::Known(Dialect::Sglang)),
            (Some(ServerKind::Lmdeploy), "/generate", Speaks::Known(Dialect::Lmdeploy)),
            (Some(ServerKind::Tgi), "/", Speaks::Known(Dialect::Tgi)),
            (None, "/", Speaks::Root),
            (None, "/invocations", Speaks::Invocations),
            (Some(ServerKind::LlamaCpp), "/completions", Speaks::Known(Dialect::LlamacppCompletion)),
            (Some(ServerKind::Vllm), "/completions", Speaks::Known(Dialect::OpenaiCompletions)),
        ];
        for (kind, path, expected) in rows {
            assert_eq!(speaks(kind, path), Some(expected), "{kind:?} {path}");
        }
    }

    #[test]
    fn a_path_may_name_the_model() {
        let rows = [
            ("/v2/models/ens/generate", Some((Dialect::Triton, "ens"))),
            ("/v2/models/ens/versions/3/generate_stream", Some((Dialect::Triton, "ens"))),
            ("/v2/models/ens/infer", None),
            ("/v1beta/models/g-2:streamGenerateContent", Some((Dialect::Gemini, "g-2"))),
            ("/v1/projects/p/publishers/google/models/g-2:generateContent", Some((Dialect::Gemini, "g-2"))),
            ("/v1beta/models/g-2:countTokens", None),
            ("/v1beta/models/e-2:embedContent", Some((Dialect::Embeddings, "e-2"))),
            ("/v1beta/models/e-2:batchEmbedContents", Some((Dialect::Embeddings, "e-2"))),
            (
                "/v1/projects/p/publishers/anthropic/models/c-5:streamRawPredict",
                Some((Dialect::Anthropic, "c-5")),
            ),
            ("/v1beta/tunedModels/t-1:generateContent", Some((Dialect::Gemini, "t-1"))),
            ("/V1beta/Models/g-2:streamgeneratecontent", Some((Dialect::Gemini, "g-2"))),
            ("/V2/Models/ens/Versions/3/Generate", Some((Dialect::Triton, "ens"))),
            ("/v2/models/ens/x/../generate", Some((Dialect::Triton, "ens"))),
            ("/v2/models/ens/versions/versions/generate", Some((Dialect::Triton, "ens"))),
            ("/v1beta/models/a:b:streamGenerateContent", Some((Dialect::Gemini, "a:b"))),
            ("/v1/projects/p/locations/l/endpoints/12:streamGenerateContent", Some((Dialect::Gemini, "12"))),
            ("/v1/projects/p/publishers/anthropic/models/c-5:rawPredict", Some((Dialect::Anthropic, "c-5"))),
            ("/v1/projects/p/publishers/anthropic/models/count-tokens:rawPredict", None),
            ("/v1/projects/p/publishers/mistralai/models/m-3:rawPredict", None),
            ("/openai/deployments/d-1/chat/completions", Some((Dialect::OpenaiChat, "d-1"))),
            ("/openai/Deployments/d-1/Chat/Completions", Some((Dialect::OpenaiChat, "d-1"))),
            ("/openai/deployments/d-1/extensions/chat/completions", Some((Dialect::OpenaiChat, "d-1"))),
            ("/openai/deployments/d-1/completions", Some((Dialect::OpenaiCompletions, "d-1"))),
            ("/openai/deployments/d-1/embeddings", Some((Dialect::Embeddings, "d-1"))),
            ("/openai/deployments/d-1/audio/translations", Some((Dialect::Transcription, "d-1"))),
            ("/openai/deployments/d-1/images/generations", None),
            ("/openai/deployments/d-1", None),
            ("/deployments/", None),
        ];
        for (path, expected) in rows {
            let expected = match expected {
                Some((dialect, model)) => {
                    Route { speaks: Speaks::Known(dialect), model: Name::cut(model.as_bytes()) }
                }
                None => Route { speaks: Speaks::Anything, model: Name::default() },
            };
            assert_eq!(route(None, &Method::POST, path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn escaped_paths_match_as_servers_read_them() {
        for path in [
            "/v1/chat/complet%69ons",
            "/v1//chat/completions/",
            "//v1/chat/completions",
            "/v1/chat%2Fcompletions",
            "/%76%31%2f%63hat/completions%2F",
            "/v1/chat/completion%u0073",
            "/v1%u002Fchat/completions%ud800",
            "/v1%2Fchat/completions",
            "/v1/chat/completions%0A",
            "/v1/chat/completions%0a",
            "/v1/chat/completions%u000a",
            "/v1/chat/completions/%0a",
            "/v1/chat/completions%0a/",
            "/v1%2fchat/completions%0a",
            "/V1/Chat/COMPLETIONS",
            "/v1/chat/completions/.",
            "/v1/chat/./completions",
            "/v1/chat/%2e%2E/chat/completions/x/..",
            "/v1/chat%2F.%2Fcompletions",
        ] {
            assert_eq!(speaks(None, path), Some(Speaks::Known(Dialect::OpenaiChat)), "{path}");
        }
        // A slash in a name separates no segments, unless no other route matches.
        for (path, model) in [
            ("/v2/models/a%2Fb/generate", "a%2Fb"),
            ("/v2/models/a%2Dc//generate/", "a-c"),
            ("/v1beta/models/g-2%3AgenerateContent", "g-2"),
        ] {
            let model = Name::cut(model.as_bytes());
            assert_eq!(route(None, &Method::POST, path).map(|route| route.model), Ok(model), "{path}");
        }
        for (method, path, reason) in [
            (Method::POST, "/tok%65nize", Passthrough::Path),
            (Method::POST, "/tokenize%2F", Passthrough::Path),
            (Method::POST, "/v1/chat/completions/../../Tokenize", Passthrough::Path),
            (Method::GET, "/v1/chat/completions/", Passthrough::Method),
            (Method::GET, "/v1/responses/resp_1/", Passthrough::Replay),
        ] {
            assert_eq!(route(None, &method, path), Err(reason), "{method} {path}");
        }
    }

    proptest! {
        #![proptest_config(chance::cases(2048))]

        /// No spelling changes the route, and a plain path is read unchanged.
        #[test]
        fn spelling_changes_no_route(
            end in prop::sample::select(ROUTES.iter().map(|(end, _)| *end).collect::<Vec<_>>()),
            before in "(/[a-z0-9._~-]{1,6}){0,3}",
            spelling in proptest::collection::vec(0_u8..11, 80),
            last in prop::sample::select(vec!["", "/", "%0a", "%0A", "%u000a", "/%0A", "%0a/", "//%u000A//"]),
            is_loud in any::<bool>(),
        ) {
            let path = match end {
                "/" => before + "/x",
                end => before + end,
            };
            let meant = route_plain(None, &Method::POST, &path);
            prop_assert_eq!(route(None, &Method::POST, &path), meant);
            let mut spelled = String::new();
            let path = if is_loud { path.to_ascii_uppercase() } else { path };
            for (character, how) in path.chars().zip(spelling.iter().cycle()) {
                match (character, how) {
                    ('/', 0) => spelled.push_str("//"),
                    ('/', 9) => spelled.push_str("/./"),
                    ('/', 10) => spelled.push_str("/x/%2e./"),
                    ('/', _) | (_, 4..) => spelled.push(character),
                    (_, 2) => spelled.push_str(&format!("%u{:04x}", u32::from(character))),
                    (_, 3) => spelled.push_str(&format!("%uD801{character}")),
                    (_, 0) => spelled.push_str(&format!("%{:02x}", u32::from(character))),
                    (_, 1) => spelled.push_str(&format!("%{:02X}", u32::from(character))),
                }
            }
            spelled.push_str(last);
            prop_assert_eq!(route(None, &Method::POST, &spelled), meant, "{}", spelled);
        }
    }

    #[test]
    fn only_model_work_is_metered() {
        let rows = [
            (Method::GET, "/v1/chat/completions", Passthrough::Method),
            (Method::HEAD, "/v1/chat/completions", Passthrough::Method),
            (Method::OPTIONS, "/v1/messages", Passthrough::Method),
            (Method::PUT, "/v1/chat/completions", Passthrough::Method),
            (Method::GET, "/v1/models", Passthrough::Path),
            (Method::GET, "/", Passthrough::Path),
            (Method::OPTIONS, "*", Passthrough::Path),
            (Method::POST, "/tokenize", Passthrough::Path),
            (Method::POST, "/v1/messages/count_tokens", Passthrough::Path),
            (Method::POST, "/v1/chat/completions/input_tokens", Passthrough::Path),
            (Method::POST, "/v1/responses/input_tokens/", Passthrough::Path),
            (Method::POST, "/responses/input_tokens", Passthrough::Path),
            (Method::POST, "/v1/chat/completions/control", Passthrough::Path),
            (Method::POST, "/v1/streams/lookup", Passthrough::Path),
            (Method::POST, "/v1/responses/resp_1/cancel", Passthrough::Path),
            (Method::POST, "/api/pull", Passthrough::Path),
            (Method::GET, "/v1/responses/resp_1", Passthrough::Replay),
            (Method::GET, "/v1beta/interactions/v1_a", Passthrough::Replay),
            (Method::POST, "/v1beta/interactions/v1_a/cancel", Passthrough::Path),
            (Method::DELETE, "/v1beta/interactions/v1_a", Passthrough::Path),
            (Method::GET, "/v1/stream", Passthrough::Replay),
        ];
        for (method, path, reason) in rows {
            assert_eq!(route(None, &method, path), Err(reason), "{method} {path}");
        }
        for path in ["/generate", "/encode", "/v1/rerank", "/classify", "/classif%79/"] {
            assert_eq!(
                route(None, &Method::PUT, path),
                route(None, &Method::POST, path),
                "SGLang takes both"
            );
        }
        for path in ["/rerank", "/v1/embeddings", "/v1/score"] {
            assert_eq!(route(None, &Method::PUT, path), Err(Passthrough::Method), "{path}");
        }
    }
}
