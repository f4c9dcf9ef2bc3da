"""The engine is killed during streams: its clients see a cut, and tokenmeter continues."""
import json
from dataclasses import dataclass

import pytest

import answer
import call
import cases
from exposition import Difference
from meter import EXCHANGES, TOKENS
from process import eventually
from test_abort import some_events

BROKEN_OFF = {18: "partial file", 56: "connection reset"}
"""curl's error for a body without its end."""


@dataclass
class Cut:
    response: object
    response_seen: object
    curl: tuple
    curl_seen: object
    meter: Difference


@pytest.fixture(scope="module")
def cut(rig):
    """Two streams, one of them curl's; kill -9 the engine in the middle of both."""
    case = cases.slow(rig.engine.name, cases.USAGE)
    names = [rig.new_name(case) for _ in range(2)]
    before = rig.meter and rig.meter.samples()
    with call.Call(rig.address, case, names[0]) as reading, call.Curl(rig.address, case, names[1]) as curl:
        reading.read_until(some_events)
        if rig.engine.slots > 1:
            curl.read_until(some_events)
        else:                                             # it waits for the other, with the head of its answer
            assert eventually(lambda: rig.tap.exchanges(names[1]) and rig.tap.exchanges(names[1])[-1][1])
        rig.engine.process.kill()
        response, finished = reading.read_whole(), curl.finish()
    moved = rig.meter and rig.meter.moved(before, exchanges=2)
    seen, curl_seen = (rig.tap.exchanges(name)[-1][1] for name in names)
    return Cut(response, seen, finished, curl_seen, moved)


def test_client_sees_no_end(rig, cut):
    assert cut.response.status == 200
    assert not cut.response.whole
    assert b"[DONE]" not in cut.response.body


def test_client_gets_all_sent_bytes(rig, cut):
    assert not cut.response_seen.whole
    assert cut.response.body == cut.response_seen.body
    assert len(answer.events(cut.response.body)) >= 20


def test_curl_reports_the_cut(rig, cut):
    code, status, _, body = cut.curl
    assert code in BROKEN_OFF
    assert status == 200
    assert body == cut.curl_seen.body


@pytest.mark.metered
def test_ending_is_upstream_cut(rig, cut):
    assert cut.meter.by(EXCHANGES, "ending") == {"upstream_cut": 2}
    assert cut.meter.after.sum("tokenmeter_exchanges_in_flight") == 0
    assert cut.meter.of(TOKENS, type="output", provenance="reported") == 0
    assert cut.meter.of(TOKENS, type="output") > 0


@pytest.mark.metered
@pytest.mark.parametrize("case", [cases.chat("chat"), cases.chat("chat-stream", cases.STREAM)], ids=lambda case: case.name)
@pytest.mark.parametrize("way", ["hangs-up", "refuses"])
def test_answers_502_while_the_engine_is_down(rig, cut, way, case):
    """The tap hangs up at once, without an engine; closed, it refuses connections as a dead engine's port does."""
    if way == "refuses":
        rig.tap.close()
    try:
        response = call.send(rig.address, case)
    finally:
        if way == "refuses":
            rig.tap.open()
    assert response.status == 502 and response.whole
    assert response.header("content-type").startswith("application/json")
    error = json.loads(response.body)["error"]
    assert isinstance(error["message"], str) and error["message"]
    assert isinstance(error["type"], str) and error["type"]


@pytest.mark.metered
def test_tokenmeter_continues(rig, cut):
    assert rig.meter.process.alive()
    assert rig.meter.answers("/livez")
    assert rig.meter.samples().has("tokenmeter_build_info")


@pytest.mark.engine("llamacpp")                           # vLLM's start takes minutes
def test_serves_again_after_the_engines_restart(rig, cut):
    rig.engine.start()
    rig.tap.target = rig.engine.address
    run = rig.through(cases.chat("chat-back", cases.USAGE))
    assert run.response.status == 200 and run.response.whole
    assert run.response.body == run.response_seen.body
