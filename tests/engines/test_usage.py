"""Usage asked for in the client's name: the engine gets the question and nothing else that is new,
the client gets the answer without what the question brought, and every token is accounted for."""
import pytest

import answer
import asked
import cases
from meter import EXCHANGES, TOKENS

CASES = cases.usage
pytestmark = pytest.mark.metered
policies = pytest.mark.parametrize("policy", [asked.INJECT, asked.CONTINUOUS])
LOST = {
    # moved by the engine from the last event of the answer to the usage event, and gone with that
    ("vllm", cases.CHAT): {"!system_fingerprint"},
    ("vllm", cases.COMPLETIONS): {"!system_fingerprint"},
    ("llamacpp", cases.CHAT): {"!timings"},
    ("llamacpp", cases.COMPLETIONS): set(),
    ("litellm", cases.CHAT): set(),
    # the zeros that it puts on every event of a stream that was not asked for usage
    ("litellm", cases.COMPLETIONS): {"usage", "!usage"},
    ("transformers", cases.CHAT): set(),
    ("transformers", cases.COMPLETIONS): set(),
}
"""What the client of an unasked stream misses, by engine and path; all that is visible of us."""


@policies
def test_engine_gets_the_question_and_nothing_else(rig, case, policy):
    run = rig.run(case, policy)
    rig.expect_request(case, run.request_seen, run.added)


@policies
def test_client_gets_all_but_the_answer_to_it(rig, case, policy):
    run = rig.run(case, policy)
    assert run.response.status == run.response_seen.status == 200
    assert run.response.whole and run.response_seen.whole
    assert run.response.end_to_end() == run.response_seen.end_to_end()
    assert run.response.body == rig.for_client(run.response_seen, run.added)


@policies
def test_says_the_same_as_without_us(rig, case, policy):
    run = rig.run(case, policy)
    direct, through = answer.read(run.direct), answer.read(run.response)
    assert (through.choices, through.done, through.errors) == (direct.choices, direct.done, direct.errors)
    # running usages come with each event, and events differ from run to run
    assert bool(through.usage) == bool(direct.usage)
    assert through.usage[-1:] == direct.usage[-1:]


@policies
def test_only_what_is_known_to_be_lost_is_lost(rig, case, policy):
    run = rig.run(case, policy)
    direct, through = answer.names(run.direct.body), answer.names(run.response.body)
    lost = LOST[rig.engine.name, case.path] if asked.AT_END in run.added else set()
    assert (direct - through, through - direct) == (lost, set())


@policies
def test_every_token_is_reported(rig, case, policy):
    run = rig.run(case, policy)
    generated = run.engine.of(rig.engine.generated)
    assert sum(run.meter.by(EXCHANGES, "ending").values()) == 1 and generated > 0
    counted = run.meter.by(TOKENS, "provenance", type="output")
    if asked.AT_END in run.added or (case.fields.get("stream_options") or {}).get(asked.AT_END):
        assert counted == {"reported": generated}
    elif rig.engine.counts_running:
        assert "reported" not in counted
