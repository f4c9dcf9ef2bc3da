"""Answers of llama.cpp without token counts: none is billed as if it had few tokens."""
import json
import sqlite3

import pytest

import asked
import call
from case import Case
from exposition import Difference
from meter import Meter
from test_bill import LEFT, Books, spend
from test_mixed import INPUT, OUTPUT, tokens

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp")]
LONG = {"ignore_eos": True, "seed": 7}
ASK = [{"role": "user", "content": "x"}]
FIELDS = {**LONG, "n_predict": 200, "response_fields": ["content"]}
SUMMED, UNCOUNTED = "summed", "uncounted"
SHAPES = [
    (Case("completion-fields", "/completion", fields={"prompt": "x", **FIELDS}), UNCOUNTED, 403),
    (Case("infill-fields", "/infill", fields={"input_prefix": "x", "input_suffix": "y", **FIELDS}), UNCOUNTED, 403),
    (Case("completion-n", "/completion", fields={"prompt": ["x", "y"], **LONG, "n_predict": 20, "n": 3}), SUMMED, 200),
    (Case("responses-n", "/v1/responses", fields={"input": "x", "max_output_tokens": 50, "n": 4, **LONG}), SUMMED, 200),
    (Case("responses-n-stream", "/v1/responses",
          fields={"input": "x", "max_output_tokens": 20, "n_cmpl": 4, "stream": True, **LONG}), SUMMED, 403),
    (Case("prompts", "/v1/completions", fields={"prompt": ["x"] * 40, "max_tokens": 50, **LONG}), UNCOUNTED, 403),
    (Case("chat-n", "/v1/chat/completions", fields={"messages": ASK, "max_tokens": 20, "n": 4, **LONG}), UNCOUNTED, 403),
    (Case("chat-n-stream", "/v1/chat/completions",
          fields={"messages": ASK, "max_tokens": 20, "n": 4, "stream": True, **LONG}), SUMMED, 200),
]
shapes = pytest.mark.parametrize("case,outcome,status", SHAPES, ids=[case.name for case, *_ in SHAPES])


@pytest.fixture
def books(rig, tmp_path):
    books = Books(rig, tmp_path, asked.INJECT)
    yield books
    books.meter.stop()


@shapes
def test_answer_is_summed_or_unpriced(rig, books, case, outcome, status):
    before = books.meter.samples()
    computed, cached, generated = books.send(LEFT, [case])
    moved = Difference(before, books.meter.samples())
    assert generated >= 20 * case.fields.get("n", case.fields.get("n_cmpl", 1)), "or the case does not test what it is for"
    with sqlite3.connect(books.ledger) as database:
        (cost, unpriced), = database.execute("SELECT cost_pico, unpriced FROM exchange")
    bill, = spend(books.ledger, "--by", "tenant")
    if outcome == SUMMED:
        assert tokens(moved, OUTPUT) == {"reported": generated}
        assert set(tokens(moved, INPUT)) == {"reported"}
        assert (cost > 0, unpriced, bill["unpriced_exchanges"]) == (True, None, 0)
    else:
        assert not any(tokens(moved, INPUT + OUTPUT).values())
        assert (cost, unpriced, bill["unpriced_exchanges"]) == (None, "uncounted", 1)


@pytest.fixture(scope="module")
def strict(rig, tmp_path_factory):
    """tokenmeter with an enforced budget that rejects uncountable requests."""
    folder = tmp_path_factory.mktemp("strict")
    prices, settings = folder / "prices.yaml", folder / "tokenmeter.yaml"
    prices.write_text("version: v\ncurrency: USD\nmodels:\n  - pattern: \"*\"\n    input: 1\n    output: 1\n")
    settings.write_text("budgets:\n  - name: all\n    max_budget: 1000\n    budget_duration: day\n"
                        "    enforce: true\n    uncountable: refuse\n")
    meter = Meter(rig.tap.address, folder, "llama_cpp", "--config", str(settings), "--prices", str(prices),
                  "--ledger", str(folder / "ledger.db"))
    yield meter
    meter.stop()


@shapes
def test_uncountable_request_is_rejected(rig, strict, case, outcome, status):
    before = rig.engine.settled_counters()
    response = call.send(strict.address, case)
    assert response.status == status, response.body
    if status == 403:
        assert "The budget 'all' allows only responses with complete token counts" in json.loads(response.body)["error"]["message"]
        assert rig.engine.moved(Difference(before, rig.engine.settled_counters())) == (0, 0, 0)
