"""The official clients for Node.js."""
import json
import os
import pathlib
import subprocess

import pytest

from rig import tokens
from seen import chat_tokens_of
from test_calls import added_to, expect_same_request

WHOLE = ["openai-chat", "openai-stream", "openai-stream-counted", "openai-response-stream", "anthropic-message",
         "anthropic-stream"]
SCRIPT = pathlib.Path(__file__).with_name("client.mjs")


def call(name, url):
    done = subprocess.run(["node", SCRIPT, name, url], capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def places(names):
    return [pytest.param(name.partition("-")[0], name, id=name) for name in names]


@pytest.mark.parametrize(("place", "name"), places(WHOLE), indirect=["place"])
def test_call(place, name):
    direct = call(name, place.fake.url)
    wanted = place.fake.last()
    through = call(name, place.proxy.url)
    assert through == direct and "error" not in direct
    expect_same_request(wanted, place.fake.last(), added_to(place.kind, wanted))
    row = place.proxy.row()
    assert tokens(row) == direct.get("tokens", chat_tokens_of(place.fake.provider) if place.kind == "openai" else None)
    assert (row["ending"], row["status"], row["output_provenance"]) == ("complete", 200, "reported")


@pytest.mark.parametrize(("place", "name"), places(["openai-chat-retried", "anthropic-message-retried"]),
                         indirect=["place"])
def test_each_attempt_is_one_exchange(place, name):
    place.fake.fail(429, 500)
    assert call(name, place.proxy.url)["text"]
    assert [row["status"] for row in place.proxy.rows(3)] == [429, 500, 200]


@pytest.mark.parametrize(("place", "name"), places(["openai-stream-left", "anthropic-stream-left"]),
                         indirect=["place"])
def test_client_that_leaves_stops_the_provider(place, name):
    place.fake.hold(7)
    assert "error" not in call(name, place.proxy.url)
    assert place.fake.left.wait(5), "the provider's stream is still open"
    assert place.proxy.row()["ending"] == "client_abort"
