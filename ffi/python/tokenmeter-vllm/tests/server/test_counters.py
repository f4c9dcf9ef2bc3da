"""Counts of the plugin against vLLM's counters, to the token."""
import os
import time

import pytest

from exposition import Difference
from process import eventually
from traffic import Traffic

SEED = int(os.environ.get("TOKENMETER_SEED", 20261124))
TOKENS, EXCHANGES = "tokenmeter_tokens_total", "tokenmeter_exchanges_total"
IN_FLIGHT = "tokenmeter_exchanges_in_flight"
INPUT, OUTPUT = ("input", "input_cached", "input_cache_write"), ("output", "output_reasoning")
PROMPT, GENERATED = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
CACHED = "vllm:prompt_tokens_cached_total"
PLUGIN = "tokenmeter_plugin_"


def tokens(moved, types):
    return sum(moved.of(TOKENS, type=type) for type in types)


class Run:
    """Traffic to a server, and the growth of the counters on its page."""

    def __init__(self, server, count, choices, leaving, age=0):
        """`age` is the age, in seconds, that the page's counts can have."""
        before = settled(server)
        self.statuses = Traffic(server, SEED, choices, leaving).run(count)
        settled(server)
        time.sleep(age)
        self.after = settled(server)
        self.moved = Difference(before, self.after)

    def expect_engine(self):
        """Asserts that the hooks are in place, nothing failed, and nothing was lost."""
        assert self.after.values(PLUGIN + "level", "level") == {"engine": 1, "reported": 0, "off": 0}
        assert self.after.sum(PLUGIN + "failures_total") == self.after.sum(PLUGIN + "lost_exchanges_total") == 0
        assert self.moved.of(PLUGIN + "unattributed_tokens_total") == 0

    def expect_output(self):
        """Asserts that the output of all exchanges is what vLLM generated, by the engine's count."""
        generated = self.moved.of(GENERATED)
        assert tokens(self.moved, OUTPUT) == generated > 0
        assert self.moved.of(TOKENS, type="output", provenance="engine") == self.moved.of(TOKENS, type="output")


def settled(server):
    """The page once no exchange is in flight, nothing runs, and the counters are constant."""
    def still():
        page = server.settled_counters()
        return page if page and page.sum(IN_FLIGHT) == 0 else None
    page = eventually(still, 60)
    assert page, "exchanges stay in flight"
    return page


@pytest.fixture(scope="module")
def server(serve):
    with serve() as running:
        yield running


def test_page_has_both_families_once(server):
    page = server.counters()
    assert page.has(GENERATED) and page.has(PLUGIN + "level") and page.has(IN_FLIGHT)
    series = [(name, tuple(sorted(labels.items()))) for name, labels, _ in page.rows]
    assert len(series) == len(set(series))


def test_every_kind_of_request_with_aborts(server):
    run = Run(server, 300, choices=(1, 1, 2, 3), leaving=0.3)
    run.expect_engine()
    run.expect_output()
    assert all(status == 200 for status in run.statuses if status is not None)
    assert run.moved.of(EXCHANGES, ending="client_abort") > 0


def test_prompts_of_one_choice(server):
    run = Run(server, 120, choices=(1,), leaving=0.3)
    run.expect_output()
    assert tokens(run.moved, INPUT) == run.moved.of(PROMPT)
    assert run.moved.of(TOKENS, type="input_cached") == run.moved.of(CACHED)


def test_requests_that_all_leave(server):
    run = Run(server, 60, choices=(1, 3), leaving=1.0)
    run.expect_engine()
    assert tokens(run.moved, OUTPUT) == run.moved.of(GENERATED)


def test_several_api_processes_are_counted_once(serve):
    with serve("--api-server-count", "2") as running:
        run = Run(running, 120, choices=(1, 2), leaving=0.3, age=2)
        run.expect_output()
        # Each scrape reaches another process; all say the same.
        wanted = run.after.sum(TOKENS)
        assert {running.counters().sum(TOKENS) for _ in range(20)} == {wanted}


def test_other_version_counts_what_responses_report(serve, installed, tmp_path):
    # The version that the plugin sees is vLLM's; the tested one is changed instead.
    (tmp_path / "sitecustomize.py").write_text("import tokenmeter_vllm.plugin\ntokenmeter_vllm.plugin.TESTED = (0, 1)\n")
    with serve(PYTHONPATH=f"{tmp_path}:{installed}") as running:
        run = Run(running, 40, choices=(1,), leaving=0)
        assert run.after.values(PLUGIN + "level", "level")["reported"] == 1
        assert run.moved.of(TOKENS, type="output", provenance="engine") == 0
        assert run.moved.of(TOKENS, type="output", provenance="reported") > 0


def test_missing_library_costs_no_request(serve):
    with serve(TOKENMETER_LIBRARY="/nonexistent.so") as running:
        statuses = Traffic(running, SEED, (1,), 0).run(20)
        assert set(statuses) == {200}
        assert not running.counters().has(PLUGIN + "level")
