"""The hooks on vLLM's own classes, without an engine: `PYTHONPATH=… VLLM_PYTHON with_vllm.py` runs it.

The plugin is registered before the engine is imported, as vLLM does. Requests, children, stop strings and aborts go
through the real `OutputProcessor`; the count must be that of vLLM's `IterationStats`.
"""
import asyncio
import collections
import os
import pathlib
import random
import sys

import vllm
from recording import RecordingMeter
from tokenmeter_vllm import plugin, registry as registries
from tokenmeter_vllm.registry import Registry
from tokenmeter_vllm.settings import Settings

ENGINES = pathlib.Path(os.environ.get("TOKENMETER_ENGINES", pathlib.Path.home() / ".cache/tokenmeter/engines"))
MODEL = ENGINES / "model" / "tiny-hf"
meter = RecordingMeter()
registries.current, registries.tried = Registry(meter, Settings()), True
plugin.register()
assert "vllm.v1.engine.async_llm" not in sys.modules and plugin.installed is None
from vllm.v1.engine import async_llm  # noqa: E402

assert plugin.installed is not None, "not hooked by the import"
from transformers import AutoTokenizer  # noqa: E402
from vllm.sampling_params import RequestOutputKind, SamplingParams  # noqa: E402
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest, FinishReason  # noqa: E402
from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector  # noqa: E402
from vllm.v1.engine.parallel_sampling import ParentRequest  # noqa: E402
from vllm.v1.metrics.stats import IterationStats, PrefillStats  # noqa: E402

assert async_llm.OutputProcessor is OutputProcessor


class Llm(async_llm.AsyncLLM):
    """`AsyncLLM` with its own `generate`, and an engine that is this program."""

    def __init__(self):
        self.output_processor = OutputProcessor(AutoTokenizer.from_pretrained(MODEL), log_stats=True)
        self.log_requests, self.stopped = False, 0
        self.model_config = type("Config", (), {"served_model_name": "tiny", "model": "tiny"})
        self.prompt, self.generation, self.trimmed, self.number = 0, 0, 0, 0
        self.reasons, self.stops_at_limit = collections.Counter(), 0

    def __del__(self):
        pass

    async def add_request(self, request_id, prompt, params, **_):
        await asyncio.sleep(0)
        self.number += 1
        internal = f"{request_id}-{self.number:08x}"
        queue = RequestOutputCollector(params.output_kind, internal)
        request = self.request(internal, request_id, params)
        if params.n == 1:
            self.output_processor.add_request(request, None, None, 0, queue)
            return queue
        parent = ParentRequest(request)
        for index in range(params.n):
            child, child_params = parent.get_child_info(index)
            self.output_processor.add_request(self.request(child, request_id, child_params), None, parent, index, queue)
        return queue

    @staticmethod
    def request(internal, external, params):
        return EngineCoreRequest(
            request_id=internal, external_req_id=external, prompt_token_ids=[1, 2, 3], mm_features=None, sampling_params=params,
            pooling_params=None, arrival_time=0.0, lora_request=None, cache_salt=None, data_parallel_rank=None)

    async def abort(self, request_id, internal=False):
        self.output_processor.abort_requests([request_id], internal)

    def step(self, outputs):
        stats = IterationStats()
        states = self.output_processor.request_states
        at_limit = sum(output.finish_reason is FinishReason.LENGTH and output.request_id in states for output in outputs)
        made = sum(len(output.new_token_ids) for output in outputs)
        done = self.output_processor.process_outputs(outputs, 1.0, stats, weight_version=None)
        self.stopped += len(done.reqs_to_abort)
        self.trimmed += made - sum(len(output.new_token_ids) for output in outputs)
        self.generation += stats.num_generation_tokens
        self.prompt += stats.num_prompt_tokens
        reasons = collections.Counter(str(request.finish_reason) for request in stats.finished_requests)
        self.reasons += reasons
        self.stops_at_limit += at_limit - reasons["length"]

    def outputs(self, draw):
        for state in list(self.output_processor.request_states.values()):
            if draw.random() < 0.7:
                prefill = PrefillStats(num_prompt_tokens=3, num_computed_tokens=2, num_cached_tokens=1) if state.is_prefilling else None
                reason = draw.choice([FinishReason.LENGTH, FinishReason.STOP]) if draw.random() < 0.3 else None
                ids = [draw.randrange(5, 90) for _ in range(draw.randrange(1, 4))]
                yield EngineCoreOutput(state.request_id, ids, finish_reason=reason, prefill_stats=prefill)


async def main():
    draw, llm, tasks = random.Random(2), Llm(), []

    async def read(number):
        kind = draw.choice([RequestOutputKind.DELTA, RequestOutputKind.FINAL_ONLY])
        stop = draw.sample(["a", "e", " the", "in"], 2) if draw.random() < 0.7 else None
        params = SamplingParams(n=draw.choice([1, 1, 3]), stop=stop, output_kind=kind)
        async for _ in llm.generate("prompt", params, f"r{number % 7}"):
            pass
    for number in range(200):
        tasks.append(asyncio.create_task(read(number)))
        await asyncio.sleep(0)
        held = list(llm.outputs(draw))
        if draw.random() < 0.3:
            draw.choice(tasks).cancel()
            await asyncio.sleep(0)
        llm.step(held)
        for _ in range(draw.randrange(3)):
            await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        llm.step(list(llm.outputs(draw)))
        await asyncio.sleep(0)
    registry = registries.current
    assert registry.engine.is_on and registry.level == "engine", registry.engine.failures
    assert meter.tokens == llm.generation > 1000, (meter.tokens, llm.generation)
    assert llm.stopped > 10 and llm.trimmed > 10, (llm.stopped, llm.trimmed)
    reasons = collections.Counter(reason for exchange in meter.exchanges for reason in exchange.reasons.values())
    assert reasons == llm.reasons and llm.stops_at_limit > 0, (reasons, llm.reasons, llm.stops_at_limit)
    assert not registry.open and registry.unattributed_tokens == 0
    once = sum(exchange.input for exchange in meter.exchanges)
    print(f"vLLM {vllm.__version__}: {len(meter.exchanges)} exchanges, {meter.tokens} tokens, {llm.stopped} stop strings "
          f"with {llm.trimmed} tokens after them, {once} of {llm.prompt} prompt tokens")

asyncio.run(main())
