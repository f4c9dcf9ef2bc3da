"""Every path of Ollama and of Dynamo, streamed or not, with choices and tools: bytes, counts, clients that leave."""
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import answer
import asked
import call
import paths
from engine import Disaggregated
from exposition import Difference
from meter import EXCHANGES, TOKENS, UNREAD, Meter
from process import eventually
from test_mixed import INPUT, OUTPUT, SEED, Batch, tokens

pytestmark = [pytest.mark.metered, pytest.mark.engine("ollama", "dynamo")]
CASES = paths.every
MANY, LEAVING = 60, 16
OF_RUN = re.compile(rb'"(id|item_id|created|created_at|completed_at|\w+_duration|call_id)":("[^"]*"|[\d.]+)')
"""Members whose values differ between two answers to one request."""


def shapes(body):
    """The members of the frames in a body with their types, once each: tokens may share a frame."""
    lines = (line.removeprefix(b"data: ") for line in body.split(b"\n"))
    return {str({name: type(of).__name__ for name, of in json.loads(line).items()}) for line in lines if line.startswith(b"{")}


def counts(moved):
    """(prompt tokens, generated tokens) on tokenmeter's page, all of them reported by the server."""
    counted = [tokens(moved, types) for types in (INPUT, OUTPUT)]
    assert all(set(part) <= {"reported"} for part in counted), counted
    return tuple(sum(part.values()) for part in counted)


def test_client_gets_the_servers_bytes(rig, case):
    run = rig.run(case)
    assert run.response.status == run.direct.status == 200, run.response.body
    rig.expect_request(case, run.request_seen, run.added)
    assert run.response.body == rig.for_client(run.response_seen, run.added)
    assert run.response.end_to_end() == run.response_seen.end_to_end()


def test_client_gets_the_direct_answer(rig, case):
    """With Ollama to the byte; the mocker's words are random, and the members are those."""
    run = rig.run(case)
    through, direct = run.response.body, run.direct.body
    if rig.engine.name == "ollama":
        assert OF_RUN.sub(rb'"\1":0', through) == OF_RUN.sub(rb'"\1":0', direct)
    elif run.added:
        assert shapes(through) == shapes(direct)


def test_counts_are_the_servers(rig, case):
    run = rig.run(case)
    computed, cached, generated = rig.engine.moved(run.engine)
    assert counts(run.meter) == (computed + cached, generated)
    assert generated > 0 or "embed" in case.name
    assert computed + cached > 0 or case.path == paths.UNCOUNTED
    ending = run.meter.by(EXCHANGES, "ending")
    assert sum(ending.values()) == 1 and set(ending) <= {"complete", "length"}, ending
    assert [run.meter.by(*unread) for unread in UNREAD] == [{}] * len(UNREAD)


def test_sum_of_many_is_the_servers(rig):
    draw = random.Random(f"{SEED} {rig.engine.name} paths")
    batch = Batch(rig, asked.INJECT, draw.choices(paths.every(rig.engine.name), k=MANY))
    exchanges = rig.tap.every_exchange()
    for case, name, response in zip(batch.cases, batch.names, batch.responses):
        seen = exchanges[name][1]
        assert response.status == 200 and response.whole and seen.whole, (case, response.body)
        assert response.body == rig.for_client(seen, rig.added(case))
    computed, cached, generated = rig.engine.moved(batch.engine)
    assert counts(batch.meter) == (computed + cached, generated)
    assert batch.meter.of(EXCHANGES) == MANY


def test_clients_that_leave_are_counted_by_what_they_got(rig):
    draw = random.Random(f"{SEED} {rig.engine.name} leaving")
    plans = [(paths.long(draw, rig.engine.name), draw.randint(1, 40)) for _ in range(LEAVING)]
    engine, meter = rig.engine.settled_counters(), rig.meter.samples()

    def leave(plan):
        case, after = plan
        with call.Call(rig.address, case, rig.new_name(case)) as leaving:
            leaving.read_until(lambda received: received.count(b"data: ") > after)
            return leaving.response().body
    with ThreadPoolExecutor(rig.engine.slots) as pool:
        pieces = sum(len(answer.events(body)) for body in pool.map(leave, plans))
    moved = rig.meter.moved(meter, LEAVING)
    assert moved.by(EXCHANGES, "ending") == {"client_abort": LEAVING}
    counted = tokens(moved, OUTPUT)
    assert "reported" not in counted
    assert eventually(lambda: rig.engine.at_work() == 0)
    generated = Difference(engine, rig.engine.settled_counters()).of(rig.engine.generated)
    print(f"{rig.engine.name}: {sum(counted.values())} counted, {pieces} events received, {generated} generated")
    # an event may have no text yet, or a part of one token
    assert pieces - 2 * LEAVING <= sum(counted.values())
    if rig.engine.counts_left:
        assert sum(counted.values()) <= generated < 4000 * LEAVING / 2, "the server stops"


@pytest.mark.engine("dynamo")
def test_disaggregated_workers_are_one_exchange(rig, tmp_path):
    """The front end sends a request to both workers itself: its client's answer has the counts once, and no leg."""
    engine = Disaggregated(tmp_path)
    try:
        before = engine.settled_counters()
        every = paths.every(engine.name)
        with Meter(engine.address, tmp_path, engine.kind) as meter:
            samples = meter.samples()
            responses = [call.send(meter.address, case) for case in every]
            moved = meter.moved(samples, len(every))
        computed, cached, generated = engine.moved(Difference(before, engine.settled_counters()))
        assert [response.status for response in responses] == [200] * len(every)
        assert counts(moved) == (computed + cached, generated)
        assert moved.of(EXCHANGES) == len(every) and moved.of("tokenmeter_leg_exchanges_total") == 0
    finally:
        engine.stop()
