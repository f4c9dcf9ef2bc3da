"""Errors, retries of the clients, and clients that leave: each attempt is one exchange with the status and the ending that
the client saw.
"""
from functools import partial

import pytest

import calls
from conftest import on_all
from rig import tokens

CALLS = {
    "openai": calls.openai_chat, "azure_openai": calls.azure_chat, "openrouter": calls.openrouter_chat,
    "anthropic": calls.anthropic_message, "gemini": calls.gemini,
}
REFUSED = {"openai": (400, 401, 429, 500, 503), "azure_openai": (400, 401, 404, 429), "openrouter": (401, 402, 429, 502),
           "anthropic": (400, 401, 429, 500, 529), "gemini": (400, 401, 403, 429, 500, 503)}
RETRYING = {
    "openai-chat": ("openai", partial(calls.openai_chat, retries=2), (429, 500)),
    "openai-stream": ("openai", partial(calls.openai_chat, retries=2, stream=True), (429, 503)),
    "openai-response": ("openai", partial(calls.openai_response, retries=2), (500, 429)),
    "anthropic-message": ("anthropic", partial(calls.anthropic_message, retries=2), (429, 529)),
    "anthropic-stream": ("anthropic", partial(calls.anthropic_message, retries=2, stream=True), (529, 429)),
}
HELD, READ = 7, 4
"""Pieces that the provider sends before it waits, and those that the client reads before it leaves."""


def statuses():
    return [pytest.param(kind, status, stream, id=f"{kind}-{status}{'-stream' * stream}")
            for kind, some in REFUSED.items() for status in some for stream in (False, True)]


@pytest.mark.parametrize(("place", "status", "stream"), statuses(), indirect=["place"])
def test_client_raises_the_same_error(place, status, stream):
    call = partial(CALLS[place.kind], stream=stream)
    place.direct.fail(status)
    direct = call(place.direct.url)
    # After a 400 to a request with an added usage option the original is sent once more.
    again = status == 400 and stream and place.kind in ("openai", "azure_openai")
    place.fake.fail(status, *[status] * again)
    through = call(place.proxy.url)
    assert through == direct and direct.error[0] == status
    row = place.proxy.row()
    assert (row["ending"], row["status"]) == ("error_status", status)
    assert not tokens(row) and row["upstream_attempts"] == 1 + again


def attempts():
    return [pytest.param(place, call, failed, id=f"{place}-{name}") for name, (kind, call, failed) in RETRYING.items()
            for place in on_all([kind])]


@pytest.mark.parametrize(("place", "call", "failed"), attempts(), indirect=["place"])
def test_each_attempt_of_a_client_is_one_exchange(place, call, failed):
    place.fake.fail(*failed)
    seen = call(place.proxy.url)
    assert seen.text and not seen.error
    rows = place.proxy.rows(len(failed) + 1)
    assert [row["status"] for row in rows] == [*failed, 200]
    assert [row["ending"] for row in rows] == [*["error_status"] * len(failed), "complete"]
    assert tokens(rows[-1]) and not any(map(tokens, rows[:-1]))
    # The client itself numbers its attempts.
    counted = [request.header("x-stainless-retry-count") for request in place.fake.requests[-len(rows):]]
    assert counted == [str(number) for number in range(len(rows))]


@pytest.mark.parametrize("place", on_all(CALLS), indirect=True)
def test_error_within_a_stream(place):
    call = partial(CALLS[place.kind], stream=True)
    place.direct.interrupt(HELD)
    direct = call(place.direct.url)
    place.fake.interrupt(HELD)
    through = call(place.proxy.url)
    assert through == direct and direct.error and direct.text + direct.thought
    row = place.proxy.row()
    assert (row["ending"], row["status"], bool(row["streamed"])) == ("error_in_band", 200, True)
    assert row["output_provenance"] != "reported"


@pytest.mark.parametrize("place", on_all(CALLS), indirect=True)
def test_client_that_leaves_stops_the_provider(place):
    place.fake.hold(HELD)
    seen = CALLS[place.kind](place.proxy.url, stream=True, leave_after=READ)
    assert place.fake.left.wait(5), "the provider's stream is still open"
    assert not seen.error
    row = place.proxy.row()
    assert (row["ending"], row["status"], bool(row["streamed"])) == ("client_abort", 200, True)
    assert row["output_provenance"] not in ("reported", "none")
    assert row["output"] + row["output_reasoning"] >= 1


@pytest.mark.parametrize("place", on_all(["openai"]), indirect=True)
def test_client_that_leaves_a_response(place):
    place.fake.hold(12)
    seen = calls.openai_response(place.proxy.url, stream=True, leave_after=9)
    assert place.fake.left.wait(5) and not seen.finish
    row = place.proxy.row()
    assert (row["ending"], row["dialect"], row["output_provenance"]) == ("client_abort", "openai_responses", "frames")


@pytest.mark.parametrize("place", on_all(["gemini"]), indirect=True)
def test_client_that_leaves_an_interaction(place):
    place.fake.hold(9)
    seen = calls.gemini_interaction(place.proxy.url, stream=True, leave_after=8)
    assert place.fake.left.wait(5) and not seen.finish
    row = place.proxy.row()
    assert (row["ending"], row["dialect"]) == ("client_abort", "gemini_interactions")
    assert row["output_provenance"] == "frames" and row["output_reasoning"]
