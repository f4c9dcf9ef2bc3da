"""One engine with everything before it: client → meter → tap → engine.

With `--proxy=none` the meter is left out and the client talks to the tap.
"""
import itertools
from dataclasses import dataclass

import call
from engine import KINDS
from exposition import Difference
from meter import Meter
from tap import Tap


@dataclass
class Run:
    """A case sent once directly and once through, with all that was seen of it."""
    case: object
    direct: object
    """The response without us; None for a case that a direct run would disturb."""
    response: object
    """The response the client got through us."""
    request_seen: object
    """The request as it reached the engine."""
    response_seen: object
    """The response as it left the engine."""
    engine: Difference
    """Its counters over the second run."""
    meter: Difference


class Rig:
    def __init__(self, kind, logs, metered):
        self.engine = KINDS[kind](logs)
        self.tap = self.meter = None
        self.runs, self.numbers = {}, itertools.count(1)
        try:
            self.tap = Tap(self.engine.address)
            self.meter = Meter(self.tap.address, logs) if metered else None
        except BaseException:
            self.stop()
            raise

    @property
    def address(self):
        """Where clients are to go."""
        return self.meter.address if self.meter else self.tap.address

    def stop(self):
        if self.meter:
            self.meter.stop()
        if self.tap:
            self.tap.close()
        self.engine.process.stop()

    def new_name(self, case):
        return f"{case.name}-{next(self.numbers)}"

    def run(self, case):
        """Send the case directly and through us; each case once, however many tests ask."""
        if case.name not in self.runs:
            direct = call.send(self.engine.address, case)
            self.runs[case.name] = self.through(case, direct)
        return self.runs[case.name]

    def through(self, case, direct=None):
        engine_before = self.engine.settled_counters()
        meter_before = self.meter and self.meter.samples()
        name = self.new_name(case)
        response = call.send(self.address, case, name)
        engine_moved = Difference(engine_before, self.engine.settled_counters())
        meter_moved = self.meter and self.meter.moved(meter_before)
        request_seen, response_seen = self.tap.exchanges(name)[-1]
        return Run(case, direct, response, request_seen, response_seen, engine_moved, meter_moved)
