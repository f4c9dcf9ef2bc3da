"""Requests that are not inference are forwarded unchanged (see test_bytes) and counted as such."""
import pytest

import cases
from meter import EXCHANGES, PASSED

CASES = cases.passed


@pytest.mark.metered
def test_is_counted_as_passed_through(rig, case):
    moved = rig.run(case).meter
    assert moved.of(PASSED) == 1
    assert moved.of(EXCHANGES) == 0
