"""A server that sends usage to everyone (`--enable-force-include-usage`): seen from its first stream,
which then goes to the client whole; after that it is asked for nothing more.

Runs last, on an engine started anew: what an engine does is remembered for ten minutes.
"""
import pytest

import answer
import asked
import cases
from meter import TOKENS

pytestmark = [pytest.mark.metered, pytest.mark.engine("vllm")]
STEPS = "tokenmeter_usage_steps_total"


@pytest.fixture(scope="module")
def forced(rig):
    """The engine with that option, behind a tokenmeter with an empty profile of it."""
    rig.engine.process.stop()
    rig.engine.start("--enable-force-include-usage")
    rig.tap.target = rig.engine.address
    rig.forget_meters()
    first = cases.chat("forced-first", cases.STREAM)
    rig.run(first)
    return rig, first


def expect_untouched(run):
    assert run.response.status == 200 and run.response.whole
    assert run.response.body == run.response_seen.body
    direct, through = answer.read(run.direct), answer.read(run.response)
    assert (through.choices, through.usage[-1:]) == (direct.choices, direct.usage[-1:])
    assert through.usage


def test_first_stream_stays_whole_after_injection(forced):
    rig, first = forced
    run = rig.run(first)
    rig.expect_request(first, run.request_seen, {asked.AT_END})
    expect_untouched(run)


@pytest.mark.parametrize("case", [
    cases.chat("forced-chat", cases.STREAM), cases.chat("forced-n3", cases.STREAM, {"n": 3}),
    cases.chat("forced-false", {"stream": True, "stream_options": {"include_usage": False}}),
    cases.completion("forced-completion", cases.STREAM), cases.completion("forced-max-1", cases.STREAM, {"max_tokens": 1}),
], ids=lambda case: case.name)
def test_later_streams_get_no_option_and_stay_whole(forced, case):
    rig, _ = forced
    run = rig.run(case)
    rig.expect_request(case, run.request_seen, set())
    expect_untouched(run)
    assert run.meter.by(STEPS, "step") == {"sent_unasked": 1}
    assert run.meter.by(TOKENS, "provenance", type="output") == {"reported": run.engine.of(rig.engine.generated)}
