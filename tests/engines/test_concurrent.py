"""Many streams at once over kept connections: no stream gets bytes of another, and the sum is correct."""
from concurrent.futures import ThreadPoolExecutor

import httpx

import call
import cases
from exposition import Difference
from meter import EXCHANGES, TOKENS
from tap import CASE

STREAMS = 24
AT_ONCE = 6
SHORT_STREAMS = 300


def test_many_streams_at_once(rig):
    streams, at_end = int(STREAMS * rig.engine.batch), b"data: [DONE]\n\n" * rig.engine.done_marks
    asked = [cases.chat("many", cases.USAGE, {"seed": seed, "max_tokens": 20 + seed}) for seed in range(streams)]
    names = [rig.new_name(case) for case in asked]
    engine_before, meter_before = rig.engine.settled_counters(), rig.meter and rig.meter.samples()
    # Client connections are kept and reused; llama.cpp closes its own after a stream without announcing it.
    kept = httpx.Limits(max_keepalive_connections=AT_ONCE if rig.meter else 0)
    with httpx.Client(base_url="http://%s:%d" % rig.address, timeout=120, limits=kept) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        def ask(case, name):
            return client.post(case.path, content=case.body, headers={"Content-Type": "application/json", CASE: name})
        responses = list(pool.map(ask, asked, names))
    engine = Difference(engine_before, rig.engine.settled_counters())
    rig.engine.expect_requests(engine, streams)

    for case, name, response in zip(asked, names, responses):
        request, seen = rig.tap.exchanges(name)[-1]
        assert response.status_code == 200, response.text
        assert request.body == case.body
        assert response.content == seen.body
        assert response.content.endswith(at_end)
    if rig.meter:
        moved = rig.meter.moved(meter_before, streams)
        assert moved.of(EXCHANGES) == streams
        assert moved.of(TOKENS, type="output", provenance="reported") == engine.of(rig.engine.generated)


def test_every_new_connection_is_answered(rig):
    """A client with a new connection per request must not be affected by the proxy's kept upstream connections:
    llama.cpp closes each after a stream, unannounced, and a request sent on it at that moment is lost."""
    def ask(seed):
        return call.send(rig.address, cases.chat("short", cases.USAGE, {"seed": seed, "max_tokens": 4 + seed % 20}))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        responses = list(pool.map(ask, range(int(SHORT_STREAMS * rig.engine.batch))))
    assert [r.body for r in responses if r.status != 200] == []
    assert all(r.whole for r in responses)
