"""The engines: how to start each, and which of its own counters say what we count."""
import os
import pathlib
import re
import time
import urllib.error
import urllib.request

from exposition import Samples, scrape
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
    settle_seconds = 10
    """How long its counters may take to come to rest."""
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
    health = "/health"
    """The path that answers 200 once it serves."""
    models = ("tiny",)
    """The models it lists."""
    has_cache = True
    """Whether it has, and tells of, prompt tokens found in a cache."""
    done_marks = 1
    """How many `[DONE]` a stream ends in."""
    stops_streams = True
    """Whether it stops a stream whose client left."""
    stops_unstreamed = True
    """Whether it stops an unstreamed answer whose client left."""
    own_failure = None
    """Text of an error that the engine makes of a connection of its own: a batch that meets one is sent again."""
    counts_left = True
    """Whether its counters hold what it generated for clients that left."""
    batch = 1.0
    """The part of the random requests that it gets: fewer for a slow engine."""
    only_by_name = False
    """Whether it runs only where it is named, and not among all."""
    topics = None
    """The topics that it takes part in; None for all."""
    tap = None
    """What records its answers; set once both run."""

    def __init__(self, logs):
        self.log = pathlib.Path(logs) / f"{self.name}.log"
        self.start()

    def start(self, *more):
        """Start it, with more options if need be, on a new port each time."""
        self.address = ("127.0.0.1", free_port())
        begun = time.monotonic()
        self.process = Process([HERE / self.start_script, self.address[1], *self.arguments(), *self.options, *more], self.log)
        self.process.wait_until(self.ready, self.ready_seconds)
        print(f"{self.name}: ready after {time.monotonic() - begun:.1f} s, pid {self.process.child.pid}")

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.address[1]}{self.health}", timeout=5) as reply:
                return reply.status == 200
        except urllib.error.HTTPError:
            return False                                  # still loading

    def arguments(self):
        """What its start script gets after the port."""
        return ()

    def stop(self):
        self.process.stop()

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
        eventually(probe, self.settle_seconds)
        return last[0]

    def facts(self, samples):
        """Tokens so far: of prompts computed, of prompts found in a cache, generated."""
        return self.uncached(samples), samples.sum(self.cached), samples.sum(self.generated)

    def moved(self, difference):
        """The same over a while."""
        return tuple(b - a for a, b in zip(self.facts(difference.before), self.facts(difference.after)))

    def stops(self, case):
        """Whether it stops working on that case once its client left."""
        return self.stops_streams if case.streamed else self.stops_unstreamed

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


class LiteLlm(LlamaCpp):
    """LiteLLM's proxy before llama.cpp, whose counters say what was really generated."""
    name = "litellm"
    kind = "openai"
    start_script = "start-litellm"
    ready_seconds = 120
    options = ()
    health = "/health/liveliness"
    # it reads on from the server to the end, whatever its client does
    stops_streams = stops_unstreamed = False
    own_failure = b'"message": "Connection closed."'      # seen on /v1/messages: its pool closed a connection in use
    settle_seconds = 60
    batch = 0.2

    def start(self, *more):
        self.behind = LlamaCpp(self.log.parent)
        try:
            super().start(*more)
        except BaseException:
            self.behind.stop()
            raise

    def arguments(self):
        return self.behind.address[1:]

    def stop(self):
        super().stop()
        self.behind.stop()

    def counters(self):
        return self.behind.counters()


class Uncounted(Engine):
    """An engine without counters: what its answers say, by the tap's record, stands for them, and the processor
    time that it takes for being at work."""
    counts_running = False
    counts_left = False
    generated, cached, prompt, running, waiting = "said_generated", "said_cached", "said_prompt", "unanswered", "none"
    at_work_ticks, at_work_seconds = 3, 0.3
    """Hundredths of a second of processor time within that time: idle, it takes none or one."""

    def counters(self):
        said = [tokens(body) for body in self.tap.answers()]
        rows = {self.prompt: sum(prompt for prompt, _ in said), self.generated: sum(generated for _, generated in said),
                self.running: self.tap.unanswered()}
        return Samples("".join(f"{name} {value}\n" for name, value in rows.items()))

    def uncached(self, samples):
        return samples.sum(self.prompt)

    def at_work(self):
        before = self.process.ticks()
        time.sleep(self.at_work_seconds)
        return int(self.process.ticks() - before >= self.at_work_ticks)

    def queued(self):
        return 0


class Transformers(Uncounted):
    """`transformers serve`. It generates one answer at a time."""
    name = "transformers"
    kind = "openai"
    start_script = "start-transformers"
    ready_seconds = 300
    slots = 1
    # It stops at its next token as a rule. On a busy machine it has been seen to work for longer than 3 s;
    # that we leave at once is asserted apart from it.
    abort_seconds = 30
    has_cache = False
    done_marks = 0
    stops_unstreamed = False
    models = ()
    batch = 0.2


class MistralRs(Uncounted):
    """mistral.rs. It draws its answers at random whatever the seed, so that only bytes are compared."""
    name = "mistralrs"
    kind = "mistral_rs"
    start_script = "start-mistralrs"
    ready_seconds = 300
    abort_seconds = 3
    only_by_name = True
    topics = ("test_bytes", "test_refused", "test_passthrough")


USAGE = re.compile(rb'"(?:prompt_tokens|input_tokens)": ?(\d+)'), re.compile(rb'"(?:completion_tokens|output_tokens)": ?(\d+)')


def tokens(body):
    """(prompt tokens, generated tokens) that an answer tells of in the end; zeros where it does not."""
    return tuple(int(told[-1]) if (told := name.findall(body)) else 0 for name in USAGE)


KINDS = {kind.name: kind for kind in (LlamaCpp, LiteLlm, Vllm, Transformers, MistralRs)}
