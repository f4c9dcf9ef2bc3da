"""Requests that the engine rejects: its own error reaches the client, and is counted as one."""
import pytest

import asked
import call
import cases
from meter import EXCHANGES, TOKENS

CASES = cases.refused


def test_error_is_the_engines_own(rig, case):
    run = rig.run(case)
    assert run.response.status == run.direct.status == case.error
    assert run.response.body == run.direct.body


@pytest.mark.metered
def test_error_is_counted(rig, case):
    moved = rig.run(case).meter
    assert moved.by(EXCHANGES, "ending") == {"error_status": 1}
    assert moved.of(TOKENS) == 0
    assert moved.of("gen_ai_server_time_to_first_token_seconds_count") == 0


@pytest.mark.metered
def test_original_follows_a_rejected_edit(rig):
    """Only the original shows whether the added options caused the rejection."""
    case = next(case for case in cases.refused(rig.engine.name) if case.streamed and case.error in asked.REFUSALS)
    name = rig.new_name(case)
    call.send(rig.address, case, name)
    edited, original = [request for request, _ in rig.tap.exchanges(name)]
    asked.expect_request(case.body, edited.body, {asked.AT_END})
    rig.expect_request(case, original, set())
