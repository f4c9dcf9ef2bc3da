"""The entry point, and the hook around `TokenizerManager.generate_request`."""
import asyncio
import logging
import os
import pathlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from tokenmeter import Close, Meter

from tokenmeter_sglang.generation import Generation
from tokenmeter_sglang.page import serve

TARGET = "sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request"
HEALTH_CHECK = "HEALTH_CHECK"
"""The beginning of the request ids of SGLang's own health checks."""
logger = logging.getLogger("tokenmeter")


def register() -> None:
    """Registers the hook. SGLang applies it to the class in each of its processes; only one calls it."""
    if os.environ.get("TOKENMETER_OFF", "").lower() in ("1", "true", "yes", "on"):
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(TARGET, Hook(start).around, HookType.AROUND)


def start() -> Meter:
    """Makes the meter of this process, and serves its metrics."""
    prices = os.environ.get("TOKENMETER_PRICES")
    meter = Meter(
        upstream=os.environ.get("TOKENMETER_UPSTREAM_NAME") or "sglang",
        kind="sglang",
        prices=pathlib.Path(prices).read_bytes() if prices else b"",
    )
    if address := os.environ.get("TOKENMETER_METRICS_LISTEN"):
        serve(address, meter.metrics)
    return meter


class Hook:
    """The hook. SGLang's registry cannot remove one: after an exception it passes calls through."""

    def __init__(self, start: Callable[[], Meter]) -> None:
        self.start = start
        self.meter: Meter | None = None
        self.is_on, self.failures = True, 0

    def around(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        """Returns the generator of SGLang, or one around it."""
        outputs = original(*args, **kwargs)
        generation = self.begin(*args, **kwargs) if self.is_on else None
        return outputs if generation is None else self.metered(outputs, generation)

    async def metered(self, outputs: Any, generation: Generation) -> AsyncGenerator[Any, None]:
        """Yields the outputs and counts them."""
        close = Close.CUT
        try:
            async for output in outputs:
                self.attempt(lambda: generation.read(output))
                yield output
            close = Close.CLEAN
        except (asyncio.CancelledError, GeneratorExit):
            close = Close.CLEAN if generation.is_finished else Close.CLIENT_GONE
            raise
        except ValueError as error:
            # SGLang notices a client that left, and raises this.
            close = Close.CLIENT_GONE if "disconnected" in str(error) else Close.CUT
            raise
        finally:
            try:
                await outputs.aclose()
            finally:
                self.attempt(lambda: generation.end(close))

    def begin(self, manager: Any, *args: Any, **kwargs: Any) -> Generation | None:
        """Prepares the metering of a request; None if it generates nothing for a client."""
        begun: list[Generation] = []

        def prepare() -> None:
            request = kwargs["obj"] if "obj" in kwargs else args[0]
            rid = request.rid[0] if isinstance(request.rid, list) and request.rid else request.rid
            if type(request).__name__ == "EmbeddingReqInput" or str(rid or "").startswith(HEALTH_CHECK):
                return
            self.meter = self.meter or self.start()
            begun.append(Generation(self.meter, request, str(manager.served_model_name)))

        self.attempt(prepare)
        return begun[0] if begun else None

    def attempt(self, work: Callable[[], None]) -> None:
        """Works while no exception happened; the first one is logged, and is the last."""
        if not self.is_on:
            return
        try:
            work()
        except Exception:
            self.is_on, self.failures = False, self.failures + 1
            logger.exception("tokenmeter: off after an error; requests go on unmetered")
