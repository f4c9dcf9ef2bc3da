"""A plain HTTP client gets the same bytes through tokenmeter and directly: head and body, in every content coding that the
provider sends, whether tokenmeter can read it or not.
"""
import http.client
import json

import pytest

import anthropic_fake
import azure_fake
import gemini_fake
import openai_fake
import openrouter_fake
import words
from rig import tokens

CONTENTS = [{"parts": [{"text": "q"}], "role": "user"}]
CHAT = {"messages": [{"role": "user", "content": "q"}]}
GENERATE = f"/v1beta/models/{gemini_fake.MODEL}:"
BODIES = {
    "openai-chat": ("openai", "/v1/chat/completions", CHAT | {"model": openai_fake.MODEL}),
    # Usage is requested in its name, and what that brings is removed again.
    "openai-stream": ("openai", "/v1/chat/completions", CHAT | {"model": openai_fake.MODEL, "stream": True}),
    "azure-stream": ("azure_openai", f"/openai/deployments/{azure_fake.DEPLOYMENT}/chat/completions?api-version={azure_fake.NEW}",
                     CHAT | {"stream": True}),
    "openai-counted": ("openai", "/v1/chat/completions", CHAT | {"model": openai_fake.MODEL, "stream": True,
                                                               "stream_options": {"include_usage": True}}),
    "openai-response": ("openai", "/v1/responses", {"model": openai_fake.MODEL, "input": "q", "stream": True}),
    "azure-counted": ("azure_openai", f"/openai/deployments/{azure_fake.DEPLOYMENT}/chat/completions?api-version={azure_fake.NEW}",
                      CHAT | {"stream": True, "stream_options": {"include_usage": True}}),
    "openrouter-stream": ("openrouter", "/api/v1/chat/completions", CHAT | {"model": openrouter_fake.MODEL, "stream": True}),
    "anthropic-message": ("anthropic", "/v1/messages", CHAT | {"model": anthropic_fake.MODEL, "max_tokens": 9}),
    "anthropic-stream": ("anthropic", "/v1/messages", CHAT | {"model": anthropic_fake.MODEL, "max_tokens": 9, "stream": True}),
    "gemini-generate": ("gemini", GENERATE + "generateContent", {"contents": CONTENTS}),
    "gemini-events": ("gemini", GENERATE + "streamGenerateContent?alt=sse&key=none", {"contents": CONTENTS}),
    "gemini-array": ("gemini", GENERATE + "streamGenerateContent", {"contents": CONTENTS}),
}
CODINGS = ["identity", "gzip", "br", "zstd", "gzip, deflate, br, zstd"]
BY_TIME = ("date", "-reset")
"""Fields whose values are times have one of these in their name."""


def send(url, path, body, coding):
    """(status, head, body) as received; the fake's ids begin anew, so that two answers are equal."""
    words.restart()
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none", "Accept-Encoding": coding}
    connection.request("POST", path, json.dumps(body).encode(), headers)
    answer = connection.getresponse()
    head = [(name.lower(), value) for name, value in answer.getheaders()]
    return answer.status, head, answer.read()


def steady(head):
    return [(name, None if any(part in name for part in BY_TIME) else value) for name, value in head]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(("place", "path", "body"), [pytest.param(*case, id=name) for name, case in BODIES.items()],
                         indirect=["place"])
def test_same_bytes(place, path, body, coding):
    direct = send(place.fake.url, path, body, coding)
    through = send(place.proxy.url, path, body, coding)
    assert through[0] == direct[0] == 200
    assert steady(through[1]) == steady(direct[1])
    assert through[2] == direct[2]
    row = place.proxy.row()
    assert tokens(row) and row["ending"] == "complete"
    assert (row["input_provenance"], row["output_provenance"]) == ("reported", "reported")

