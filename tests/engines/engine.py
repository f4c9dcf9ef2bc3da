"""The engines: how to start each, and which of its own counters say what we count."""
import os
import pathlib
import time
import urllib.error
import urllib.request

from exposition import scrape
from process import Process, eventually, free_port

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = pathlib.Path(os.environ.get("TOKENMETER_ENGINES", pathlib.Path.home() / ".cache/tokenmeter/engines"))


class Engine:
    """A running engine; each kind of engine is a subclass that fills in the facts."""
    name: str
    kind: str
    """What tokenmeter calls it."""
    start_script: str
    ready_seconds: float
    options = ()
    slots: int
    """How many requests run at once; one more waits."""
    abort_seconds: float
    """How long after its client left a request may still be running."""
    drops_waiting_under_load = True
    """Whether it drops a request from its queue as soon as the client left, while others are at work."""
    ask_every = 0.05
    """How often to ask it, in seconds, whether it still works for a client that left."""
    generated: str
    """Its counter of tokens generated."""
    cached: str
    """Its counter of prompt tokens found in a cache."""
    running: str
    """Its gauge of requests at work."""
    waiting: str
    """Its gauge of requests in the queue."""
    counts_running = True
    """Whether it can be asked for running usage."""
    counts_prompt_per_choice = False
    """Whether its prompt counters count a prompt once for each of n choices."""

    def __init__(self, logs):
        self.log = pathlib.Path(logs) / f"{self.name}.log"
        self.start()

    def start(self, *more):
        """Start it, with more options if need be, on a new port each time."""
        self.address = ("127.0.0.1", free_port())
        begun = time.monotonic()
        self.process = Process([HERE / self.start_script, self.address[1], *self.options, *more], self.log)
        self.process.wait_until(self.ready, self.ready_seconds)
        print(f"{self.name}: ready after {time.monotonic() - begun:.1f} s, pid {self.process.child.pid}")

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.address[1]}/health", timeout=5) as reply:
                return reply.status == 200
        except urllib.error.HTTPError:
            return False                                  # still loading

    def counters(self):
        return scrape(self.address)

    def settled_counters(self):
        """Its counters once no request runs and they have stopped moving."""
        last = []

        def probe():
            now = self.counters()
            idle = now.sum(self.running) + now.sum(self.waiting) == 0
            still = last and idle and self.facts(now) == self.facts(last[0])
            last[:] = [now]
            return still
        eventually(probe, 10)
        return last[0]

    def facts(self, samples):
        """Tokens so far: of prompts computed, of prompts found in a cache, generated."""
        return self.uncached(samples), samples.sum(self.cached), samples.sum(self.generated)

    def moved(self, difference):
        """The same over a while."""
        return tuple(b - a for a, b in zip(self.facts(difference.before), self.facts(difference.after)))

    def at_work(self):
        return self.counters().sum(self.running)

    def queued(self):
        return self.counters().sum(self.waiting)

    def uncached(self, samples):
        """Prompt tokens that were really computed."""
        raise NotImplementedError


class LlamaCpp(Engine):
    name = "llamacpp"
    kind = "llama_cpp"
    start_script = "start-llamacpp"
    ready_seconds = 60
    options = ("--reasoning", "off")
    slots = 4
    abort_seconds = 3
    # It looks for clients that left after a second in which it had no answer for anyone, and
    # /metrics counts as one: asked more often than that, it never looks.
    ask_every = 1.4
    # for the same reason: while others get tokens it never looks
    drops_waiting_under_load = False
    generated = "llamacpp:tokens_predicted_total"
    cached = "llamacpp:prompt_tokens_cached_total"
    counts_running = False
    running = "llamacpp:requests_processing"
    waiting = "llamacpp:requests_deferred"

    def uncached(self, samples):
        return samples.sum("llamacpp:prompt_tokens_total")


class Vllm(Engine):
    name = kind = "vllm"
    start_script = "start-vllm"
    ready_seconds = 600
    slots = 8
    abort_seconds = 2
    generated = "vllm:generation_tokens_total"
    cached = "vllm:prompt_tokens_cached_total"
    running = "vllm:num_requests_running"
    waiting = "vllm:num_requests_waiting"
    counts_prompt_per_choice = True

    def uncached(self, samples):
        return samples.sum("vllm:prompt_tokens_total") - samples.sum(self.cached)


KINDS = {kind.name: kind for kind in (LlamaCpp, Vllm)}
