"""The hooks: wrappers around four methods of vLLM.

- `AsyncLLM.generate` begins and ends a generation.
- `OutputProcessor.add_request` joins the engine's request to the generation that adds it. Only here are both known:
  `generate` has the request id of the client, of which two may be equal, and the engine's outputs have vLLM's own.
- `OutputProcessor.process_outputs` counts. It is where vLLM counts too.
- `OutputProcessor._update_stats_from_finished` has the finish reason that vLLM gives and counts. The engine's is not
  it: a token that reaches the length limit may complete a stop string.

Each wrapper calls the original with its own arguments, and exactly once, whatever happens to the metering.
"""
import asyncio
import functools
from collections.abc import AsyncGenerator, Callable
from typing import Any

from tokenmeter import Close

from tokenmeter_vllm import registry as registries
from tokenmeter_vllm.registry import Generation, Registry, Sequence

SEQUENCE = "_tokenmeter_sequence"
"""The attribute of a `RequestState`. As long as vLLM holds the state it counts the tokens, so do we, and no longer."""


class Hooks:
    """The wrapped methods. `get` returns the registry at the first request, not before."""

    def __init__(self, async_llm: type, output_processor: type, get: Callable[[], Registry | None]) -> None:
        self.get = get
        self.registry: Registry | None = None
        self.wrapped: list[tuple[type, str, Any, Any]] = []
        self.step: Step | None = None
        """The step that vLLM processes now, if it is counted."""
        # Both ends of a request before its middle: an exception in here leaves nothing half hooked.
        plan = [
            (async_llm, "generate", self.wrap_generate),
            (output_processor, "add_request", self.wrap_add_request),
            (output_processor, "_update_stats_from_finished", self.wrap_finished),
            (output_processor, "process_outputs", self.wrap_process_outputs),
        ]
        made = [(owner, name, getattr(owner, name), wrap(getattr(owner, name))) for owner, name, wrap in plan]
        for owner, name, original, wrapper in made:
            setattr(owner, name, wrapper)
            self.wrapped.append((owner, name, original, wrapper))

    def remove(self) -> None:
        """Restores vLLM's methods. One that another plugin wrapped since stays, and passes calls through."""
        for owner, name, original, wrapper in self.wrapped:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)
        self.wrapped.clear()

    def start(self) -> Registry | None:
        """Gets the registry, and returns it if the engine is to be counted."""
        if self.registry is None and self.wrapped:
            self.registry = self.get()
            if self.registry is None:
                self.remove()
            else:
                self.registry.hooked = True
                self.registry.engine.on_trip.append(self.remove)
        return self.active

    @property
    def active(self) -> Registry | None:
        """The registry, if it is started and the engine is counted. The synchronous `LLM` starts none."""
        return self.registry if self.registry is not None and self.registry.engine.is_on else None

    def wrap_generate(self, original: Any) -> Any:
        @functools.wraps(original)
        async def generate(llm: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            outputs = original(llm, *args, **kwargs)
            begun = self.begin(llm, args, kwargs)
            close, output = Close.CUT, None
            try:
                # The first step of the original adds the request. Later steps may run in other tasks.
                token = registries.generation.set(begun)
                try:
                    output = await outputs.__anext__()
                except StopAsyncIteration:
                    pass
                finally:
                    reset(token)
                if output is not None:
                    yield output
                    async for output in outputs:
                        yield output
                close = Close.CLEAN
            except (asyncio.CancelledError, GeneratorExit):
                # Some callers close the generator after the last output instead of asking for one more.
                close = Close.CLEAN if getattr(output, "finished", False) else Close.CLIENT_GONE
                raise
            finally:
                try:
                    await outputs.aclose()                # vLLM aborts the request in here
                finally:
                    self.end(begun, close)

        return generate

    def wrap_add_request(self, original: Any) -> Any:
        @functools.wraps(original)
        def add_request(processor: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            joined = registries.generation.get()
            if joined is not None:
                self.join(processor, joined, args, kwargs)
            return result

        return add_request

    def wrap_process_outputs(self, original: Any) -> Any:
        @functools.wraps(original)
        def process_outputs(processor: Any, *args: Any, **kwargs: Any) -> Any:
            # Counted before, because the original cuts `new_token_ids` after a stop string, when vLLM has counted.
            # Sent after, because vLLM drops the count of a step that fails.
            self.step = step = self.read(processor, args, kwargs)
            try:
                result = original(processor, *args, **kwargs)
            finally:
                self.step = None
            if step is not None:
                self.send(step)
            return result

        return process_outputs

    def wrap_finished(self, original: Any) -> Any:
        @functools.wraps(original)
        def update_stats_from_finished(processor: Any, *args: Any, **kwargs: Any) -> Any:
            if self.step is not None:
                self.finish(self.step, args, kwargs)
            return original(processor, *args, **kwargs)

        return update_stats_from_finished

    def begin(self, llm: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generation | None:
        """Begins the metering of a call of `generate`."""
        registry = self.start()
        if registry is None:
            return None
        try:
            params = kwargs["sampling_params"] if "sampling_params" in kwargs else args[1]
            request_id = kwargs["request_id"] if "request_id" in kwargs else args[2]
            model = model_name(llm, kwargs.get("lora_request"))
            return registry.begin_generation(model, params.n or 1, str(request_id))
        except Exception as error:
            registry.engine.trip(error)
            return None

    def end(self, begun: Generation | None, close: Close) -> None:
        """Ends the metering of a call of `generate`."""
        registry = self.registry
        if begun is None or registry is None:
            return
        try:
            registry.end_generation(begun, close)
        except Exception as error:
            registry.engine.trip(error)

    def join(self, processor: Any, joined: Generation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Joins a request of the engine to its generation."""
        registry = self.active
        if registry is None:
            return
        try:
            request = kwargs["request"] if "request" in kwargs else args[0]
            state = processor.request_states.get(request.request_id)
            # A later part of a streamed input finds the state of the first.
            if state is not None and not hasattr(state, SEQUENCE):
                choice = joined.first_choice + state.request_index
                setattr(state, SEQUENCE, Sequence(joined, choice))
        except Exception as error:
            registry.engine.trip(error)

    def read(self, processor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Step | None":
        """Reads the outputs of a step, of the requests that vLLM still holds."""
        registry = self.active
        if registry is None:
            return None
        try:
            outputs = args[0] if args else kwargs["engine_core_outputs"]
            return Step(registry, processor.request_states, outputs)
        except Exception as error:
            registry.tokens.clear()
            registry.engine.trip(error)
            return None

    def finish(self, step: "Step", args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Reads the ending of a request."""
        try:
            state = kwargs["req_state"] if "req_state" in kwargs else args[0]
            reason = kwargs["finish_reason"] if "finish_reason" in kwargs else args[1]
            step.finish(state, reason)
        except Exception as error:
            step.registry.engine.trip(error)

    def send(self, step: "Step") -> None:
        """Adds what was read."""
        try:
            step.send()
        except Exception as error:
            step.registry.engine.trip(error)


class Step:
    """The counts of one call of `process_outputs`."""

    __slots__ = ("registry", "prompts", "endings", "unattributed")

    def __init__(self, registry: Registry, states: dict[str, Any], outputs: list[Any]) -> None:
        self.registry = registry
        self.prompts: list[tuple[Generation, Any]] = []
        self.endings: list[tuple[Sequence, str]] = []
        self.unattributed = 0
        tokens = registry.tokens
        tokens.clear()
        for output in outputs:
            state = states.get(output.request_id)
            if state is None:
                continue                                  # aborted: vLLM does not count it either
            count = len(output.new_token_ids)
            sequence: Sequence | None = getattr(state, SEQUENCE, None)
            if sequence is None or not sequence.generation.owner.exchange.is_open:
                # Requests of the synchronous `LLM` have no queue; they are not ours.
                self.unattributed += count if state.queue is not None else 0
                continue
            generation = sequence.generation
            if state.is_prefilling and output.prefill_stats is not None and generation.prompt in (None, sequence):
                generation.prompt = sequence
                self.prompts.append((generation, output.prefill_stats))
            if count:
                tokens.add(generation.owner.exchange, sequence.choice, count)

    def finish(self, state: Any, reason: Any) -> None:
        """Adds the ending of a request."""
        sequence: Sequence | None = getattr(state, SEQUENCE, None)
        if sequence is not None and sequence.generation.owner.exchange.is_open:
            self.endings.append((sequence, str(reason)))

    def send(self) -> None:
        """Sends prompts, tokens and endings."""
        for generation, stats in self.prompts:
            generation.owner.exchange.prompt_tokens(
                input=stats.num_prompt_tokens,
                cached=stats.num_cached_tokens,
                cache_write=stats.num_cache_creation_tokens,
            )
        self.registry.tokens.send()
        self.registry.unattributed_tokens += self.unattributed
        for sequence, reason in self.endings:
            sequence.generation.owner.exchange.finish(sequence.choice, reason)


def model_name(llm: Any, lora: Any) -> str:
    """Returns the model as clients call it."""
    if lora is not None:
        return str(lora.lora_name)
    served = llm.model_config.served_model_name
    return str(served if isinstance(served, str) else served[0] if served else llm.model_config.model)


def reset(token: Any) -> None:
    """Restores the context variable, unless the step was continued in another context."""
    try:
        registries.generation.reset(token)
    except ValueError:
        pass
