"""The client leaves: the engine stops working for it, and the exchange has the correct ending."""
import contextlib

import pytest

import answer
import cases
from call import Call, Curl
from exposition import Difference
from meter import EXCHANGES, TOKENS
from process import eventually

EVENTS = 20
"""Events that a client has received before it leaves."""
LEFT_ALONE_SECONDS = 300
"""Seconds for which an engine may continue work without a client, if it does not stop."""
clients = pytest.mark.parametrize("client", [Call, Curl], ids=["socket", "curl"])


class Watch:
    """The counters before an event, and their expected changes after it."""

    def __init__(self, rig, busy=0):
        self.rig, self.busy = rig, busy
        if not busy:
            rig.engine.settled_counters()
        self.engine, self.meter = rig.engine.counters(), rig.meter and rig.meter.samples()

    def wait_for_work(self):
        assert eventually(lambda: self.rig.engine.at_work() > self.busy)

    def expect_upstream_left(self, name):
        """tokenmeter closes the upstream connection when the client has left, before the end of the answer."""
        assert eventually(lambda: self.rig.tap.left(name))
        _, seen = self.rig.tap.exchanges(name)[-1]
        assert not (seen and seen.whole)

    def expect_engine_free(self, case):
        """Within the engine's own polling delay, no request of the test runs or waits."""
        engine = self.rig.engine
        seconds = engine.abort_seconds if engine.stops(case) else LEFT_ALONE_SECONDS
        free = eventually(lambda: engine.at_work() <= self.busy and engine.queued() == 0, seconds, engine.ask_every)
        assert free, f"{engine.at_work()} requests still run, {engine.queued()} wait"

    def expect_stopped_short(self, case):
        """The request ended because it was cancelled, not because it had finished."""
        moved = Difference(self.engine, self.rig.engine.settled_counters())
        if self.rig.engine.stops(case):
            assert moved.of(self.rig.engine.generated) < cases.SLOW[self.rig.engine.name]["max_tokens"]
        return moved.of(self.rig.engine.generated)

    def expect_client_abort(self):
        """The difference in tokenmeter's metrics, or None without it."""
        if self.rig.meter is None:
            return None
        moved = self.rig.meter.moved(self.meter)
        assert moved.by(EXCHANGES, "ending") == {"client_abort": 1}
        assert moved.after.sum("tokenmeter_exchanges_in_flight") == 0
        assert moved.of(TOKENS, provenance="reported") == 0
        return moved


def some_events(received):
    return received.count(b"data: ") >= EVENTS


@clients
def test_client_leaves_during_a_stream(rig, client):
    case = cases.slow(rig.engine.name, cases.STREAM)
    name = rig.new_name(case)
    watch = Watch(rig)
    with client(rig.address, case, name) as leaving:
        leaving.read_until(some_events)
    watch.expect_upstream_left(name)
    watch.expect_engine_free(case)
    generated = watch.expect_stopped_short(case)
    moved = watch.expect_client_abort()
    seen = rig.tap.exchanges(name)[-1][1]
    assert not seen.whole
    events = len(answer.events(seen.body))
    assert events >= EVENTS
    if moved:
        assert EVENTS - 1 <= moved.of(TOKENS, type="output") <= (generated if rig.engine.counts_left else events)


@clients
def test_client_leaves_before_the_first_byte(rig, client):
    case = cases.slow(rig.engine.name)
    name = rig.new_name(case)
    watch = Watch(rig)
    with client(rig.address, case, name) as leaving:
        watch.wait_for_work()
        if client is Call:
            assert leaving.stays_silent(0.05)
    watch.expect_upstream_left(name)
    watch.expect_engine_free(case)
    watch.expect_stopped_short(case)
    moved = watch.expect_client_abort()
    if moved:
        assert moved.of("tokenmeter_no_first_token_total") == 1


@pytest.mark.engine("llamacpp", "vllm")                   # LiteLLM stops nothing, transformers shows no queue
def test_client_leaves_in_the_engines_queue(rig):
    case = cases.slow(rig.engine.name, cases.STREAM)
    name, engine = rig.new_name(case), rig.engine
    with contextlib.ExitStack() as load:
        for _ in range(engine.slots):
            load.enter_context(Call(engine.address, case))
        assert eventually(lambda: engine.at_work() == engine.slots)
        watch = Watch(rig, busy=engine.slots)
        with Call(rig.address, case, name):
            assert eventually(lambda: engine.queued() == 1)
        watch.expect_upstream_left(name)
        if engine.drops_waiting_under_load:
            watch.expect_engine_free(case)
            assert engine.at_work() == engine.slots, "a place came free before the client had left: nothing was tested"
        moved = watch.expect_client_abort()
        if moved:
            assert moved.of("tokenmeter_no_first_token_total") == 1
    watch.busy = 0
    watch.expect_engine_free(case)
