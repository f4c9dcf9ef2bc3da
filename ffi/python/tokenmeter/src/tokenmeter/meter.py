"""The meter: options, exchanges, metrics page."""
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from ctypes import byref, sizeof
from types import MappingProxyType

from tokenmeter._library import Begin, Handle, Library, MeterOptions, Request, library, slice_of
from tokenmeter.errors import Status
from tokenmeter.exchange import Exchange, header_fields
from tokenmeter.handle import Owned
from tokenmeter.steps import OutputTokens
from tokenmeter.tenants import Tenants
from tokenmeter.values import UsagePolicy

PAGE_BYTES = 64 << 10
"""First buffer for a metrics page."""


class Prices(Owned):
    """A price book, as long as it is given to a meter."""

    def __init__(self, library: Library, yaml: bytes) -> None:
        handle = Handle(0)
        library.check(library.tm_prices_read(slice_of(yaml), byref(handle)))
        super().__init__(library, handle, library.tm_prices_free)


class Meter(Owned):
    """Meters exchanges of one upstream, and sums them for a metrics page."""

    def __init__(
        self,
        *,
        upstream: str,
        provider: str = "",
        kind: str = "",
        stall_ns: int = 0,
        max_tokens: int = 0,
        max_models: int = 0,
        usage_policy: UsagePolicy = UsagePolicy.OBSERVE,
        prices: bytes = b"",
    ) -> None:
        """Makes a meter. 0 and "" mean the library's default. `prices` is the YAML of a price file."""
        lib = library()
        names = slice_of(upstream), slice_of(provider), slice_of(kind)
        with Prices(lib, prices) if prices else nullcontext() as book:
            options = MeterOptions(sizeof(MeterOptions), *names, stall_ns, max_tokens, max_models, usage_policy)
            options.prices = book._handle if book else Handle(0)
            handle = Handle(0)
            lib.check(lib.tm_meter_new(byref(options), byref(handle)))
        super().__init__(lib, handle, lib.tm_meter_free)

    def set_prices(self, yaml: bytes) -> None:
        """Charges exchanges that end from now on by these prices, of the same currency as those of the constructor."""
        with Prices(self._library, yaml) as book:
            self._library.check(self._library.tm_meter_set_prices(self._handle, book._handle))

    def set_tenants(self, yaml: bytes, hash_key: bytes = b"", keys: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """Determines the tenants of exchanges that begin from now on by these rules: the content of a tenants file.

        `hash_key` is the content of the hash key file, `keys` the JWKS of each source of keys that the rules name.
        `TenantsWatch` reads and fetches them.
        """
        with Tenants(self._library, yaml, hash_key, keys) as rules:
            self._use(rules)

    def _use(self, rules: Tenants) -> None:
        self._library.check(self._library.tm_meter_set_tenants(self._handle, rules._handle))

    def metrics(self) -> str:
        """Returns the metrics page, in the Prometheus text format."""
        return self._library.text(self._library.tm_meter_metrics, self._handle, capacity=PAGE_BYTES) or ""

    def begin(
        self,
        *,
        method: str,
        path: str,
        headers: Iterable[tuple[str | bytes, str | bytes]] = (),
        peer: str = "",
        at_ns: int | None = None,
    ) -> Exchange | None:
        """Begins the exchange of an HTTP request; None if its path is not one of inference."""
        fields, count = header_fields(headers)
        line = slice_of(method), slice_of(path)
        request = Request(sizeof(Request), *line, fields, count, slice_of(peer), *instant(at_ns))
        handle = Handle(0)
        status = self._library.check(self._library.tm_exchange_begin(self._handle, byref(request), byref(handle)))
        return None if status == Status.NOT_METERED else Exchange(self._library, handle)

    def begin_described(
        self,
        *,
        dialect: str,
        model: str,
        tenant: str = "",
        principal: str = "",
        request_id: str = "",
        answers: int = 1,
        stream: bool = False,
        at_ns: int | None = None,
    ) -> Exchange:
        """Begins an exchange of a host without HTTP, which counts its tokens itself."""
        texts = [slice_of(text) for text in (dialect, model, tenant, principal, request_id)]
        begin = Begin(sizeof(Begin), *texts, answers, stream, *instant(at_ns))
        handle = Handle(0)
        self._library.check(self._library.tm_exchange_begin_described(self._handle, byref(begin), byref(handle)))
        return Exchange(self._library, handle)

    def output_tokens(self) -> OutputTokens:
        """Returns an empty list for the tokens of an engine step. A thread needs a list of its own."""
        return OutputTokens(self._library)


def instant(at_ns: int | None) -> tuple[int, int]:
    """Returns an instant of the monotonic clock, by default this one, and the same in nanoseconds since 1970."""
    now_ns = time.monotonic_ns()
    at_ns = now_ns if at_ns is None else at_ns
    return at_ns, time.time_ns() - (now_ns - at_ns)
