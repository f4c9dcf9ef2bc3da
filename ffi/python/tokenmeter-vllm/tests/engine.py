"""A stand-in for vLLM 0.32: the classes that are hooked, with its signatures and its rules of counting.

What it keeps of vLLM: internal request ids with a random end, child requests for n > 1, counting before surplus tokens
are cut, the state of a request that goes with its end or abort, one output at the end of an unstreamed request.
"""
import asyncio
import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace

numbers = itertools.count()


@dataclass
class SamplingParams:
    n: int = 1
    streamed: bool = True
    streamed_input: bool = False
    stop_after: int | None = None
    """A stop string after this many tokens."""


@dataclass
class PrefillStats:
    num_prompt_tokens: int
    num_cached_tokens: int = 0
    num_cache_creation_tokens: int = 1


@dataclass
class EngineCoreOutput:
    request_id: str
    new_token_ids: list
    finish_reason: str | None = None
    prefill_stats: PrefillStats | None = None


@dataclass
class EngineCoreRequest:
    request_id: str
    external_req_id: str
    params: SamplingParams


class RequestState:
    def __init__(self, request, index, queue):
        self.request_id, self.external_req_id = request.request_id, request.external_req_id
        self.params, self.request_index, self.queue = request.params, index, queue
        self.is_prefilling, self.streaming_input, self.count = True, False, 0


class OutputProcessor:
    def __init__(self):
        self.request_states, self.children, self.reasons = {}, {}, []
        self.generation_tokens_total, self.prompt_tokens_total = 0, 0

    def add_request(self, request, prompt, parent_req=None, request_index=0, queue=None):
        self.request_states[request.request_id] = RequestState(request, request_index, queue)

    def process_outputs(self, engine_core_outputs, engine_core_timestamp=None, iteration_stats=None, weight_version=None):
        stopped = []
        for output in engine_core_outputs:
            state = self.request_states.get(output.request_id)
            if state is None:
                continue
            self.generation_tokens_total += len(output.new_token_ids)
            if state.is_prefilling and output.prefill_stats:
                self.prompt_tokens_total += output.prefill_stats.num_prompt_tokens
            state.is_prefilling = False
            reason, limit = output.finish_reason, state.params.stop_after
            if limit is not None and state.count + len(output.new_token_ids) >= limit:
                del output.new_token_ids[limit - state.count :]
                if reason is None:
                    stopped.append(output.request_id)
                reason = "stop"
            state.count += len(output.new_token_ids)
            if reason:
                self.finish(state)
                self._update_stats_from_finished(state, reason, iteration_stats)
            if state.queue is not None and (state.params.streamed or reason):
                finished = not state.queue.open
                state.queue.put_nowait(SimpleNamespace(finished=finished, tokens=len(output.new_token_ids)))
        return SimpleNamespace(request_outputs=[], reqs_to_abort=stopped)

    def _update_stats_from_finished(self, req_state, finish_reason, iteration_stats):
        self.reasons.append(finish_reason)

    def finish(self, state):
        del self.request_states[state.request_id]
        if state.queue is not None:
            state.queue.open.discard(state.request_id)

    def abort(self, queue):
        for request_id in list(queue.open):
            self.finish(self.request_states[request_id])


class Queue(asyncio.Queue):
    """The outputs of a generation, and the ids of its requests in flight."""

    def __init__(self):
        super().__init__()
        self.open = set()


class AsyncLLM:
    def __init__(self):
        self.output_processor = OutputProcessor()
        self.model_config = SimpleNamespace(served_model_name=["tiny"], model="/models/tiny")
        self.rejects = self.send_waits = False

    async def add_request(self, request_id, prompt, params):
        await asyncio.sleep(0)                             # rendering the prompt
        if self.rejects:
            raise ValueError("too long")
        internal, queue = f"{request_id}-{next(numbers):08x}", Queue()
        ids = [internal] if params.n == 1 else [f"{index}_{internal}" for index in range(params.n)]
        queue.open = set(ids)
        if params.streamed_input:                          # a task of its own adds the parts of the input
            asyncio.get_running_loop().create_task(self.add_parts(ids[0], request_id, params, queue))
            return queue
        for index, child in enumerate(ids):
            request = EngineCoreRequest(child, request_id, params)
            self.output_processor.add_request(request, None, None, index, queue)
        if self.send_waits:                                # the send to the engine; it completes at once but for a full queue
            await asyncio.sleep(0)
        return queue

    async def add_parts(self, internal, request_id, params, queue):
        for _ in range(2):
            await asyncio.sleep(0)
            if internal not in self.output_processor.request_states:
                request = EngineCoreRequest(internal, request_id, params)
                self.output_processor.add_request(request, None, None, 0, queue)

    async def generate(self, prompt, sampling_params, request_id, *, lora_request=None, priority=0):
        queue = None
        try:
            queue = await self.add_request(request_id, prompt, sampling_params)
            finished = False
            while not finished:
                output = await queue.get()
                finished = output.finished
                yield output
        except (asyncio.CancelledError, GeneratorExit):
            if queue is not None:
                self.output_processor.abort(queue)
            raise

    def step(self, tokens=1, finish=None, only=None, prompt=5, cached=2):
        """One engine step: new tokens for all requests, or for the chosen ones."""
        states = [state for state in self.output_processor.request_states.values() if only is None or only(state)]
        outputs = [
            EngineCoreOutput(state.request_id, list(range(tokens)), finish, PrefillStats(prompt, cached) if state.is_prefilling else None)
            for state in states
        ]
        return self.output_processor.process_outputs(outputs, 0.0, None, weight_version=None)

    def hold(self, only=lambda state: True):
        """The outputs that the engine made, but that are not processed yet."""
        return [EngineCoreOutput(state.request_id, [1, 2, 3]) for state in self.output_processor.request_states.values() if only(state)]
