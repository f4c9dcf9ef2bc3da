"""The engines: the start of each, and its counters that correspond to tokenmeter's."""
import os
import pathlib
import re
import time
import urllib.error
import urllib.request

from exposition import Samples, scrape
from process import WAIT_SECONDS, Process, eventually, free_port
from tap import Tap

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = pathlib.Path(os.environ.get("TOKENMETER_ENGINES", pathlib.Path.home() / ".cache/tokenmeter/engines"))


class Engine:
    """A running engine; each kind of engine is a subclass with its facts."""
    name: str
    kind: str
    """tokenmeter's name for it."""
    is_configured = False
    """True if tokenmeter is told its kind in all tests."""
    start_script: str
    ready_seconds = 900
    """Maximum seconds until it serves; on a busy machine that of vLLM takes minutes."""
    options = ()
    slots: int
    """Maximum requests that run at once; one more waits."""
    abort_seconds = 30
    """Maximum seconds for which a request may run after its client left. Idle machines need 3; that the engine stops
    before the end of its work is asserted by its counter."""
    drops_waiting_under_load = True
    """True if it removes a request from its queue as soon as the client left, while others run."""
    settle_seconds = 300
    """Maximum seconds until its counters are constant."""
    ask_every = 0.05
    """The interval, in seconds, at which it is checked for work after a client left."""
    generated: str
    """Its counter of tokens generated."""
    cached: str
    """Its counter of cached prompt tokens."""
    running: str
    """Its gauge of running requests."""
    waiting: str
    """Its gauge of requests in the queue."""
    counts_running = True
    """True if it supports running usage."""
    counts_prompt_per_choice = False
    """True if its prompt counters count a prompt once for each of n choices."""
    health = "/health"
    """The path that answers 200 once it serves."""
    models = ("tiny",)
    """The models it lists."""
    has_cache = True
    """True if it has and reports cached prompt tokens."""
    done_marks = 1
    """Number of `[DONE]` at the end of a stream."""
    stops_streams = True
    """True if it stops a stream whose client left."""
    stops_unstreamed = True
    """True if it stops an unstreamed answer whose client left."""
    received = None
    """The number of requests that the server behind a gateway received; None without a gateway."""
    counts_left = True
    """True if its counters include tokens generated for clients that left."""
    batch = 1.0
    """The share of the random requests for it: smaller for a slow engine."""
    only_by_name = False
    """True if it runs only if selected, and not with all."""
    topics = None
    """The topics it takes part in; None for all."""
    tap = None
    """The recorder of its answers; set once both run."""

    def __init__(self, logs):
        self.log = pathlib.Path(logs) / f"{self.name}.log"
        self.start()

    def start(self, *more):
        """Start it, with more options if necessary, on a new port each time."""
        self.address = ("127.0.0.1", free_port())
        begun = time.monotonic()
        self.process = Process([HERE / self.start_script, self.address[1], *self.arguments(), *self.options, *more], self.log)
        self.process.wait_until(self.ready, self.ready_seconds)
        print(f"{self.name}: ready after {time.monotonic() - begun:.1f} s, pid {self.process.child.pid}")

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.address[1]}{self.health}", timeout=WAIT_SECONDS) as reply:
                return reply.status == 200
        except urllib.error.HTTPError:
            return False                                  # still loading

    def arguments(self):
        """The arguments of its start script after the port."""
        return ()

    def stop(self):
        self.process.stop()

    def counters(self):
        return scrape(self.address)

    def settled_counters(self):
        """Its counters once no request runs and they are constant."""
        last = []

        def probe():
            now = self.counters()
            idle = now.sum(self.running) + now.sum(self.waiting) == 0
            still = last and idle and self.facts(now) == self.facts(last[0])
            last[:] = [now]
            return still
        assert eventually(probe, self.settle_seconds), f"{self.name} is still at work"
        return last[0]

    def facts(self, samples):
        """Tokens so far: computed prompt tokens, cached prompt tokens, generated tokens."""
        return self.uncached(samples), samples.sum(self.cached), samples.sum(self.generated)

    def moved(self, difference):
        """The growth of those over a time."""
        return tuple(b - a for a, b in zip(self.facts(difference.before), self.facts(difference.after)))

    def expect_requests(self, difference, count):
        """Asserts that the server behind a gateway received this number of requests: a request that the gateway repeats
        has tokens that no client receives."""
        if self.received:
            received = difference.of(self.received)
            assert received == count, f"{received:.0f} for {count}; the last ones: {self.last_received(int(max(received, count)))}"

    def stops(self, case):
        """True if it stops that case once its client left."""
        return self.stops_streams if case.streamed else self.stops_unstreamed

    def at_work(self):
        return self.counters().sum(self.running)

    def queued(self):
        return self.counters().sum(self.waiting)

    def uncached(self, samples):
        """Prompt tokens that were computed."""
        raise NotImplementedError


class LlamaCpp(Engine):
    name = "llamacpp"
    kind = "llama_cpp"
    start_script = "start-llamacpp"
    options = ("--reasoning", "off")
    slots = 4
    # It checks for clients that left after a second without any answer. /metrics counts as an answer: scraped more
    # often, it never checks.
    ask_every = 1.4
    # for the same reason: while others get tokens it never checks
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
    slots = 8
    generated = "vllm:generation_tokens_total"
    cached = "vllm:prompt_tokens_cached_total"
    running = "vllm:num_requests_running"
    waiting = "vllm:num_requests_waiting"
    counts_prompt_per_choice = True

    def uncached(self, samples):
        return samples.sum("vllm:prompt_tokens_total") - samples.sum(self.cached)


