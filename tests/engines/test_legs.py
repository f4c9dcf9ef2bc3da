"""Prefill and decode on two servers: a request that the router sends twice is counted, charged and stored once.

A router sends each request as vLLM's toy proxy does, first to one engine and then to a second one; the same requests, sent
whole to the second engine, must come to the same sums. The engines here transfer nothing and work out the prompt twice.
"""
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest

import answer
import call
import cases
import mixture
from engine import KINDS
from meter import EXCHANGES, TOKENS, Meter
from process import eventually, free_port
from test_bill import bookkeeping, spend
from test_mixed import SEED

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp", "vllm")]
REQUESTS = 30
ROLES = [("prefill", "decode"), ("auto", "auto")]
ROWS, LEG_EXCHANGES, LEG_PROMPTS = "tokenmeter_ledger_rows_total", "tokenmeter_leg_exchanges_total", "tokenmeter_leg_prompt_tokens_total"
COUNTED = (EXCHANGES, TOKENS, "tokenmeter_live_output_tokens_total", "tokenmeter_usage_provenance_total",
           "tokenmeter_tenant_tokens_total", "tokenmeter_tenant_exchanges_total", "tokenmeter_tenant_spend_usd_total",
           "tokenmeter_model_spend_usd_total", "tokenmeter_unpriced_exchanges_total", "tokenmeter_no_first_token_total",
           "tokenmeter_tenant_uncounted_prompts_total", "tokenmeter_time_to_first_token_seconds_count",
           "gen_ai_server_request_duration_seconds_count", "gen_ai_client_inference_usage_input_tokens_total",
           "gen_ai_client_inference_usage_output_tokens_total", "gen_ai_client_inference_operation_output_tokens_count")
"""The metrics that count exchanges, tokens and money."""
OF_UPSTREAM = {"upstream", "server_address", "server_port"}
TO_PREFILL = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None,
              "remote_host": None, "remote_port": None}
TO_DECODE = {"do_remote_prefill": True, "do_remote_decode": False, "remote_block_ids": [1, 2, 3], "remote_engine_id": "engine-1",
             "remote_host": "127.0.0.1", "remote_port": 5559}
"""The answer of a prefill engine with a connector; these engines have none."""


class Pair(Meter):
    """tokenmeter before two engines, with a listener for each."""

    def __init__(self, folder, engines, roles, *options):
        self.prefill, self.address = [("127.0.0.1", free_port()) for _ in roles]
        upstreams = [{"name": name, "url": "http://%s:%d" % engine.address, "listen": "%s:%d" % listener, "role": role,
                      "kind": engine.kind, "engine_metrics": "off"}
                     for name, engine, listener, role in zip(("first", "second"), engines, (self.prefill, self.address), roles)]
        settings = folder / "settings.yaml"
        settings.write_text(json.dumps({"upstreams": upstreams}))
        self.start(folder / "tokenmeter-pair", "--config", str(settings), *options)


def in_two(pair, case):
    """Sends a request as the router does; returns the answers of both engines."""
    fields = {name: value for name, value in case.fields.items() if name != "stream_options"}
    first = call.send(pair.prefill, replace(case, fields=fields | {"stream": False, "max_tokens": 1, "kv_transfer_params": TO_PREFILL}))
    if first.status == 200:
        params = json.loads(first.content()).get("kv_transfer_params") or TO_DECODE
        case = replace(case, fields=case.fields | {"kv_transfer_params": params})
    return first, call.send(pair.address, case)


def requests(engine):
    """Requests with one answer each, of two tenants, each with an id; the last two are one repeated request."""
    draw, made = mixture.Mixture(engine, Random(f"{SEED} {engine.name} legs")), []
    while len(made) < REQUESTS:
        case = draw.draw(1)
        if case.path in (cases.CHAT, cases.COMPLETIONS) and not case.several_prompts and case.fields.get("max_tokens"):
            made.append(case)
    made.append(cases.completion("no-prompt", {"prompt": None}, error=400))
    repeated = [cases.chat("bad-type", {"max_tokens": "many"}, error=400), cases.chat("mended")]
    return [replace(case, headers=(("x-tenant", f"tenant-{at % 2}"), ("x-request-id", f"request-{at}")))
            for at, case in [*enumerate(made), *((len(made), case) for case in repeated)]]


def said(response):
    """An answer with its last usage: the tokens in each event differ from run to run."""
    read = answer.read(response)
    return read.choices, read.errors, read.usage[-1:]


def counted(samples):
    """name and labels, without the upstream -> the sum of each series that counts exchanges, tokens or money."""
    sums = {}
    for name, labels, value in samples.rows:
        if name in COUNTED and value:
            key = name, frozenset((label, of) for label, of in labels.items() if label not in OF_UPSTREAM)
            sums[key] = sums.get(key, 0) + value
    return sums


