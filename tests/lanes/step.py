"""A step of tests/run: a command, its lane, and the steps that must have passed before it."""
from dataclasses import dataclass

LANES = {"install": 1, "build": 2, "test": 3}
"""The lanes, and how many of its steps each runs at a time. A link uses one core of a small machine, so another build runs
beside it; most tests wait for a clock or for a server, so three of them run beside both."""

NICENESS = {"install": 5, "build": 10, "test": 0}
"""What each lane adds to the niceness of its commands: tests come first, because some of them measure time."""


@dataclass(frozen=True)
class Step:
    """A command of bash, run in the repository's root. The steps of a lane start in the order of the table."""

    name: str
    lane: str
    command: str
    needs: tuple = ()


@dataclass(frozen=True)
class Result:
    """How a step ended. `start` and `end` are seconds since the start of the run, `processor_s` those of all its processes
    whose parents waited for them; a step that needs one that failed is skipped: it has no times."""

    step: Step
    passed: bool
    start: float = 0.0
    end: float = 0.0
    processor_s: float = 0.0
    output: str = ""
    skipped: bool = False

    @property
    def seconds(self):
        return self.end - self.start
