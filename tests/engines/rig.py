"""One engine with everything before it: client → meter → tap → engine.

With `--proxy=none` the meter is left out and the client talks to the tap.
"""
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import asked
import call
import wire
from engine import KINDS
from exposition import Difference
from meter import Meter
from tap import Tap


@dataclass
class Run:
    """A case sent once directly and once through tokenmeter, with both recordings."""
    case: object
    direct: object
    """The response without tokenmeter; None for a case that a direct run would disturb."""
    response: object
    """The response that the client got through tokenmeter."""
    request_seen: object
    """The request that the engine received."""
    response_seen: object
    """The response that the engine sent."""
    added: set
    """The options by which the engine's request differs from the sent one."""
    engine: Difference
    """The engine's counters over the second run."""
    meter: Difference


class Rig:
    def __init__(self, kind, logs, metered):
        self.engine = KINDS[kind](logs)
        self.tap = None
        self.logs, self.metered, self.meters = logs, metered, {}
        self.direct, self.runs, self.numbers = {}, {}, itertools.count(1)
        try:
            self.tap = self.engine.tap = Tap(self.engine.address)
            self.meter_of(asked.INJECT)
        except BaseException:
            self.stop()
            raise

    @property
    def address(self):
        """The address for clients."""
        return self.address_of(asked.INJECT)

    def kind(self, kind):
        """The configured kind of engine, if a test names none."""
        return kind or (self.engine.kind if self.engine.is_configured else asked.ANY_KIND)

    def meter_of(self, policy, kind=None):
        """tokenmeter with that usage policy and that configured kind of engine; started on first use."""
        kind = self.kind(kind)
        if (policy, kind) not in self.meters:
            # default values are not passed as options
            options = () if policy == asked.INJECT else ("--usage", policy)
            self.meters[policy, kind] = Meter(self.tap.address, self.logs, kind, *options) if self.metered else None
        return self.meters[policy, kind]

    def forget_meters(self):
        """Stop them all: later ones start without knowledge of the engine."""
        with ThreadPoolExecutor() as together:            # each takes its time to drain
            list(together.map(Meter.stop, filter(None, self.meters.values())))
        self.meters.clear()

    @property
    def meter(self):
        return self.meter_of(asked.INJECT)

    def address_of(self, policy, kind=None):
        """The address for clients of that policy."""
        meter = self.meter_of(policy, kind)
        return meter.address if meter else self.tap.address

    def added(self, case, policy=asked.INJECT, kind=None):
        """The options in the engine's request beyond the sent ones; of a rejected request, in the last attempt."""
        return asked.added(case, policy, self.kind(kind)) if self.metered and case.error not in asked.REFUSALS else set()

    def expect_request(self, case, seen, added):
        """Asserts that the request reached the engine unchanged, except for the added options and their
        consequences."""
        assert (seen.method, seen.path, seen.whole) == (case.method, case.path, True)
        asked.expect_request(case.body, seen.body, added)
        sent = {name.lower(): value for name, value in wire.CLIENT.items()}
        if case.body is not None:
            sent |= {"content-type": "application/json", "content-length": str(len(seen.body))}
        if added:
            sent["accept-encoding"] = "identity"
        assert {name: seen.header(name) for name in sent} == sent

    def for_client(self, seen, added):
        """The expected body for the client of an answer that the engine sent."""
        known = added if self.engine.counts_running else added - {asked.RUNNING}
        adds = self.engine.is_configured and self.engine.kind in asked.ADD_PLACEHOLDERS
        return asked.taken_out(seen.body, known, adds) if known and seen.status < 400 else seen.body

    def stop(self):
        self.forget_meters()
        if self.tap:
            self.tap.close()
        self.engine.stop()

    def new_name(self, case):
        return f"{case.name}-{next(self.numbers)}"

    def run(self, case, policy=asked.INJECT, kind=None):
        """Send the case directly and through tokenmeter; each case once in each way, for any number of tests."""
        if case.name not in self.direct:
            self.direct[case.name] = call.send(self.engine.address, case)
        if (case.name, policy, kind) not in self.runs:
            self.runs[case.name, policy, kind] = self.through(case, self.direct[case.name], policy, kind)
        return self.runs[case.name, policy, kind]

    def through(self, case, direct=None, policy=asked.INJECT, kind=None):
        meter, name = self.meter_of(policy, kind), self.new_name(case)
        engine_before = self.engine.settled_counters()
        meter_before = meter and meter.samples()
        response = call.send(self.address_of(policy, kind), case, name)
        engine_moved = Difference(engine_before, self.engine.settled_counters())
        if response.status == 200 and not case.passthrough:
            self.engine.expect_requests(engine_moved, 1)
        meter_moved = meter and meter.moved(meter_before)
        request_seen, response_seen = self.tap.exchanges(name)[-1]
        added = self.added(case, policy, kind)
        return Run(case, direct, response, request_seen, response_seen, added, engine_moved, meter_moved)
