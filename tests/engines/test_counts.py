"""Token counts on tokenmeter's page against the engine's own counters, over the same exchange."""
import pytest

import answer
import cases
from meter import EXCHANGES, TOKENS, UNREAD

CASES = cases.answered
pytestmark = pytest.mark.metered
ENDINGS = {"length": "length", "stop": "complete", "tool_calls": "complete"}
EXACT = {"reported", "ids"}


def output(run):
    """provenance -> output tokens, visible and reasoning."""
    parts = [run.meter.by(TOKENS, "provenance", type=kind, model="tiny") for kind in ("output", "output_reasoning")]
    return {p: sum(part.get(p, 0) for part in parts) for p in {*parts[0], *parts[1]}}


def usage_was_sent(run):
    return bool(answer.read(run.response_seen).usage)


def test_output_equals_the_engines_count(rig, case):
    run = rig.run(case)
    counted, generated = output(run), run.engine.of(rig.engine.generated)
    assert generated > 0
    if usage_was_sent(run) and case.usage_covers_all:
        assert counted == {"reported": generated}
    elif not case.usage_covers_all:
        assert not any(counted.values())                  # the count of one choice of two is no count of both
    elif set(counted) <= EXACT:
        assert sum(counted.values()) == generated
    else:
        # an estimate, marked as such
        assert 0 < sum(counted.values()) <= generated


def test_usage_of_some_choices_is_not_reported(rig, case):
    run = rig.run(case)
    if not (usage_was_sent(run) and case.usage_covers_all):
        assert "reported" not in output(run)


def test_input_equals_the_engines_count(rig, case):
    run = rig.run(case)
    if not usage_was_sent(run):
        assert run.meter.of(TOKENS, type="input", provenance="reported") == 0
        return
    computed, cached, _ = rig.engine.moved(run.engine)
    counted = [run.meter.of(TOKENS, type=kind, model="tiny") for kind in ("input", "input_cached")]
    if not case.usage_covers_all and not sum(counted):
        return                                            # omitted with the rest of such a usage
    if rig.engine.counts_prompt_per_choice and case.choices > 1:
        assert sum(counted) * case.choices == computed + cached
    else:
        assert counted == [computed, cached]
    if "prompt-cached" in case.name and rig.engine.has_cache:
        assert cached > 0                                 # otherwise the case does not test its purpose


def test_exchange_is_counted_once(rig, case):
    run = rig.run(case)
    finishes = answer.read(run.response).finishes()
    ending = run.meter.by(EXCHANGES, "ending")
    assert sum(ending.values()) == 1
    assert set(ending) <= {ENDINGS[finish] for finish in finishes}
    assert run.meter.of(EXCHANGES, model="tiny") == 1
    assert run.meter.after.sum("tokenmeter_exchanges_in_flight") == 0


def test_usage_is_understood(rig, case):
    run = rig.run(case)
    assert [run.meter.by(*unread) for unread in UNREAD] == [{}] * len(UNREAD)


def test_times_are_observed(rig, case):
    run = rig.run(case)
    assert run.meter.of("gen_ai_server_request_duration_seconds_count") == 1
    if case.streamed:
        assert run.meter.of("tokenmeter_time_to_first_byte_seconds_count") == 1
        assert run.meter.of("gen_ai_server_time_to_first_token_seconds_count") == 1
        assert run.meter.of("gen_ai_server_time_per_output_token_seconds_count") == 1
