"""Injected usage: the engine gets the option and no other change, the client gets the answer without the option's
effects, and every token is counted."""
import pytest

import answer
import asked
import cases
from meter import EXCHANGES, TOKENS

CASES = cases.usage
pytestmark = pytest.mark.metered
policies = pytest.mark.parametrize("policy", [asked.INJECT, asked.CONTINUOUS])
LOST = {
    # the engine moves it from the last event of the answer to the usage event, with which it is removed
    ("vllm", cases.CHAT): {"!system_fingerprint"},
    ("vllm", cases.COMPLETIONS): {"!system_fingerprint"},
    ("llamacpp", cases.CHAT): {"!timings"},
    ("llamacpp", cases.COMPLETIONS): set(),
    ("litellm", cases.CHAT): set(),
    # the zeros in every event of a stream without requested usage
    ("litellm", cases.COMPLETIONS): {"usage", "!usage"},
    ("transformers", cases.CHAT): set(),
    ("transformers", cases.COMPLETIONS): set(),
}
"""The fields that the client of an edited stream lacks, by engine and path; the only visible effect of tokenmeter."""


@policies
def test_engine_gets_the_option_and_nothing_else(rig, case, policy):
    run = rig.run(case, policy)
    rig.expect_request(case, run.request_seen, run.added)


@policies
def test_client_gets_all_but_the_options_effects(rig, case, policy):
    run = rig.run(case, policy)
    assert run.response.status == run.response_seen.status == 200
    assert run.response.whole and run.response_seen.whole
    assert run.response.end_to_end() == run.response_seen.end_to_end()
    assert run.response.body == rig.for_client(run.response_seen, run.added)


@policies
def test_answer_equals_a_direct_one(rig, case, policy):
    run = rig.run(case, policy)
    direct, through = answer.read(run.direct), answer.read(run.response)
    assert (through.choices, through.done, through.errors) == (direct.choices, direct.done, direct.errors)
    # running usages are in each event, and events differ from run to run
    assert bool(through.usage) == bool(direct.usage)
    assert through.usage[-1:] == direct.usage[-1:]


@policies
def test_only_known_fields_are_lost(rig, case, policy):
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
