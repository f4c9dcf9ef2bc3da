"""Runs the steps of tests/run in lanes: installations, builds and tests go on at the same time.

usage: python3 tests/lanes [--long] [STEP ...]    with names of steps: those and the steps that they need
"""
import argparse
import os
import signal
import sys

from report import report
from schedule import Schedule
from steps import steps


def main():
    parser = argparse.ArgumentParser(prog="tests/run", description="Installs what the tests need, and runs them.",
                                     allow_abbrev=False)
    parser.add_argument("--long", action="store_true", help="with large counts")
    parser.add_argument("--list", action="store_true", help="print the steps and what each needs")
    parser.add_argument("step", nargs="*", help="only these steps, and those that they need")
    arguments = parser.parse_args()
    table = steps(arguments.long)
    if arguments.list:
        for step in table:
            print(f"{step.lane:8} {step.name:20} {' '.join(step.needs)}")
        return 0
    unknown = set(arguments.step) - {step.name for step in table}
    if unknown:
        parser.error(f"unknown step: {', '.join(sorted(unknown))}; --list prints all")
    schedule = Schedule(table, arguments.step)
    # An interrupted run leaves no process behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        schedule.run()
        interrupted = False
    except KeyboardInterrupt:
        schedule.stop()
        interrupted = True
    results = list(schedule.ended.values())
    print(report(results, os.getloadavg()), flush=True)
    if interrupted:
        return 130
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
