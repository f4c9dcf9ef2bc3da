"""With a configured kind, tokenmeter requests only the usage that the engine supports and does not send by itself."""
import pytest

import asked
import cases
from meter import TOKENS

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp", "vllm")]   # the others have no kind
policies = pytest.mark.parametrize("policy", [asked.INJECT, asked.CONTINUOUS])
STEPS = "tokenmeter_usage_steps_total"
SOME = ("chat-stream", "chat-stream-usage", "completion-stream", "completion-stream-usage", "chat-stream-n2-no-usage")
STEP = {frozenset(): "client_asked", frozenset({asked.AT_END}): "injected"}


def CASES(engine):
    return [case for case in cases.answered(engine) if case.name in SOME]


@policies
def test_options_follow_the_kind(rig, case, policy):
    run = rig.run(case, policy, rig.engine.kind)
    rig.expect_request(case, run.request_seen, run.added)
    assert run.response.body == rig.for_client(run.response_seen, run.added)
    says_anyway = rig.engine.kind == "llama_cpp" and case.path == cases.COMPLETIONS and policy == asked.INJECT
    step = "sent_unasked" if says_anyway else STEP.get(frozenset(run.added), "continuous")
    assert run.meter.by(STEPS, "step") == {step: 1}
    assert run.meter.by(TOKENS, "provenance", type="output") == {"reported": run.engine.of(rig.engine.generated)}
