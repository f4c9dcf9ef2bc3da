"""The meter: options, exchanges, metrics page."""
import time
from collections.abc import Iterable
from ctypes import byref, sizeof
from os import PathLike, fsencode

from tokenmeter._library import Begin, Handle, MeterOptions, Request, library, slice_of
from tokenmeter.errors import Status
from tokenmeter.exchange import Exchange, header_fields, now
from tokenmeter.handle import Owned
from tokenmeter.steps import OutputTokens
from tokenmeter.values import Format

PAGE_BYTES = 64 << 10
"""First buffer for a metrics page."""


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
        models_max: int = 0,
        usage_policy: int = 0,
    ) -> None:
        """Makes a meter. 0 and "" mean the library's default."""
        lib = library()
        names = slice_of(upstream), slice_of(provider), slice_of(kind)
        options = MeterOptions(sizeof(MeterOptions), *names, stall_ns, max_tokens, models_max, usage_policy)
        handle = Handle(0)
        lib.check(lib.tm_meter_new(byref(options), byref(handle)))
        super().__init__(lib, handle, lib.tm_meter_free)

    def set_prices(self, yaml: bytes) -> None:
        """Charges exchanges that end from now on by these prices."""
        prices = Handle(0)
        self._library.check(self._library.tm_prices_read(slice_of(yaml), byref(prices)))
        try:
            self._library.check(self._library.tm_meter_set_prices(self._handle, prices))
        finally:
            self._library.tm_prices_free(prices)

    def set_tenants(self, path: str | PathLike[str], hash_key: str | PathLike[str] | None = None) -> None:
        """Determines tenants of new exchanges by a file of rules."""
        tenants = Handle(0)
        paths = slice_of(fsencode(path)), slice_of(fsencode(hash_key) if hash_key is not None else b"")
        self._library.check(self._library.tm_tenants_open(*paths, byref(tenants)))
        try:
            self._library.check(self._library.tm_meter_set_tenants(self._handle, tenants))
        finally:
            self._library.tm_tenants_free(tenants)

    def metrics(self, format: Format = Format.TEXT) -> str:
        """Returns the metrics page."""
        page = self._library.text(self._library.tm_meter_metrics, self._handle, int(format), capacity=PAGE_BYTES)
        return page or ""

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
        request = Request(
            sizeof(Request), slice_of(method), slice_of(path), fields, count, slice_of(peer), now(at_ns), time.time_ns()
        )
        handle = Handle(0)
        status = self._library.check(self._library.tm_exchange_begin(self._handle, byref(request), byref(handle)))
        return None if status == Status.NOT_METERED else Exchange(self._library, handle)

    def begin_explicit(
        self,
        *,
        model: str,
        dialect: int = 0,
        tenant: str = "",
        principal: str = "",
        consumer: str = "",
        request_id: str = "",
        answers: int = 1,
        stream: bool = False,
        at_ns: int | None = None,
    ) -> Exchange:
        """Begins an exchange of a host without HTTP."""
        texts = [slice_of(text) for text in (model, tenant, principal, consumer, request_id)]
        begin = Begin(sizeof(Begin), dialect, *texts, answers, stream, now(at_ns), time.time_ns())
        handle = Handle(0)
        self._library.check(self._library.tm_exchange_begin_explicit(self._handle, byref(begin), byref(handle)))
        return Exchange(self._library, handle)

    def output_tokens(self) -> OutputTokens:
        """Returns an empty list for the tokens of an engine step. A thread needs a list of its own."""
        return OutputTokens(self._library)
