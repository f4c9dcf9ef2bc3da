//! Paths and their dialects.

use proptest::prelude::*;
use scan::Name;

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
        ("/v1/fim/completions", Dialect::OpenaiChat),
        ("/v1/completions", Dialect::OpenaiCompletions),
        ("/mounted/v1/completions", Dialect::OpenaiCompletions),
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
        "/foundationModels/v1/completion",
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
    for path in ["/", "/v1/realtime/calls", "/v1/unrealtime", "/v1/responses/resp_1", "/v1/chat/completions"]
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
        (None, "/completions", Speaks::Completions),
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
        ("/openai/deployments/a/b/chat/completions", Some((Dialect::OpenaiChat, "a/b"))),
        ("/v1/engines/a/b/completions", Some((Dialect::OpenaiCompletions, "a/b"))),
        ("/openai/deployments/d-1/images/generations", None),
        ("/openai/deployments/d-1", None),
        ("/deployments/", None),
        ("/model/amazon.nova-lite-v1:0/converse", Some((Dialect::BedrockConverse, "amazon.nova-lite-v1:0"))),
        ("/model/us.meta.l-4%3A0/Converse-Stream", Some((Dialect::BedrockConverse, "us.meta.l-4:0"))),
        ("/model/meta.l-4-v1:0/invoke", Some((Dialect::Unknown, "meta.l-4-v1:0"))),
        ("/model/eu.anthropic.c-5-v1:0/invoke", Some((Dialect::Anthropic, "eu.anthropic.c-5-v1:0"))),
        (
            "/model/anthropic.c-5-v1:0/invoke-with-response-stream",
            Some((Dialect::Anthropic, "anthropic.c-5-v1:0")),
        ),
        (
            "/model/arn%3Aaws%3Abedrock%3Aus%3A1%3Ainference-profile%2Fus.amazon.n/converse",
            Some((Dialect::BedrockConverse, "arn:aws:bedrock:us:1:inference-profile/us.amazon.n")),
        ),
        ("/model/amazon.nova-lite-v1:0/async", None),
        ("/v1/converse", None),
    ];
    for (path, expected) in rows {
        let expected = match expected {
            Some((dialect, model)) => (Speaks::Known(dialect), model),
            None if path.contains("deployments/d-1/") => (Speaks::Anything, "d-1"),
            None => (Speaks::Anything, ""),
        };
        let found = route(None, &Method::POST, path).unwrap();
        assert_eq!((found.speaks, found.model.as_str()), expected, "{path}");
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
        ("/v2/models/a%2Fb/generate", "a/b"),
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

/// The end alone could be behind any path that runs a model.
#[test]
fn control_is_known_below_known_prefixes_only() {
    for path in ["/v1/chat/completions/cancel", "/v1/%00/tokenize", "/x/tokenize", "/v1/x%2F..%2Fchat/cancel"]
    {
        assert_eq!(speaks(None, path), Some(Speaks::Anything), "{path}");
    }
    let below = |prefix, path| route_below(prefix, None, &Method::POST, path).map(|route| route.speaks);
    assert_eq!(below("/x", "/x/tokenize"), Err(Passthrough::Path));
    assert_eq!(below("/x", "/x/chat/completions"), Ok(Speaks::Known(Dialect::OpenaiChat)));
    assert_eq!(below("/x", "/x/y/tokenize"), Ok(Speaks::Anything));
    assert_eq!(below("", "/x/tokenize"), Ok(Speaks::Anything));
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
        assert_eq!(route(None, &Method::PUT, path), route(None, &Method::POST, path), "SGLang takes both");
    }
    for path in ["/rerank", "/v1/embeddings", "/v1/score"] {
        assert_eq!(route(None, &Method::PUT, path), Err(Passthrough::Method), "{path}");
    }
}
