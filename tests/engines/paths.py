"""The requests for every path that generates or reads tokens on the servers with dialects of their own."""
from case import Case
from cases import ASK, CHAT, COMPLETIONS, STREAM, TOOL, USAGE, chat, completion

TEXTS = ["the people of", "Tell me about the world."]
SEED = {"options": {"seed": 7, "num_predict": 24}}
"""Ollama's own names of the fields."""
UNCOUNTED = "/api/embeddings"
"""Its answers have no counts."""


def shared():
    """Paths of both."""
    response = {"model": "tiny", "input": TEXTS[1], "max_output_tokens": 24, "temperature": 0}
    message = {"model": "tiny", "messages": ASK, "max_tokens": 24, "temperature": 0}
    for name, more in (("", {}), ("-stream", STREAM), ("-stream-usage", USAGE)):
        yield chat("chat" + name, more)
        yield chat("chat-n2" + name, more, {"n": 2})
        yield chat("chat-tools" + name, more, {"tools": [TOOL]})
        yield completion("completion" + name, more)
    for name, more in (("", {}), ("-stream", STREAM)):
        yield Case("responses" + name, "/v1/responses", fields=response | more)
        yield Case("messages" + name, "/v1/messages", fields=message | more)


def ollama():
    native = {"model": "tiny", **SEED}
    for name, more in (("", {"stream": False}), ("-stream", {}), ("-stream-said", STREAM)):
        yield Case("api-chat" + name, "/api/chat", fields=native | {"messages": ASK} | more)
        yield Case("api-chat-tools" + name, "/api/chat", fields=native | {"messages": ASK, "tools": [TOOL]} | more)
        yield Case("api-generate" + name, "/api/generate", fields=native | {"prompt": TEXTS[0]} | more)
    for path in "/api/embed", "/v1/embeddings":
        yield Case("embed", path, fields={"model": "tiny", "input": TEXTS[0]})
        yield Case("embed-several", path, fields={"model": "tiny", "input": TEXTS})
    yield Case("embed-uncounted", UNCOUNTED, fields={"model": "tiny", "prompt": TEXTS[0]})


def dynamo():
    running = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    yield completion("completion-running", running)
    for name, more in (("", {}), ("-stream", STREAM)):
        yield completion("completion-several" + name, more, {"prompt": TEXTS})
        yield completion("completion-n2" + name, more, {"n": 2})
        yield completion("completion-ids" + name, more, {"prompt": [5, 6, 7, 300]})
        yield chat("chat-logprobs" + name, more, {"logprobs": True, "top_logprobs": 2})


def every(engine):
    """All cases of an engine; each is named by its path, too."""
    own = {"ollama": ollama, "dynamo": dynamo}[engine]
    return [Case(case.name + case.path.replace("/", "-"), case.path, fields=case.fields) for case in (*shared(), *own())]


def long(random, engine):
    """A stream with more work than any test waits for."""
    tokens = {"ollama": 2000, "dynamo": 4000}[engine]
    if random.random() < 0.5:
        return Case("long", COMPLETIONS, fields={"model": "tiny", "prompt": TEXTS[0], "max_tokens": tokens, **STREAM})
    return Case("long", CHAT, fields={"model": "tiny", "messages": ASK, "max_tokens": tokens, **STREAM})
