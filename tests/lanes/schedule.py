"""Runs steps in their lanes, each after those that it needs. The output of a step is printed when it ends."""
import os
import signal
import subprocess
import tempfile
import time

from step import LANES, NICENESS, Result

PAUSE_S = 0.2
"""Seconds between two checks of the running steps."""


class Schedule:
    """The steps that wait, run, and have ended. A failed step stops only the steps that need it, so one run finds every
    failure."""

    def __init__(self, table, names=()):
        _check(table)
        self.table = [step for step in table if not names or step.name in _with_needs(table, names)]
        self.waiting = list(self.table)
        self.running = {}
        self.ended = {}
        self.start = time.monotonic()

    def run(self):
        """Runs all steps; `ended` has their results, in the order of their ends."""
        while self.waiting or self.running:
            self._skip()
            self._start_steps()
            time.sleep(PAUSE_S)
            self._end_steps()

    def stop(self):
        """Kills the processes of all running steps, and prints their output: one of them may be what hangs."""
        for step, (process, _, _) in list(self.running.items()):
            _kill(process)
            self._end(step, *os.wait4(process.pid, 0)[1:])

    def _skip(self):
        # In the order of the table: a skipped step then skips those that need it.
        for step in list(self.waiting):
            if any(self._has_failed(need) for need in step.needs):
                self.waiting.remove(step)
                self._finish(Result(step, passed=False, skipped=True))

    def _has_passed(self, name):
        return name in self.ended and self.ended[name].passed

    def _has_failed(self, name):
        return name in self.ended and not self.ended[name].passed

    def _start_steps(self):
        for step in list(self.waiting):
            in_lane = sum(other.lane == step.lane for other in self.running)
            if in_lane < LANES[step.lane] and all(self._has_passed(need) for need in step.needs):
                self.waiting.remove(step)
                self._spawn(step)

    def _spawn(self, step):
        output = tempfile.TemporaryFile()
        nice = ["nice", "-n", str(NICENESS[step.lane])]
        process = subprocess.Popen([*nice, "bash", "-c", f"set -euo pipefail\n{step.command}"], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self.running[step] = process, output, self._now()
        print(f"-- {self._now():4.0f} s: {step.name}", flush=True)

    def _end_steps(self):
        for step, (process, _, _) in list(self.running.items()):
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                self._end(step, status, usage)

    def _end(self, step, status, usage):
        process, output, start = self.running.pop(step)
        process.returncode = os.waitstatus_to_exitcode(status)
        _kill(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
        output.close()
        processor_s = usage.ru_utime + usage.ru_stime
        self._finish(Result(step, process.returncode == 0, start, self._now(), processor_s, text))

    def _finish(self, result):
        self.ended[result.step.name] = result
        verdict = "passed" if result.passed else "SKIPPED" if result.skipped else "FAILED"
        print(f"\n== {result.step.name}: {verdict} in {result.seconds:.0f} s, at {self._now():.0f} s\n{result.output}",
              flush=True)

    def _now(self):
        return time.monotonic() - self.start


def _check(table):
    """Raises an error unless each name is used once and each step comes after those that it needs: a step must not wait
    for ever."""
    seen = set()
    for step in table:
        if step.name in seen:
            raise ValueError(f"two steps are named {step.name}")
        if missing := set(step.needs) - seen:
            raise ValueError(f"{step.name} needs {', '.join(sorted(missing))}, but no earlier step has that name")
        if step.lane not in LANES:
            raise ValueError(f"{step.name} is of the lane {step.lane}, which does not exist")
        seen.add(step.name)


def _with_needs(table, names):
    """These names, and those of all steps that they need."""
    needs = {step.name: step.needs for step in table}
    found, open_names = set(), list(names)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names.extend(needs[name])
    return found


def _kill(process):
    """Kills the processes that remain of a step: a server that a test did not stop would slow down other tests."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
