"""Wrong settings and other versions: clients get the same answers, and the plugin counts less or nothing."""
import os

import pytest

from growth import PLUGIN, TOKENS, Growth
from traffic import answers

SEED = int(os.environ.get("TOKENMETER_SEED", 20261124))
COUNT = 20


@pytest.fixture(scope="module")
def unmetered(serve):
    """The answers of a server without the plugin."""
    with serve(plugin=False) as running:
        return answers(running.address, SEED, COUNT)


def test_other_version_counts_what_responses_report(serve, unmetered):
    with serve(fault="version") as running:
        growth = Growth(running, lambda: answers(running.address, SEED, COUNT))
    assert growth.result == unmetered
    assert growth.after.values(PLUGIN + "level", "level")["reported"] == 1
    assert growth.moved.of(TOKENS, type="output", provenance="engine") == 0
    assert growth.moved.of(TOKENS, type="output", provenance="reported") > 0


@pytest.mark.parametrize("settings", [{"TOKENMETER_LIBRARY": "/nonexistent.so"}, {"TOKENMETER_PRICES": __file__}], ids=["library", "prices"])
def test_plugin_that_cannot_start_costs_no_request(serve, unmetered, settings):
    with serve(**settings) as running:
        assert answers(running.address, SEED, COUNT) == unmetered
        assert not running.counters().has(PLUGIN + "level")
