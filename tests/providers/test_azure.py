"""Azure's own: versions of the API without the usage option, and deployments, which decide the model."""
import http.client
import json

import pytest

import azure_fake
import calls
from rig import Proxy, tokens
from seen import chat_tokens_of

pytestmark = pytest.mark.parametrize("place", ["azure_openai"], indirect=True)


def test_old_version_gets_the_original_request(place, tmp_path):
    direct = calls.azure_chat(place.fake.url, version=azure_fake.OLD, stream=True)
    wanted = place.fake.last()
    with Proxy(place.fake.url, tmp_path, "--kind", place.kind) as proxy:
        for attempts in (2, 1):                          # the second client's request is not edited any more
            assert calls.azure_chat(proxy.url, version=azure_fake.OLD, stream=True) == direct and direct.text
            assert place.fake.last().body == wanted.body
            row = proxy.row()
            assert (row["ending"], row["output_provenance"], row["upstream_attempts"]) == ("complete", "frames", attempts)


def test_deployment_decides_the_model(place):
    for body_model in ({}, {"model": "cheap"}):
        host = place.proxy.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=30)
        path = f"/openai/deployments/{azure_fake.DEPLOYMENT}/chat/completions?api-version={azure_fake.NEW}"
        connection.request("POST", path, json.dumps({"messages": [], **body_model}), {"Content-Type": "application/json"})
        assert connection.getresponse().read()
        row = place.proxy.row()
        assert row["model"] == azure_fake.DEPLOYMENT
        assert tokens(row) == chat_tokens_of(azure_fake)
