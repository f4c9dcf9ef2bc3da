"""The program under test, as a process: started before an upstream, scraped, stopped."""
import os
import pathlib
import urllib.request

from exposition import Difference, scrape
from process import WAIT_SECONDS, Process, eventually, free_port

EXCHANGES = "tokenmeter_exchanges_total"
PASSED = "tokenmeter_passthrough_total"
TOKENS = "tokenmeter_tokens_total"
UNREAD = (("tokenmeter_unknown_usage_total", "member"), ("tokenmeter_usage_disagreements_total", "disagreement"),
          ("tokenmeter_mislabelled_responses_total", "stated"))
"""The metrics of answers that are not understood, each with the label of the reason."""


class Meter:
    command = ()
    """A command that runs the program."""

    def __init__(self, upstream, logs, kind, *options, engine_metrics="off"):
        """Starts it before one upstream. With `off` it sends no requests of its own to the engine: the tap and the
        engine's counters contain the tests' requests only."""
        self.address = ("127.0.0.1", free_port())
        name = "-".join(["tokenmeter", kind, *(value for value in options[1::2] if "/" not in value)])
        self.start(pathlib.Path(logs) / name, "--upstream", "http://%s:%d" % upstream, "--listen", "%s:%d" % self.address,
                   "--kind", kind, "--engine-metrics", engine_metrics, *options)

    def start(self, log, *options):
        binary = os.environ.get("TOKENMETER_BIN", "")
        if not os.access(binary, os.X_OK):
            raise RuntimeError(f"TOKENMETER_BIN={binary!r} is not a program; build one: cargo build -p tokenmeter --release")
        self.admin = ("127.0.0.1", free_port())
        self.process = Process([*self.command, binary, "run", "--admin", "%s:%d" % self.admin,
                                "--drain-delay-ms", "0", *options], log)
        self.process.wait_until(lambda: self.answers("/readyz"), WAIT_SECONDS)

    def answers(self, path):
        """True if the admin port answers 200 there."""
        with urllib.request.urlopen(f"http://{self.admin[0]}:{self.admin[1]}{path}", timeout=WAIT_SECONDS) as reply:
            return reply.status == 200

    def samples(self):
        return scrape(self.admin)

    def moved(self, before, exchanges=1):
        """The growth since `before`, once this number of exchanges has ended, or after `WAIT_SECONDS`."""
        def ended(samples):
            return samples.sum(EXCHANGES) + samples.sum(PASSED)
        latest = []

        def probe():
            latest[:] = [self.samples()]
            return ended(latest[0]) >= ended(before) + exchanges
        eventually(probe)
        return Difference(before, latest[0])

    def stop(self):
        self.process.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
