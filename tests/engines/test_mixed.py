"""Hundreds of random requests at once: every byte is accounted for, and the sum of tokens is the engine's.

The requests are drawn from a seed, which is printed; TOKENMETER_SEED sets another.
"""
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import answer
import asked
import call
import mixture
from case import Case
from exposition import Difference
from meter import EXCHANGES, TOKENS
from process import eventually
from tap import HOLD

pytestmark = pytest.mark.metered
SEED = int(os.environ.get("TOKENMETER_SEED", 20261121))
AT_ONCE = 8
RUNS = {asked.INJECT: {1: 180, 2: 60, 3: 60}, asked.CONTINUOUS: {1: 90, 2: 40, 3: 30}}
"""Requests by policy and by the number of choices."""
ABORTS = 24
HELD = 12
policies = pytest.mark.parametrize("policy", RUNS)
INPUT, OUTPUT = ("input", "input_cached", "input_cache_write", "input_audio"), ("output", "output_reasoning")


def drawn(rig, *what):
    print(f"TOKENMETER_SEED={SEED}")
    return mixture.Mixture(rig.engine, random.Random(f"{SEED} {rig.engine.name} {what}"))


class Batch:
    """Cases sent through tokenmeter together, and the growth of the counters."""

    def __init__(self, rig, policy, drawn_cases, at_once=AT_ONCE):
        self.rig, self.policy, self.cases = rig, policy, drawn_cases
        self.names = [rig.new_name(case) for case in drawn_cases]
        meter, address = rig.meter_of(policy), rig.address_of(policy)
        engine_before, meter_before = rig.engine.settled_counters(), meter.samples()
        with ThreadPoolExecutor(at_once) as pool:
            self.responses = list(pool.map(lambda case, name: call.send(address, case, name), drawn_cases, self.names))
        self.engine = Difference(engine_before, rig.engine.settled_counters())
        self.meter = meter.moved(meter_before, len(drawn_cases))

    def expect_every_byte(self):
        exchanges = self.rig.tap.every_exchange()
        for case, name, response in zip(self.cases, self.names, self.responses):
            request, seen = exchanges[name]
            added = self.rig.added(case, self.policy)
            assert response.status == 200, (case, response.body)
            self.rig.expect_request(case, request, added)
            assert response.whole and seen.whole
            assert response.body == self.rig.for_client(seen, added)
            if response.header("content-type").startswith("text/event-stream"):
                assert b'"error":' not in response.body, (case, response.body)
        self.rig.engine.expect_requests(self.engine, len(self.cases))
        assert self.meter.of(EXCHANGES) == len(self.cases)
        assert set(self.meter.by(EXCHANGES, "ending")) <= {"complete", "length", "no_output"}


def tokens(difference, types):
    """provenance -> tokens of these types."""
    parts = [difference.by(TOKENS, "provenance", type=kind) for kind in types]
    return {p: sum(part.get(p, 0) for part in parts) for p in set().union(*parts)}


# LiteLLM's streams lose the counts of all choices but one, and transformers has no choices
several = pytest.mark.engine("llamacpp", "vllm")


@policies
@pytest.mark.parametrize("choices", [1, pytest.param(2, marks=several), pytest.param(3, marks=several)])
def test_sum_equals_the_engines_exactly(rig, policy, choices):
    count = int(RUNS[policy][choices] * rig.engine.batch)
    batch = Batch(rig, policy, drawn(rig, policy, choices).cases(count, choices))
    batch.expect_every_byte()
    computed, cached, generated = rig.engine.moved(batch.engine)
    assert tokens(batch.meter, OUTPUT) == {"reported": generated}
    times = choices if rig.engine.counts_prompt_per_choice else 1
    assert set(tokens(batch.meter, INPUT)) == {"reported"}
    assert sum(tokens(batch.meter, INPUT).values()) * times == computed + cached


@pytest.mark.engine("llamacpp", "litellm")
def test_usage_of_one_choice_counts_nothing(rig):
    draw = drawn(rig, "uncovered")
    batch = Batch(rig, asked.INJECT, [draw.uncovered() for _ in range(int(20 * rig.engine.batch))])
    batch.expect_every_byte()
    assert not any(tokens(batch.meter, INPUT + OUTPUT).values())
    assert batch.engine.of(rig.engine.generated) > 0


