"""`--usage observe`: no usage is requested, and both bodies are unchanged."""
import pytest

import answer
import asked
import cases

pytestmark = pytest.mark.metered
STEPS = "tokenmeter_usage_steps_total"
SOME = ("chat", "chat-stream", "chat-stream-usage", "chat-stream-n2-no-usage", "completion-stream", "completion-stream-n2")


def CASES(engine):
    return [case for case in cases.answered(engine) if case.name in SOME]


def test_request_arrives_as_sent(rig, case):
    run = rig.run(case, asked.OBSERVE)
    assert run.added == set()
    rig.expect_request(case, run.request_seen, run.added)


def test_response_arrives_as_sent(rig, case):
    run = rig.run(case, asked.OBSERVE)
    assert run.response.whole
    assert run.response.end_to_end() == run.response_seen.end_to_end()
    assert run.response.body == run.response_seen.body
    assert answer.read(run.response) == answer.read(run.direct)


def test_is_counted_as_observed(rig, case):
    assert rig.run(case, asked.OBSERVE).meter.by(STEPS, "step") == {"observed": 1}
