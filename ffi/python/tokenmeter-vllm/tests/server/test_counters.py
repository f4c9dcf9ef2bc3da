"""Counts of the plugin against vLLM's counters and those of the proxy, to the token."""
import os

import pytest

import cases
from growth import CACHED, EXCHANGES, GENERATED, IN_FLIGHT, INPUT, OUTPUT, PLUGIN, PROMPT, TOKENS, Growth
from meter import Meter
from process import eventually
from traffic import Traffic, answers, expect_answers

SEED = int(os.environ.get("TOKENMETER_SEED", 20261124))


@pytest.fixture(scope="module")
def server(serve):
    with serve(fault="hook") as running:
        yield running


def test_page_has_both_families_once(server):
    page = server.counters()
    assert page.has(GENERATED) and page.has(PLUGIN + "level") and page.has(IN_FLIGHT)
    series = [(name, tuple(sorted(labels.items()))) for name, labels, _ in page.rows]
    assert len(series) == len(set(series))


def test_every_kind_of_request_with_aborts(server):
    growth = Growth(server, lambda: Traffic(SEED, (1, 1, 2, 3), leaving=0.3).run(server.address, 300))
    growth.expect_engine()
    growth.expect_output()
    expect_answers(growth.result)
    assert growth.moved.of(EXCHANGES, ending="client_abort") > 0


def test_prompts_of_one_choice(server):
    growth = Growth(server, lambda: Traffic(SEED, (1,), leaving=0.3).run(server.address, 100))
    growth.expect_output()
    assert growth.tokens(INPUT) == growth.moved.of(PROMPT)
    assert growth.moved.of(TOKENS, type="input_cached") == growth.moved.of(CACHED)


def test_requests_that_all_leave(server):
    growth = Growth(server, lambda: Traffic(SEED, (1, 3), leaving=1.0).run(server.address, 50))
    growth.expect_engine()
    assert growth.tokens(OUTPUT) == growth.moved.of(GENERATED)


def through_the_proxy(server, folder, traffic, count):
    """The growth of the plugin's counters and of the proxy's over the same whole answers."""
    with Meter(server.address, folder, "vllm") as proxy:
        before = proxy.samples()
        growth = Growth(server, lambda: traffic.run(proxy.address, count))
        moved = proxy.moved(before, count)
    expect_answers(growth.result)
    growth.expect_engine()
    assert growth.moved.of(EXCHANGES) == moved.of(EXCHANGES) == count
    assert growth.moved.by(EXCHANGES, "ending") == moved.by(EXCHANGES, "ending")
    return growth.moved.by(TOKENS, "type"), moved.by(TOKENS, "type")


def test_proxy_counts_the_same_types_of_one_answer(server, tmp_path):
    # The usage of completions lacks the prompt tokens written to the cache.
    traffic = Traffic(SEED, (1,), but=lambda case: case.path == cases.COMPLETIONS)
    plugin, proxy = through_the_proxy(server, tmp_path, traffic, 100)
    assert plugin == proxy and {"input", "input_cached", "input_cache_write", "output"} <= set(plugin)


def test_proxy_counts_the_same_sums_of_several_answers(server, tmp_path):
    # Of several prompts or answers, vLLM's usage has the cached tokens of one.
    plugin, proxy = through_the_proxy(server, tmp_path, Traffic(SEED, (1, 2, 3), but=lambda case: "use_beam_search" in case.fields), 100)
    for types in (INPUT, OUTPUT):
        assert sum(plugin.get(type, 0) for type in types) == sum(proxy.get(type, 0) for type in types) > 0


# The last test of this server: its hook fails from now on.
def test_exception_in_the_hook_changes_no_answer(server):
    before = answers(server.address, SEED, 20)
    (server.log.parent / "fault").touch()
    growth = Growth(server, lambda: answers(server.address, SEED, 20))
    assert growth.result == before
    expect_answers(Traffic(SEED, (1, 1, 2)).run(server.address, 20))
    assert growth.after.values(PLUGIN + "level", "level") == {"engine": 0, "reported": 1, "off": 0}
    assert growth.after.sum(PLUGIN + "failures_total", part="engine") == 1
    assert growth.after.sum(PLUGIN + "lost_exchanges_total") == 1
    assert growth.moved.of(TOKENS, type="output", provenance="reported") > 0
    assert growth.moved.of(TOKENS, provenance="engine") == 0


def test_several_api_processes_are_counted_once(serve):
    with serve("--api-server-count", "2") as running:
        traffic = Traffic(SEED, (1, 2), leaving=0.3)
        growth = Growth(running, lambda: traffic.run(running.address, 120), late=True)
        growth.expect_engine()
        growth.expect_output()
        # Each scrape reaches another process; soon all have the same counts.
        wanted = growth.after.sum(TOKENS)
        assert eventually(lambda: {running.counters().sum(TOKENS) for _ in range(20)} == {wanted})
