"""The official clients see the same answer through tokenmeter and directly, the provider receives the same request, and
tokenmeter records what the client saw.
"""
from functools import partial

import asked
import pytest

import calls
import seen
from conftest import on_all
from rig import tokens

EDITED = {"accept-encoding", "content-length"}
"""Fields that differ where usage is requested for the client."""

CASES = {
    "openai": {
        "chat": calls.openai_chat,
        "chat-tools": partial(calls.openai_chat, tools=calls.TOOLS),
        "stream": partial(calls.openai_chat, stream=True),
        "stream-tools": partial(calls.openai_chat, stream=True, tools=calls.TOOLS),
        "stream-counted": partial(calls.openai_chat, stream=True, stream_options=calls.COUNTED),
        "response": calls.openai_response,
        "response-stream": partial(calls.openai_response, stream=True),
        "embedding": calls.openai_embedding,
    },
    "azure_openai": {
        "chat": calls.azure_chat,
        "stream": partial(calls.azure_chat, stream=True),
        "stream-counted": partial(calls.azure_chat, stream=True, stream_options=calls.COUNTED),
        "stream-tools": partial(calls.azure_chat, stream=True, tools=calls.TOOLS),
        "v1-chat": calls.azure_v1_chat,
        "v1-stream": partial(calls.azure_v1_chat, stream=True),
        "embedding": calls.azure_embedding,
    },
    "openrouter": {
        "chat": calls.openrouter_chat,
        "stream": partial(calls.openrouter_chat, stream=True),
        "stream-counted": partial(calls.openrouter_chat, stream=True, stream_options=calls.COUNTED),
    },
    "anthropic": {
        "message": calls.anthropic_message,
        "message-tools": partial(calls.anthropic_message, tools=calls.ANTHROPIC_TOOLS),
        "stream": partial(calls.anthropic_message, stream=True),
        "stream-tools": partial(calls.anthropic_message, stream=True, tools=calls.ANTHROPIC_TOOLS),
        "stream-collected": calls.anthropic_collected,
        "vertex": partial(calls.anthropic_message, vertex=True),
        "vertex-stream": partial(calls.anthropic_message, vertex=True, stream=True),
    },
    "gemini": {
        "generate": calls.gemini,
        "generate-tools": partial(calls.gemini, tools=calls.GEMINI_TOOLS),
        "stream": partial(calls.gemini, stream=True),
        "stream-tools": partial(calls.gemini, stream=True, tools=calls.GEMINI_TOOLS),
        "embedding": calls.gemini_embedding,
        "interaction": calls.gemini_interaction,
        "interaction-tools": partial(calls.gemini_interaction, tools=calls.INTERACTION_TOOLS),
        "interaction-stream": partial(calls.gemini_interaction, stream=True),
        "interaction-stream-tools": partial(calls.gemini_interaction, stream=True, tools=calls.INTERACTION_TOOLS),
    },
}
PROVIDER_NAMES = {"azure_openai": "azure.ai.openai", "gemini": "gcp.gemini"}
"""`gen_ai.provider.name` where it is not the kind."""
EDITING = {"openai", "azure_openai"}
"""The providers of which usage is requested."""


def every_case():
    return [pytest.param(place, call, id=f"{place}-{name}") for kind, some in CASES.items() for place in on_all([kind])
            for name, call in some.items()]


@pytest.mark.parametrize(("place", "call"), every_case(), indirect=["place"])
def test_call(place, call):
    direct = call(place.direct.url)
    wanted = place.direct.last()
    through = call(place.proxy.url)
    assert through == direct and not direct.error
    flags = added_to(place.kind, wanted)
    expect_same_request(wanted, place.fake.last(), flags)
    assert place.fake.last().version == place.version
    row = place.proxy.row()
    counted = direct.tokens or seen.chat_tokens_of(place.fake.provider)
    assert tokens(row) == counted
    assert (row["ending"], row["status"], row["upstream_attempts"]) == ("complete", 200, 1)
    assert row["provider"] == PROVIDER_NAMES.get(place.kind, place.kind)
    assert row["input_provenance"] == "reported" and row["output_provenance"] in ("reported", "none")
    assert row["model"] in (wanted.body + wanted.target.encode()).decode()
    assert row["response_model"] == (direct.model or row["response_model"])
    asks_stream = b'"stream":true' in wanted.body.replace(b" ", b"") or "stream" in wanted.path.lower()
    assert bool(row["streamed"]) == asks_stream


def added_to(kind, request):
    """The usage options that tokenmeter adds to a request."""
    if kind not in EDITING or not request.path.endswith("/chat/completions"):
        return set()
    fields = request.json
    counted = (fields.get("stream_options") or {}).get("include_usage")
    return {asked.AT_END} if fields.get("stream") and not counted else set()


def expect_same_request(wanted, got, flags):
    """Asserts that a request through tokenmeter is a direct one, but for the name of the host and an addition."""
    assert (got.method, got.target) == (wanted.method, wanted.target)
    asked.expect_request(wanted.body, got.body, flags)
    different = {"host", "connection"} | (EDITED if flags else set())

    def kept(request):
        return [(name, value) for name, value in request.headers if name not in different]
    assert kept(got) == kept(wanted)
    if flags:
        assert got.header("accept-encoding") == "identity"
        assert int(got.header("content-length")) == len(got.body)


@pytest.mark.parametrize("place", on_all(["gemini"]), indirect=True)
def test_fetched_interaction_is_not_counted_again(place):
    direct = calls.gemini_fetched_interaction(place.direct.url)
    assert direct and calls.gemini_fetched_interaction(place.proxy.url) == direct
    calls.gemini_interaction(place.proxy.url)
    assert place.proxy.row()["dialect"] == "gemini_interactions"
    assert place.proxy.samples().sum("tokenmeter_passthrough_total", reason="replay") >= 1
