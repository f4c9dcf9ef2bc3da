"""The exchanges of one API process, and the generations that belong to them."""
import pathlib
import time
from contextvars import ContextVar

from tokenmeter import Close, Exchange, Meter, OutputTokens, TenantsWatch

from tokenmeter_vllm.circuit_breaker import CircuitBreaker, logger
from tokenmeter_vllm.settings import Settings

DIALECT = "vllm_generate"
"""The dialect of a generation outside HTTP: tokens in, tokens out."""


class InFlight:
    """An exchange in flight.

    It ends when its HTTP request is over and all its generations are: vLLM stops a generation by cancellation or by
    garbage collection, so that tokens may still arrive, and be counted by vLLM, after the application returned.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.held = True
        """True until the HTTP request is over."""
        self.running = 0
        """Generations in flight."""
        self.choices = 0
        """Choices given to the generations in flight."""
        self.counted_by_engine = False
        self.close, self.end_ns = Close.CLEAN, 0

    @property
    def is_over(self) -> bool:
        """True if nothing can be counted any more."""
        return not self.held and self.running == 0


class Generation:
    """One call of `AsyncLLM.generate`: one prompt, and n choices."""

    def __init__(self, owner: InFlight, first_choice: int) -> None:
        self.owner, self.first_choice = owner, first_choice
        self.prompt: Sequence | None = None
        """The sequence whose prefill is counted: vLLM prefills the prompt once for each of n choices."""


class Sequence:
    """One request of the engine core: one choice of a generation. It is an attribute of vLLM's `RequestState`."""

    __slots__ = ("generation", "choice")

    def __init__(self, generation: Generation, choice: int) -> None:
        self.generation, self.choice = generation, choice


http_exchange: ContextVar[InFlight | None] = ContextVar("tokenmeter_http_exchange", default=None)
"""The exchange of the HTTP request that the current task serves. Tasks that it starts inherit it."""
generation: ContextVar[Generation | None] = ContextVar("tokenmeter_generation", default=None)
"""The generation whose requests are being added to the engine."""


class Registry:
    """All that an API process meters. Its event loop is the only user."""

    def __init__(self, meter: Meter, settings: Settings) -> None:
        self.meter, self.settings = meter, settings
        self.engine = CircuitBreaker("the engine's hook", lambda: self._drop(counted_by_engine=True))
        self.http = CircuitBreaker("the middleware", lambda: self._drop(counted_by_engine=False))
        self.hooked = False
        """True while vLLM's methods are wrapped."""
        self.open: set[InFlight] = set()
        self.lost_exchanges = 0
        """Exchanges without a record, because their counts became incomplete."""
        self.unattributed_tokens = 0
        """Tokens that vLLM counted for no exchange in flight: of requests from before the hook, or that vLLM lost."""
        self.tokens: OutputTokens = meter.output_tokens()
        self.tenants: TenantsWatch | None = None
        """The tenant rules, with the keys of their `jwt` rules."""

    @property
    def level(self) -> str:
        """The source of the counts of new exchanges: `engine`, `reported` or `off`."""
        if self.hooked and self.engine.is_on:
            return "engine"
        return "reported" if self.http.is_on else "off"

    def add(self, exchange: Exchange) -> InFlight:
        """Registers an exchange that begins."""
        owner = InFlight(exchange)
        self.open.add(owner)
        return owner

    def end_request(self, owner: InFlight, close: Close) -> None:
        """Ends the HTTP part of an exchange."""
        owner.held, owner.close, owner.end_ns = False, close, time.monotonic_ns()
        self._settle(owner)

    def begin_generation(self, model: str, answers: int, request_id: str) -> Generation:
        """Begins a generation of the current exchange, or of one of its own outside HTTP."""
        owner = http_exchange.get()
        if owner is None or not owner.exchange.is_open:
            # A background response (`background: true`) may begin after its request is over, and the middleware may
            # have failed.
            owner = self.add(self.meter.begin_described(dialect=DIALECT, model=model, answers=answers, request_id=request_id))
            owner.held = False
        if not owner.counted_by_engine:
            owner.exchange.count_by_engine()
            owner.counted_by_engine = True
        if owner.running == 0:
            owner.choices = 0                             # a tool loop continues its choice
        begun = Generation(owner, owner.choices)
        owner.running += 1
        owner.choices += answers
        return begun

    def end_generation(self, ended: Generation, close: Close) -> None:
        """Ends a generation, and its exchange if it was the last part."""
        owner = ended.owner
        owner.running -= 1
        if owner.held:
            return
        if owner.end_ns == 0:                             # outside HTTP
            owner.close = close
        self._settle(owner)

    def _settle(self, owner: InFlight) -> None:
        if owner.is_over and owner in self.open:
            self.open.discard(owner)
            if owner.exchange.is_open:                    # not one whose response was none of a model
                # HTTP ended at its own time, though the engine noticed later.
                owner.exchange.end_unread(owner.close, owner.end_ns or time.monotonic_ns())

    def _drop(self, counted_by_engine: bool) -> None:
        """Drops the exchanges that a part counted so far: a part of a count is worse than none."""
        self.hooked &= not counted_by_engine
        for owner in [owner for owner in self.open if owner.counted_by_engine == counted_by_engine]:
            self.open.discard(owner)
            self.lost_exchanges += 1
            owner.exchange.discard()


def make(settings: Settings) -> Registry:
    """Makes the registry of this process from the settings."""
    meter = Meter(
        upstream=settings.upstream,
        provider=settings.provider,
        kind="vllm",
        stall_ns=settings.stall_ms * 1_000_000,
        max_models=settings.max_models,
        prices=content(settings.prices),
    )
    registry = Registry(meter, settings)
    if settings.tenants:
        folder = pathlib.Path(settings.tenants).parent
        registry.tenants = TenantsWatch(meter, content(settings.tenants), content(settings.hash_key_file), folder)
        registry.tenants.start()
    return registry


def content(path: str | None) -> bytes:
    """Returns the content of a file of the settings; nothing without one."""
    return pathlib.Path(path).read_bytes() if path else b""


current: Registry | None = None
tried = False


def get() -> Registry | None:
    """Returns the registry of this process, made at the first call; None if it is off or cannot be made.

    Made late, because vLLM loads plugins in every process, and only those that serve need a meter.
    """
    global current, tried
    if not tried:
        tried = True
        try:
            settings = Settings.read()
            current = None if settings.off else make(settings)
        except Exception:
            logger.exception("tokenmeter: not started; requests are served unmetered")
    return current
