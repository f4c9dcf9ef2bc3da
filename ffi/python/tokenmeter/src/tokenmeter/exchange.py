"""One exchange: its bytes or its counts in, a record out."""
import time
from collections.abc import Iterable
from ctypes import Array, byref, sizeof

from tokenmeter._library import Handle, Header, Library, PromptTokens, Slice, slice_of
from tokenmeter.handle import Owned
from tokenmeter.record import Record
from tokenmeter.values import Close

Bytes = bytes | bytearray | memoryview


class Exchange(Owned):
    """An exchange in flight, in the order of its methods. Closed without an end, it leaves no record."""

    def __init__(self, library: Library, handle: Handle) -> None:
        super().__init__(library, handle, library.tm_exchange_discard)

    def request_body(self, data: Bytes) -> None:
        """Reads the next bytes of the request body."""
        self._library.check(self._library.tm_exchange_request_body(self._handle, slice_of(data)))

    def request_complete(self, at_ns: int | None = None) -> None:
        """Ends the request body."""
        self._library.check(self._library.tm_exchange_request_complete(self._handle, now(at_ns)))

    def response_head(
        self, status: int, headers: Iterable[tuple[str | bytes, str | bytes]], at_ns: int | None = None
    ) -> None:
        """Reads the head of the response."""
        fields, count = header_fields(headers)
        self._library.check(self._library.tm_exchange_response_head(self._handle, status, fields, count, now(at_ns)))

    def response_body(self, data: Bytes, at_ns: int | None = None) -> None:
        """Reads the next bytes of the response body."""
        self._library.check(self._library.tm_exchange_response_body(self._handle, slice_of(data), now(at_ns)))

    def client_wait(self, ns: int) -> None:
        """Adds time in which the client did not read."""
        self._library.check(self._library.tm_exchange_client_wait(self._handle, ns))

    def engine(self) -> None:
        """Takes all counts from the engine from now on."""
        self._library.check(self._library.tm_exchange_engine(self._handle))

    def prompt_tokens(self, *, input: int, input_cached: int = 0) -> None:
        """Adds prompt tokens of the engine; the two are disjoint."""
        counts = PromptTokens(sizeof(PromptTokens), input, input_cached)
        self._library.check(self._library.tm_exchange_prompt_tokens(self._handle, byref(counts)))

    def finish(self, choice: int, reason: str) -> None:
        """Ends a choice: "stop", "length", "abort", …"""
        self._library.check(self._library.tm_exchange_finish(self._handle, choice, slice_of(reason)))

    def end(self, close: Close, at_ns: int | None = None) -> Record:
        """Ends the exchange and returns its record."""
        record = Handle(0)
        # Also of a failed end the exchange is gone, or cannot be used again: it is never freed twice.
        handle = self._release()
        self._library.check(self._library.tm_exchange_end(handle, int(close), now(at_ns), byref(record)))
        return Record(self._library, record)

    def end_unread(self, close: Close, at_ns: int | None = None) -> None:
        """Ends the exchange: its record goes to the metrics page only."""
        self._library.check(self._library.tm_exchange_end(self._release(), int(close), now(at_ns), None))

    def discard(self) -> None:
        """Forgets the exchange: no record, no count."""
        self.close()


def now(at_ns: int | None) -> int:
    """Returns the given instant, or this one."""
    return time.monotonic_ns() if at_ns is None else at_ns


def header_fields(headers: Iterable[tuple[str | bytes, str | bytes]]) -> tuple[Array[Header] | None, int]:
    """Returns header fields as the library takes them. As HTTP servers do, text is encoded as Latin-1."""
    fields = [Header(field_slice(name), field_slice(value)) for name, value in headers]
    return ((Header * len(fields))(*fields) if fields else None), len(fields)


def field_slice(part: str | bytes) -> Slice:
    """Returns the name or the value of a header field."""
    return slice_of(part.encode("latin-1") if isinstance(part, str) else part)
