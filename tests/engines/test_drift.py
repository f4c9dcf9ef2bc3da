"""The drift of our counts from the engine's, and the alert on it: silent under random traffic of which some leaves,
and firing for one request that went past us.

The page is sampled after each round of traffic. Prometheus' own evaluator then gets the samples, as if a round had
taken five minutes, with the rules as they are shipped.
"""
import json
import os
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import asked
import call
import cases
from engine import HERE
from exposition import Difference
from meter import Meter
from process import eventually
from test_left import leave, plain
from test_mixed import drawn

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp")]
TELEMETRY = pathlib.Path(os.environ.get("TOKENMETER_TELEMETRY", pathlib.Path.home() / ".cache/tokenmeter/telemetry"))
RULES = HERE.parent.parent / "helm/tokenmeter/rules"
MINUTES = 5
"""Minutes of a round: the longest time that Prometheus looks back for a sample."""
QUIET, FIRES, OVER = 8, 13, 15
"""Rounds before the request that bypasses tokenmeter; the round in which the alert has waited long enough; one whose
half hour is without the request."""
REQUESTS, LEAVING = 24, 1
"""Requests in a round, and those that leave: few, because llama.cpp generates on until it notices, which takes longer on a
busy machine, and is drift, too."""
PAST = 3000
"""Tokens of the request that bypasses tokenmeter."""
TOLERANCE = 0.05
"""The alert's parameters."""
DRIFT, GENERATED, PROMPTS = "tokenmeter_engine_drift_tokens", "tokenmeter_engine_generation_tokens", "tokenmeter_engine_prompt_tokens"
INPUTS = ("tokenmeter_engine_", "tokenmeter_tenant_uncounted_prompts_total", "tokenmeter_tenant_exchanges_total")
"""The metrics that the drift rules read."""
FIRING = 'count(ALERTS{alertname="TokenmeterEngineDrift", alertstate="firing"%s}) or vector(0)'


class Recording:
    """The pages after each round."""

    def __init__(self, rig, meter):
        self.rig, self.meter, self.pages = rig, meter, []
        self.begun = rig.engine.settled_counters()
        self.sample()

    def sample(self):
        """Wait until tokenmeter has read the engine's counters."""
        now = self.rig.engine.settled_counters()
        computed, cached, generated = self.rig.engine.moved(Difference(self.begun, now))

        def has_read():
            page = self.meter.samples()
            self.page = page
            return (page.sum(PROMPTS), page.sum(GENERATED)) == (computed + cached, generated)
        assert eventually(has_read), f"{self.page.sum(PROMPTS)}, {self.page.sum(GENERATED)} of {computed + cached}, {generated}"
        self.pages.append(self.page)

    def series(self):
        """Every series that the rules read, with a value for each page; a later series has none before its start."""
        names = {(name, tuple(sorted(labels.items()))) for page in self.pages for name, labels, _ in page.rows if name.startswith(INPUTS)}
        tables = [{(name, tuple(sorted(labels.items()))): value for name, labels, value in page.rows} for page in self.pages]
        for name, labels in sorted(names):
            text = ", ".join(f'{label}="{value}"' for label, value in (("job", "t"), ("instance", "1"), *labels))
            yield {"series": f"{name}{{{text}}}", "values": " ".join(str(table.get((name, labels), "_")) for table in tables)}

    def expect(self, folder, *samples):
        """Assert that Prometheus has these values of (expression, round)."""
        tests = [{"expr": expression, "eval_time": f"{at * MINUTES}m", "exp_samples": [{"labels": "{}", "value": value}]}
                 for expression, at, value in samples]
        document = {"rule_files": [str(RULES / "recording.yaml"), str(RULES / "alerts.yaml")], "evaluation_interval": "1m",
                    "group_eval_order": ["tokenmeter-drift"],
                    "tests": [{"interval": f"{MINUTES}m", "input_series": list(self.series()), "promql_expr_test": tests}]}
        path = folder / "drift.yaml"
        path.write_text(json.dumps(document, indent=1))
        ran = subprocess.run([TELEMETRY / "bin/promtool", "test", "rules", path], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_alert_fires_only_for_a_bypassing_request(rig, tmp_path):
    draw = drawn(rig, "drift")

    def traffic():
        plans = [(plain(draw.draw(1)), None) for _ in range(REQUESTS - LEAVING)]
        plans += [(plain(draw.long(streamed=True)), draw.random.randint(0, 40)) for _ in range(LEAVING)]
        draw.random.shuffle(plans)

        def go(plan):
            case, after = plan
            name = rig.new_name(case)
            return call.send(meter.address, case, name) if after is None else leave(meter.address, case, name, after)
        with ThreadPoolExecutor(rig.engine.slots) as pool:
            list(pool.map(go, plans))
        assert eventually(lambda: rig.engine.at_work() == 0, every=rig.engine.ask_every)

    with Meter(rig.tap.address, tmp_path, rig.engine.kind, "--usage", asked.CONTINUOUS, "--engine-metrics-interval-ms", "1000",
               engine_metrics="on") as meter:
        recording = Recording(rig, meter)
        for at in range(1, OVER + 1):
            if at == QUIET + 1:
                call.send(rig.engine.address, cases.slow(rig.engine.name, {"max_tokens": PAST}))
            traffic()
            recording.sample()
    quiet, last = (recording.pages[at] for at in (QUIET, OVER))
    output, generated = quiet.sum(DRIFT, direction="output"), quiet.sum(GENERATED)
    inputs, prompts = quiet.sum(DRIFT, direction="input"), quiet.sum(PROMPTS)
    print(f"{rig.engine.name}: {LEAVING} of {REQUESTS} left; drift {output:.0f} of {generated:.0f} output tokens, {inputs:.0f} of {prompts:.0f} "
          f"prompt tokens; then {last.sum(DRIFT, direction='output') - output:.0f} more, {PAST} of them past us")
    assert 0 <= output <= TOLERANCE * generated and abs(inputs) <= TOLERANCE * prompts
    assert PAST <= last.sum(DRIFT, direction="output") - output <= PAST + TOLERANCE * last.sum(GENERATED)
    recording.expect(
        tmp_path,
        (f"max_over_time(({FIRING % ''})[{QUIET * MINUTES}m:1m])", QUIET, 0),
        ("count(instance_upstream:tokenmeter_engine_drift_tokens:ratio_deriv30m)", QUIET, 2),
        (FIRING % ', direction="output"', FIRES, 1),
        (FIRING % "", OVER, 0),
    )