@pytest.mark.engine("vllm")
def test_beams_are_never_reported(rig):
    """vLLM's counter includes the beams, its usage only the answers: the usage is used, and not marked as reported."""
    draw = drawn(rig, "beams")
    batch = Batch(rig, asked.INJECT, [draw.beams() for _ in range(8)])
    batch.expect_every_byte()
    said = sum(answer.read(response).usage[0][1] for response in batch.responses)
    assert tokens(batch.meter, OUTPUT) == {"running": said}
    assert said != batch.engine.of(rig.engine.generated), "the counter agrees now: these belong among the exact ones"


@policies
# transformers counts no request whose client left; behind LiteLLM, llama.cpp counts only some of them
@pytest.mark.engine("llamacpp", "vllm")
def test_aborted_request_is_never_reported(rig, policy):
    aborts = int(ABORTS * rig.engine.batch)
    draw = drawn(rig, "aborts", policy)
    engine_before, meter = rig.engine.settled_counters(), rig.meter_of(policy)
    before = meter.samples()

    def leave(case, after):
        with call.Call(rig.address_of(policy), case, rig.new_name(case)) as leaving:
            if case.streamed:
                leaving.read_until(lambda received: received.count(b"data: ") >= after)
            else:
                time.sleep(after / 100)                   # any moment before the answer will do
    plans = [(draw.long(streamed=draw.random.random() < 0.75), draw.random.randint(1, 40)) for _ in range(aborts)]
    with ThreadPoolExecutor(rig.engine.slots) as pool:
        list(pool.map(lambda plan: leave(*plan), plans))
    moved = meter.moved(before, aborts)
    engine = Difference(engine_before, rig.engine.settled_counters())
    assert moved.by(EXCHANGES, "ending") == {"client_abort": aborts}
    counted = tokens(moved, OUTPUT)
    assert "reported" not in counted
    assert 0 < sum(counted.values()) <= engine.of(rig.engine.generated)


@pytest.mark.engine("vllm")
def test_aborted_request_has_the_engines_last_count(rig):
    draw = drawn(rig, "held")
    meter = rig.meter_of(asked.CONTINUOUS)
    for _ in range(HELD):
        after, n = draw.random.randint(1, 40), draw.random.randint(1, 3)
        long = draw.long(streamed=True)
        fields = long.fields | {"n": n}
        fields.pop("stream_options", None)
        case = Case(long.name, long.path, fields=fields, headers=((HOLD, str(after)),))
        name, before = rig.new_name(case), meter.samples()
        with call.Call(meter.address, case, name) as leaving:
            leaving.read_until(lambda received: len(answer.events(leaving.response().body)) >= after if leaving.response() else False)
        moved = meter.moved(before)
        _, seen = rig.tap.exchanges(name)[-1]
        said = last_said(seen)
        assert len(answer.events(seen.body)) == after
        assert moved.by(EXCHANGES, "ending") == {"client_abort": 1}
        assert tokens(moved, OUTPUT) == ({"running": sum(output for _, output in said)} if any(o for _, o in said) else {})
        assert tokens(moved, INPUT) == {"running": said[0][0]}
    assert eventually(lambda: rig.engine.at_work() == 0)


def last_said(seen):
    """The last (prompt tokens, completion tokens) of each choice."""
    last = {}
    for value in filter(lambda value: isinstance(value, dict), map(answer.payload, answer.events(seen.body))):
        last[value["choices"][0]["index"]] = value["usage"]["prompt_tokens"], value["usage"]["completion_tokens"]
    return list(last.values())


def test_endpoints_of_other_dialects_are_unchanged(rig):
    draw = drawn(rig, "others")
    batch = Batch(rig, asked.INJECT, [draw.other(1) for _ in range(16)])
    exchanges = rig.tap.every_exchange()
    for case, name, response in zip(batch.cases, batch.names, batch.responses):
        request, seen = exchanges[name]
        assert response.status == 200, (case, response.body)
        rig.expect_request(case, request, set())
        assert response.whole and response.body == seen.body