class Dynamo(Engine):
    """NVIDIA Dynamo's front end before its mocker, whose answers are random tokens whatever the seed. The counters of its
    router are exact; those named `dynamo_frontend` leave tokens without text and all prompts but one out."""
    name = kind = "dynamo"
    is_configured = True
    start_script = "start-dynamo"
    health = "/v1/models/tiny/ready"
    slots = 8
    generated = "generated"
    cached = "dynamo_frontend_cached_tokens_sum"
    router = "dynamo_component_router_"
    running = "dynamo_frontend_inflight_requests"
    waiting = "dynamo_frontend_queued_requests"
    topics = ("test_paths",)
    workers, phase = "aggregated", "aggregated"

    def arguments(self):
        return (self.workers,)

    def counters(self):
        samples = super().counters()
        # a worker for prefill generates a token, which the one for decode generates again
        prefills = samples.sum(self.router + "input_sequence_tokens_count", phase="prefill")
        samples.rows.append((self.generated, {}, samples.sum(self.router + "output_sequence_tokens_sum") - prefills))
        return samples

    def uncached(self, samples):
        return samples.sum(self.router + "input_sequence_tokens_sum", phase=self.phase) - samples.sum(self.cached)


class Disaggregated(Dynamo):
    """Dynamo's front end before a worker for prefill and one for decode."""
    workers, phase = "disaggregated", "decode"


class LiteLlm(LlamaCpp):
    """LiteLLM's proxy before llama.cpp, whose counters have the generated tokens. A tap between the two counts
    requests."""
    name = "litellm"
    kind = "openai"
    start_script = "start-litellm"
    options = ()
    health = "/health/liveliness"
    # it reads the server's answer to the end, also after its client left
    stops_streams = stops_unstreamed = False
    received = "requests_received"
    batch = 0.2

    def start(self, *more):
        self.behind = LlamaCpp(self.log.parent)
        self.between = Tap(self.behind.address)
        try:
            super().start(*more)
        except BaseException:
            self.stop_behind()
            raise

    def arguments(self):
        return self.between.address[1:]

    def last_received(self, count):
        """The last requests that the server received: their paths, what LiteLLM's client says of its repetitions, and the
        statuses."""
        return [(request.path, request.header("x-stainless-retry-count"), response and response.status)
                for request, response in self.between.in_order()[-count:]]

    def stop(self):
        super().stop()
        self.stop_behind()

    def stop_behind(self):
        self.between.close()
        self.behind.stop()

    def counters(self):
        samples = self.behind.counters()
        samples.rows.append((self.received, {}, self.between.requests()))
        return samples


class Uncounted(Engine):
    """An engine without counters: the usage of its answers, in the tap's record, replaces them, and its threads show
    that it works."""
    counts_running = False
    counts_left = False
    generated, cached, prompt, running, waiting = "said_generated", "said_cached", "said_prompt", "unanswered", "none"
    looks, at_work_looks, look_every = 10, 4, 0.03
    """At work, one of its threads runs or waits for a processor at this number of looks; idle, at none or one. The
    processor time that it gets depends on the machine."""

    def counters(self):
        said = [tokens(body) for body in self.tap.answers()]
        rows = {self.prompt: sum(prompt for prompt, _ in said), self.generated: sum(generated for _, generated in said),
                self.running: self.tap.unanswered()}
        return Samples("".join(f"{name} {value}\n" for name, value in rows.items()))

    def uncached(self, samples):
        return samples.sum(self.prompt)

    def at_work(self):
        seen = 0
        for _ in range(self.looks):
            seen += self.process.wants_processor()
            time.sleep(self.look_every)
        return int(seen >= self.at_work_looks)

    def queued(self):
        return 0


class Transformers(Uncounted):
    """`transformers serve`. It generates one answer at a time."""
    name = "transformers"
    kind = "openai"
    start_script = "start-transformers"
    slots = 1
    has_cache = False
    done_marks = 0
    stops_unstreamed = False
    models = ()
    batch = 0.2


class MistralRs(Uncounted):
    """mistral.rs. It samples its answers independently of the seed, so only bytes are compared."""
    name = "mistralrs"
    kind = "mistral_rs"
    start_script = "start-mistralrs"
    only_by_name = True
    topics = ("test_bytes", "test_refused", "test_passthrough")


class Ollama(Uncounted):
    """Ollama. Its answers follow the seed."""
    name = kind = "ollama"
    is_configured = True
    start_script = "start-ollama"
    health = "/v1/models/tiny"
    slots = 4
    only_by_name = True
    topics = ("test_paths",)


USAGE = (re.compile(rb'"(?:prompt_tokens|input_tokens|prompt_eval_count)": ?(\d+)'),
         re.compile(rb'"(?:completion_tokens|output_tokens|eval_count)": ?(\d+)'))


def tokens(body):
    """(prompt tokens, generated tokens) of an answer's usage; zeros without one."""
    return tuple(int(told[-1]) if (told := name.findall(body)) else 0 for name in USAGE)


KINDS = {kind.name: kind for kind in (LlamaCpp, LiteLlm, Vllm, Dynamo, Transformers, MistralRs, Ollama)}
