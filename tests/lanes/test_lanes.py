"""Tests of the runner: python3 -m unittest discover tests/lanes"""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import report
import steps
from schedule import Schedule
from step import LANES, Result, Step


def run(*table, names=()):
    """The results by name, and what was printed."""
    printed = io.StringIO()
    schedule = Schedule(table, names)
    with contextlib.redirect_stdout(printed):
        schedule.run()
    return schedule.ended, printed.getvalue()


class Lanes(unittest.TestCase):
    def test_a_lane_runs_as_many_steps_as_it_takes(self):
        for lane, limit in LANES.items():
            first = [Step(str(number), lane, "sleep 0.3") for number in range(limit)]
            results, _ = run(*first, Step("next", lane, "true"))
            ends = [results[step.name].end for step in first]
            self.assertGreaterEqual(results["next"].start, min(ends))
            self.assertLess(max(results[step.name].start for step in first), min(ends))

    def test_lanes_overlap(self):
        results, _ = run(Step("a", "build", "sleep 1"), Step("b", "test", "sleep 1"), Step("c", "install", "sleep 1"))
        self.assertLess(max(result.start for result in results.values()), min(result.end for result in results.values()))

    def test_a_step_starts_after_those_that_it_needs(self):
        results, _ = run(Step("a", "build", "sleep 0.3"), Step("b", "test", "true", ("a",)), Step("c", "test", "true"))
        self.assertGreaterEqual(results["b"].start, results["a"].end)
        self.assertLess(results["c"].start, results["a"].end)

    def test_failure_skips_only_what_needs_it(self):
        results, printed = run(Step("a", "build", "echo why; false; echo never"), Step("b", "test", "true", ("a",)),
                               Step("c", "test", "true", ("b",)), Step("d", "test", "true"))
        self.assertEqual({name: result.passed for name, result in results.items()},
                         {"a": False, "b": False, "c": False, "d": True})
        self.assertTrue(results["b"].skipped and results["c"].skipped and not results["a"].skipped)
        self.assertIn("why", printed)
        self.assertNotIn("never", printed)

    def test_names_bring_what_they_need(self):
        table = Step("a", "build", "true"), Step("b", "test", "true", ("a",)), Step("c", "test", "false")
        results, _ = run(*table, names=["b"])
        self.assertEqual(set(results), {"a", "b"})

    def test_no_process_outlives_its_step(self):
        with tempfile.NamedTemporaryFile() as file:
            run(Step("a", "test", f"(sleep 60; true) & echo $! > {file.name}"))
            pid = int(pathlib.Path(file.name).read_text())
        for _ in range(50):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            if pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return
            time.sleep(0.1)
        self.fail(f"{pid} runs still")

    def test_interrupted_steps_print_what_they_have(self):
        schedule, printed = Schedule([Step("a", "test", "echo so far; sleep 60")]), io.StringIO()
        with contextlib.redirect_stdout(printed):
            schedule._start_steps()
            time.sleep(0.5)
            schedule.stop()
        self.assertIn("so far", printed.getvalue())
        self.assertFalse(schedule.ended["a"].passed)

    def test_a_table_that_could_wait_for_ever_is_refused(self):
        for table in ([Step("a", "test", "true", ("b",)), Step("b", "test", "true")],
                      [Step("a", "test", "true"), Step("a", "test", "true")], [Step("a", "tests", "true")]):
            with self.assertRaises(ValueError):
                Schedule(table)

    def test_tables_are_in_order(self):
        for is_long in (False, True):
            Schedule(steps.steps(is_long))


class Report(unittest.TestCase):
    OUTPUT = "\n".join(["test a::b ... ok <1.250s>", "test c ... ignored", "2.50s call     test_x.py::test_y[z]",
                        "9.00s setup    test_x.py::test_y[z]", "  ✔ loads (1500.5ms)", "test result: ok. 1 passed"])

    def test_durations_of_three_programs(self):
        self.assertEqual(list(report.durations(self.OUTPUT)),
                         [(1.25, "a::b"), (2.5, "test_x.py::test_y[z]"), (1.5005, "loads")])

    def test_text_has_steps_and_slowest_tests(self):
        text = report.report([Result(Step("later", "test", ""), True, 5, 9, 7, self.OUTPUT),
                              Result(Step("first", "build", ""), False, 0, 4)], (1, 2, 3))
        self.assertLess(text.index("first  FAILED"), text.index("later"))
        self.assertLess(text.index("2.5 s  later: test_x.py::test_y[z]"), text.index("1.2 s  later: a::b"))
        self.assertIn("1 steps passed, 1 failed, 9 s, 7 s of", text)

    def test_processor_time_is_that_of_a_steps_processes(self):
        results, _ = run(Step("busy", "test", "python3 -c 'import time\nwhile time.process_time() < 1: pass'"),
                         Step("idle", "test", "sleep 1"))
        self.assertGreater(results["busy"].processor_s, 1)
        self.assertLess(results["idle"].processor_s, 0.5)


if __name__ == "__main__":
    unittest.main()
