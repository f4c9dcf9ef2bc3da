"""The bill of a mixed run: the cost of each tenant is counts × prices, to the last digit.

The counts are the engine's own counters, or what its last frame said to a client that then left; the prices
are worked out here, in decimals. The program's part is the ledger and the report.
"""
import dataclasses
import json
import os
import re
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from random import Random

import pytest

import answer
import asked
import call
import mixture
from case import Case
from exposition import Difference
from meter import Meter
from process import eventually
from tap import HOLD
from test_mixed import SEED, last_said

pytestmark = pytest.mark.metered
PRICES = {"input": "0.123457", "cached_input": "0.012347", "output": "1.000003"}
"""Dollars for a million tokens; odd, so that a lost digit shows."""
MILLION = Decimal(1_000_000)
ROWS = "tokenmeter_ledger_rows_total"
CACHED = re.compile(rb'"(?:cached_tokens|cache_read_input_tokens)": ?(\d+)')
RUN, LEFT = "mixed", "left"
REQUESTS, ABORTS, AT_ONCE = 100, 10, 8


def owed(computed, cached, generated):
    """Dollars for this number of tokens."""
    counts = {"input": computed, "cached_input": cached, "output": generated}
    return sum(Decimal(count) * Decimal(PRICES[kind]) / MILLION for kind, count in counts.items())


def bookkeeping(folder, tenant="x-tenant"):
    """The ledger in a folder, and the options of a tokenmeter with it: a price file, and tenants named by a header."""
    ledger, prices, tenants = folder / "ledger.db", folder / "prices.yaml", folder / "tenants.yaml"
    prices.write_text("version: bill\ncurrency: USD\nmodels:\n  - pattern: \"*\"\n"
                      + "".join(f"    {kind}: {price}\n" for kind, price in PRICES.items()))
    tenants.write_text(f"trusted_peers: [127.0.0.1]\nrules:\n  - header: {tenant}\n")
    return ledger, ["--ledger", str(ledger), "--prices", str(prices), "--tenants", str(tenants)]


def spend(ledger, *options):
    """The report: an object for each group."""
    report = subprocess.run([os.environ["TOKENMETER_BIN"], "spend", "--ledger", ledger, "--format", "json", *options],
                            check=True, capture_output=True, text=True)
    return json.loads(report.stdout)["rows"]


class Books:
    """tokenmeter with a ledger, a price file and tenants named by a header."""

    def __init__(self, rig, folder, policy):
        self.rig = rig
        self.ledger, options = bookkeeping(folder)
        self.meter = Meter(rig.tap.address, folder, asked.ANY_KIND, "--usage", policy, *options)
        self.entered = 0

    def send(self, tenant, cases):
        """Send them together for the tenant; returns the engine's counts meanwhile, as far as its answers have them."""
        before = self.rig.engine.settled_counters()
        names = [self.rig.new_name(case) for case in cases]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            responses = list(pool.map(lambda case, name: call.send(self.meter.address, of(tenant, case), name), cases, names))
        assert {response.status for response in responses} == {200}
        self.expect_entered(len(cases))
        difference = Difference(before, self.rig.engine.settled_counters())
        self.rig.engine.expect_requests(difference, len(cases))
        computed, cached, generated = self.rig.engine.moved(difference)
        if self.rig.engine.name == "vllm":
            # The answers to several prompts do not report cached tokens; they are billed in full.
            exchanges = self.rig.tap.every_exchange()
            told = sum(cached_of(exchanges[name][1].body) for name in names)
            assert told <= cached
            return computed + cached - told, told, generated
        return computed, cached, generated

    def expect_entered(self, rows):
        self.entered += rows
        assert eventually(lambda: self.meter.samples().sum(ROWS) >= self.entered), "the ledger has not acknowledged them"
        assert self.meter.samples().sum(ROWS) == self.entered

    def picos(self, tenant):
        """The sums of its rows, by SQL alone."""
        with sqlite3.connect(self.ledger) as database:
            rows = database.execute("SELECT cost_pico FROM exchange WHERE tenant = ?", [tenant])
            return sum(Decimal(cost) for cost, in rows) / Decimal(10) ** 12


def cached_of(body):
    """The cached tokens of an answer's last usage."""
    told = CACHED.findall(body)
    return int(told[-1]) if told else 0


def of(tenant, case):
    return dataclasses.replace(case, headers=(*case.headers, ("x-tenant", tenant)))


@pytest.fixture(params=[asked.INJECT, asked.CONTINUOUS])
def books(request, rig, tmp_path):
    books = Books(rig, tmp_path, request.param)
    yield books
    books.meter.stop()


def test_the_bill_is_counts_times_prices(rig, books):
    draw = mixture.Mixture(rig.engine, Random(f"{SEED} {rig.engine.name} bill"))
    requests, aborts = (int(count * rig.engine.batch) for count in (REQUESTS, ABORTS))
    moved = books.send(RUN, draw.cases(requests, 1))
    left = [leave(rig, books, draw) for _ in range(aborts)]
    bill = {group["tenant"]: group for group in spend(books.ledger, "--by", "tenant")}
    assert set(bill) == {RUN, LEFT}
    assert bill[RUN]["exchanges"] == requests and bill[LEFT]["exchanges"] == aborts
    assert (bill[RUN]["unpriced_exchanges"], bill[LEFT]["unpriced_exchanges"], bill[RUN]["currency"]) == (0, 0, "USD")
    assert Decimal(bill[RUN]["cost"]) == owed(*moved) == books.picos(RUN)
    assert bill[RUN]["input_tokens"] == moved[0] + moved[1] and bill[RUN]["output_tokens"] == moved[2]
    assert Decimal(bill[LEFT]["cost"]) == sum(owed(*counts) for counts in left) == books.picos(LEFT)
    assert bill[LEFT]["output_tokens"] == sum(generated for _, _, generated in left) > 0


def leave(rig, books, draw):
    """A client that leaves while the tap holds the answer; returns the tokens of the frames so far."""
    after = draw.random.randint(2, 30)
    long = draw.long(streamed=True)
    fields = {name: value for name, value in long.fields.items() if name != "stream_options"}
    case = of(LEFT, Case(long.name, long.path, fields=fields, headers=((HOLD, str(after)),)))
    name = rig.new_name(case)
    with call.Call(books.meter.address, case, name) as leaving:
        leaving.read_until(lambda _: leaving.response() and len(answer.events(leaving.response().body)) >= after)
    books.expect_entered(1)
    assert eventually(lambda: rig.engine.at_work() == 0)
    _, seen = rig.tap.exchanges(name)[-1]
    if any(b'"usage":{' in event for event in answer.events(seen.body)):
        (prompt, generated), = last_said(seen)
        return prompt, 0, generated
    # Only the frames are known: one token each, and no count of the prompt.
    frames = [answer.payload(event)["choices"][0] for event in answer.events(seen.body)]
    return 0, 0, sum(bool(frame.get("text") or frame.get("delta", {}).get("content")) for frame in frames)
