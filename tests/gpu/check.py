"""Compares tokenmeter's energy of a GPU with the card's own counter. See README.md."""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent / "../engines"))
from exposition import Difference  # noqa: E402
from meter import Meter  # noqa: E402
from nvml import Card, StandIn  # noqa: E402
from process import Process, eventually, free_port  # noqa: E402

GROWN = "hw_energy_joules_total"
ATTRIBUTED = "tokenmeter_energy_attributed_joules_total"
IDLE = "tokenmeter_energy_idle_joules_total"
NOBODYS = "tokenmeter_energy_unattributed_joules_total"
PENDING = "tokenmeter_energy_pending_joules"
PERIOD = 0.5


class Load:
    """Runs this number of streams at once, repeatedly, until it ends."""

    def __init__(self, address, streams):
        self.address, self.stopping, self.tokens, self.failed = address, False, 0, []
        self.threads = [threading.Thread(target=self.run) for _ in range(streams)]
        for thread in self.threads:
            thread.start()

    def run(self):
        body = {"model": "random", "stream": True, "max_tokens": 200, "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": "go on"}]}
        request = urllib.request.Request("http://%s:%d/v1/chat/completions" % self.address, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        while not self.stopping:
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    text = reply.read().decode()
                self.tokens += json.loads(text.split("data: ")[-2])["usage"]["completion_tokens"]
            except Exception as error:  # reported at the end, by the thread that checks
                self.failed.append(repr(error))
                return

    def end(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise RuntimeError(f"streams failed: {self.failed[0]}")


class Check:
    def __init__(self, card, meter, stand_in):
        self.card, self.meter, self.stand_in = card, meter, stand_in
        self.rows, self.wrong = [], []

    def phase(self, streams, seconds):
        """One phase; the growth of the counters in it is checked."""
        before, counter, began = self.meter.samples(), self.card.joules(), time.monotonic()
        tokens = 0
        if self.stand_in:
            self.stand_in.streams = streams
        if streams:
            load = Load(self.meter.address, streams)
            time.sleep(seconds)
            load.end()
            tokens = load.tokens
        else:
            time.sleep(seconds)
        if self.stand_in:
            self.stand_in.streams = 0
        # The last exchange is complete with the sample after it.
        eventually(lambda: self.meter.samples().sum(PENDING) < 0.001, 10 * PERIOD, every=PERIOD / 4)
        took, grown_here = time.monotonic() - began, self.card.joules() - counter
        moved = Difference(before, self.meter.samples())
        grown, attributed, idle = moved.of(GROWN), moved.of(ATTRIBUTED), moved.of(IDLE)
        nobodys, pending = moved.of(NOBODYS), moved.of(PENDING)
        watts = grown_here / took
        where = f"{streams} streams"
        self.holds(where, "grown = attributed + idle + unattributed + pending",
                   grown, attributed + idle + nobodys + pending, 0.01)
        self.holds(where, "grown by tokenmeter = grown by NVML", grown, grown_here, 2 * PERIOD * max(watts, 50) + 1)
        self.holds(where, "unattributed is next to nothing", nobodys, 0, grown / 100 + 0.01)
        if not streams:
            self.holds(where, "nothing is attributed", attributed, 0, 0.01)
        each = f"{attributed / tokens:.3f}" if tokens else "-"
        self.rows.append([streams, f"{took:.1f}", f"{watts:.1f}", f"{grown:.2f}", f"{attributed:.2f}", f"{idle:.2f}",
                          f"{nobodys:.2f}", tokens, each])

    def holds(self, where, what, one, other, within):
        if abs(one - other) > within:
            self.wrong.append(f"{where}: {what}: {one:.3f} and {other:.3f}, over {within:.3f} apart")

    def say(self):
        head = ["streams", "s", "W", "grown J", "attributed J", "idle J", "nobody's J", "tokens", "J/token"]
        for row in [head, *self.rows]:
            print("  ".join(f"{str(cell):>12}" for cell in row))
        for wrong in self.wrong:
            print("WRONG", wrong)
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        stand_in = StandIn(folder) if options.rehearse else None
        library = stand_in.library if stand_in else "libnvidia-ml.so.1"
        port = free_port()
        server = Process([sys.executable, pathlib.Path(__file__).parent / "server.py", port,
                          "none" if stand_in else "cuda"], folder / "server")
        meter = None
        try:
            url = f"http://127.0.0.1:{port}/v1/models"
            server.wait_until(lambda: urllib.request.urlopen(url, timeout=5).status == 200, 120)
            more = ["--gpu", "nvml", "--gpu-sample-ms", str(int(PERIOD * 1000))]
            if stand_in:
                os.environ["LD_LIBRARY_PATH"] = str(folder)
            meter = Meter(("127.0.0.1", port), folder, "vllm", *more)
            if not eventually(lambda: meter.samples().has(GROWN), 30):
                raise RuntimeError(f"tokenmeter says nothing of a GPU: {meter.process.describe()}")
            check = Check(Card(library), meter, stand_in)
            for streams in [0, 1, 4, 16, 0]:
                check.phase(streams, options.seconds)
            return check.say()
        finally:
            if meter:
                meter.stop()
            server.stop()
            if stand_in:
                stand_in.stop()


if __name__ == "__main__":
    sys.exit(main())
