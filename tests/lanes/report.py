"""The end of a run's output: the seconds of each step, and the slowest tests."""
import os
import re

SHOWN = 10
"""How many of the slowest tests are shown."""

DURATIONS = (
    # libtest with --report-time
    re.compile(r"^test (?P<name>.+?) \.\.\. ok <(?P<s>[\d.]+)s>$"),
    # pytest with --durations: the call of a test, not its fixtures, which several share
    re.compile(r"^(?P<s>[\d.]+)s call +(?P<name>\S+)$"),
    # node --test
    re.compile(r"^\s*✔ (?P<name>.+) \((?P<ms>[\d.]+)ms\)$"),
)
"""The lines in which test programs print the duration of a test."""


def durations(output):
    """Yields the seconds and the name of each test in the output of a step."""
    for line in output.splitlines():
        for pattern in DURATIONS:
            if match := pattern.match(line):
                groups = match.groupdict()
                yield float(groups["s"]) if groups.get("s") else float(groups["ms"]) / 1000, groups["name"]


def report(results, load):
    """The text for the results of a run."""
    lines = ["== steps in order of their start: seconds, then processor seconds"]
    for result in sorted(results, key=lambda result: result.start):
        verdict = "" if result.passed else "  SKIPPED" if result.skipped else "  FAILED"
        lines.append(f"{result.start:6.0f} to {result.end:5.0f}: {result.seconds:5.0f} s {result.processor_s:6.0f} s  "
                     f"{result.step.lane:8}{result.step.name}{verdict}")
    slowest = sorted(((seconds, name, result.step.name) for result in results
                      for seconds, name in durations(result.output)), reverse=True)[:SHOWN]
    lines.append(f"\n== the {len(slowest)} slowest tests")
    lines += [f"{seconds:6.1f} s  {step}: {name}" for seconds, name, step in slowest]
    failed = sum(not result.passed for result in results)
    total = max((result.end for result in results), default=0)
    processor_s = sum(result.processor_s for result in results)
    lines.append(f"\n== {len(results) - failed} steps passed, {failed} failed, {total:.0f} s, {processor_s:.0f} s of "
                 f"{os.cpu_count()} processors; "
                 f"load averages {' '.join(f'{value:.2f}' for value in load)}")
    return "\n".join(lines)