def settled(meter, ledger, rows):
    """Its page, and the ledger's rows, reports and joined requests, once this number of rows is acknowledged."""
    assert eventually(lambda: meter.samples().sum(ROWS) == rows), f"{meter.samples().sum(ROWS)} of {rows} rows"
    page = meter.samples()
    with closing(sqlite3.connect(ledger)) as database:
        sums = ", ".join(f"sum({column})" for column in ("input", "input_cached", "output", "output_reasoning", "cost_pico"))
        by_tenant = database.execute(f"SELECT tenant, model, ending, count(*), {sums} FROM exchanges GROUP BY 1, 2, 3").fetchall()
        lines = database.execute("SELECT tenant, model, ending, sum(exchanges), sum(input_tokens), sum(output_tokens), "
                                 "sum(cost_millionths), sum(cost_rest) FROM spend_daily GROUP BY 1, 2, 3").fetchall()
        joined = database.execute("SELECT request, exchanges, prefill_legs, decode_legs, failed_exchanges, upstream_attempts, "
                                  "cost_pico FROM requests").fetchall()
        legs = database.execute("SELECT upstream, sum(prompt_tokens), count(*) FROM legs GROUP BY 1").fetchall()
    return page, (sorted(by_tenant), sorted(lines), spend(ledger, "--by", "tenant,model")), {row[0]: row[1:] for row in joined}, legs


@pytest.fixture(scope="module")
def second(rig, tmp_path_factory):
    """A second engine of the same kind that has processed every request once, so that its cache hits are the same
    from now on."""
    engine = KINDS[rig.engine.name](tmp_path_factory.mktemp("second"))
    try:
        for case in requests(rig.engine):
            call.send(engine.address, case)
        yield engine
    finally:
        engine.stop()


@pytest.mark.parametrize("roles", ROLES, ids="-".join)
def test_sums_of_legs_are_those_of_whole_requests(rig, second, tmp_path, roles):
    whole_folder, pair_folder = tmp_path / "whole", tmp_path / "pair"
    whole_folder.mkdir(), pair_folder.mkdir()
    every = requests(rig.engine)

    ledger, options = bookkeeping(whole_folder)
    with Meter(second.address, whole_folder, second.kind, *options) as meter:
        answers = [call.send(meter.address, case) for case in every]
        page, books, joined, legs = settled(meter, ledger, len(every))
    assert [response.status for response in answers] == [case.error or 200 for case in every]
    assert legs == [] and page.sum(LEG_EXCHANGES) == 0

    ledger, options = bookkeeping(pair_folder)
    with Pair(pair_folder, (rig.engine, second), roles, *options) as meter:
        sent = [in_two(meter, case) for case in every]
        pair_page, pair_books, pair_joined, pair_legs = settled(meter, ledger, 2 * len(every))

    # the client sees the same: the second engine's answer only
    assert [response.status for _, response in sent] == [response.status for response in answers]
    assert [said(response) for _, response in sent] == [said(response) for response in answers]
    # the same in every counter, in the reports and in the ledger
    assert counted(pair_page) == counted(page)
    assert pair_books == books
    assert sum(value for (name, _), value in counted(page).items() if name == TOKENS) > 0

    # prefill legs are in the series of legs only, and in no row of `exchanges`
    prompts = sum(json.loads(first.content())["usage"]["prompt_tokens"] for first, _ in sent if first.status == 200)
    assert pair_page.sum(LEG_EXCHANGES, role="prefill") == len(every)
    assert pair_page.sum(LEG_PROMPTS) == prompts > 0
    assert pair_legs == [("first", prompts, len(every))]
    assert {upstream for upstream, of in pair_page.values(EXCHANGES, "upstream").items() if of} == {"second"}

    # each id joins its legs, and the repetition of the last request
    once, whole = (1, 1, 1, 0, 2), (1, 0, 0, 0, 1)
    refused = (1, 1, int(roles[1] == "decode"), 1, 2)      # sent whole to the second engine, as the first one rejected it
    for at in range(REQUESTS):
        assert (pair_joined[f"id:request-{at}"][:5], joined[f"id:request-{at}"][:5]) == (once, whole)
        assert pair_joined[f"id:request-{at}"][5] == joined[f"id:request-{at}"][5] > 0
    assert pair_joined[f"id:request-{REQUESTS}"][:5] == refused
    assert pair_joined[f"id:request-{REQUESTS + 1}"][:5] == (2, 2, 2, 1, 4)
    assert len(pair_joined) == len(joined) == REQUESTS + 2
