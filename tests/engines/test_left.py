"""Random traffic of which three in ten leave at a random moment, with `continuous` and the engine's kind known:
nothing is counted that the engine did not make, and what is missing is what it made after its last frame.

Each exchange is a tenant, so that its row is found by its name and compared with what the tap saw.
"""
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import answer
import asked
import call
import cases
from case import Case
from exposition import Difference
from meter import Meter
from process import eventually
from tap import CASE
from test_bill import bookkeeping
from test_mixed import AT_ONCE, drawn

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp", "vllm")]   # the others have no running counts
REQUESTS, LEAVING = 120, 0.3
ROWS = "tokenmeter_ledger_rows_total"
INPUT = ("input", "input_cached", "input_cache_write", "input_audio")
OUTPUT = ("output", "output_reasoning", "output_audio")


class Rows:
    """tokenmeter with a ledger in which each exchange has a tenant of its own."""

    def __init__(self, rig, folder):
        self.ledger, options = bookkeeping(folder, CASE)
        self.meter = Meter(rig.tap.address, folder, rig.engine.kind, "--usage", asked.CONTINUOUS, *options)

    def read(self, count):
        """name -> (input tokens, its provenance, output tokens) of this number of exchanges."""
        assert eventually(lambda: self.meter.samples().sum(ROWS) >= count), "the ledger has not acknowledged them"
        columns = f"tenant, {' + '.join(INPUT)}, input_provenance, {' + '.join(OUTPUT)}"
        with sqlite3.connect(self.ledger) as database:
            return {name: facts for name, *facts in database.execute(f"SELECT {columns} FROM exchange")}


def leave(address, case, name, after):
    """Close after this number of events; before the head if that is 0. Returns the events so far."""
    with call.Call(address, case, name) as leaving:
        if case.streamed and after:
            leaving.read_until(lambda received: received.count(b"data: ") >= after)
        else:
            time.sleep(after / 100)
        response = leaving.response()
        return answer.events(response.body) if response and case.streamed else []


def counts(seen):
    """prompt -> (its tokens, completion tokens) by the engine's last count, before the first event of the tap's record and
    after each."""
    told = {}
    yield dict(told)
    for value in map(answer.payload, answer.events(seen.body)):
        value = value if isinstance(value, dict) else {}
        index = value["choices"][0]["index"] if value.get("choices") else 0
        if timings := value.get("timings"):
            told[index] = timings["prompt_n"] + timings["cache_n"], timings["predicted_n"]
        elif usage := value.get("usage"):
            told[index] = usage["prompt_tokens"], usage["completion_tokens"]
        yield dict(told)


def prompt_tokens(told):
    return sum(tokens for tokens, _ in told.values())


def is_piece(event):
    """True if an event has a part of the answer, and not only the role."""
    value = answer.payload(event)
    for part in value.get("choices", ()) if isinstance(value, dict) else ():
        delta = part.get("delta", part)
        if any(delta.get(name) for name in ("content", "reasoning_content", "reasoning", "text", "tool_calls")):
            return True
    return False


def plain(case):
    """The case as sent by a client that requests no usage."""
    return Case(case.name, case.path, fields={key: value for key, value in case.fields.items() if key != "stream_options"},
                indent=case.indent)


def long(draw):
    """A request to leave: some completions have several prompts, and some repeat them."""
    case = draw.long(streamed=draw.random.random() < 0.8)
    if case.path != cases.COMPLETIONS:
        return case
    return case.but(**draw.random.choice([{}, {"prompt": draw.prompt(several=True)}, {"echo": True}]))


def test_only_tokens_after_the_last_frame_are_missed(rig, tmp_path):
    draw = drawn(rig, "left")
    plans = []
    while len(plans) < REQUESTS:
        if draw.random.random() < LEAVING:
            plans.append((plain(long(draw)), draw.random.randint(0, 40)))
        else:
            plans.append((plain(draw.draw(1)), None))
    rows, names = Rows(rig, tmp_path), [rig.new_name(case) for case, _ in plans]

    def go(plan, name):
        case, after = plan
        return call.send(rows.meter.address, case, name) if after is None else leave(rows.meter.address, case, name, after)
    try:
        before = rig.engine.settled_counters()
        with ThreadPoolExecutor(min(AT_ONCE, rig.engine.slots)) as pool:
            got = list(pool.map(go, plans, names))
        assert eventually(lambda: rig.engine.at_work() == 0, every=rig.engine.ask_every)
        computed, cached, generated = rig.engine.moved(Difference(before, rig.engine.settled_counters()))
        seen = rig.tap.every_exchange()
        read = rows.read(sum(name in seen for name in names))
    finally:
        rows.meter.stop()
    untold, held, longest, several = 0, 0, 0, 0
    for (case, after), name, events in zip(plans, names, got):
        if name not in read:
            assert after is not None and name not in seen, name   # it left before the request arrived here
            continue
        inputs, provenance, outputs = read[name]
        if after is None:
            assert provenance == "reported", (name, read[name])
            continue
        if name not in seen:   # it left before the server had it whole
            assert (inputs, outputs) == (0, 0), (name, read[name])
            continue
        frames = list(counts(seen[name][1])) if case.streamed and seen[name][1] else [{}]
        told, made = frames[-1], sum(tokens for _, tokens in frames[-1].values())
        # tokenmeter has read what the client got; the frames after that may have been on their way
        known = next((frame for frame in frames[len(events):] if prompt_tokens(frame) == inputs), None)
        pieces = sum(map(is_piece, events)) - bool(case.fields.get("echo"))   # the first of them repeats the prompt
        assert pieces <= outputs, f"{name}: the client got {pieces} pieces, {outputs} tokens are counted"
        if pieces > 0:
            assert provenance == "running" and known is not None, (name, read[name], told)
            several += case.several_prompts
        if told:
            longest = max(longest, *(tokens for tokens, _ in told.values()))
            assert outputs <= made, (name, read[name], told)
            held += made - outputs
        untold += (len(case.fields["prompt"]) if case.several_prompts else 1) - (len(known or {}) if inputs else 0)
    left = sum(after is not None for _, after in plans)
    counted_in, counted_out = (sum(facts[at] for facts in read.values()) for at in (0, 2))
    print(f"{rig.engine.name}: {left} of {len(plans)} left; output {counted_out} of {generated}: {generated - counted_out} after the "
          f"last frame, {held} of them on their way; input {counted_in} of {computed + cached}; "
          f"{untold} prompts were not told of, {several} with several had begun")
    assert counted_out <= generated
    assert counted_in <= computed + cached
    assert computed + cached - counted_in <= untold * longest, "more than the prompts of which nothing was told"
