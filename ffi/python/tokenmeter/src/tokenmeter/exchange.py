"""One exchange: its bytes or its counts in, a record out."""
import time
from collections.abc import Iterable
from ctypes import Array, byref, sizeof

from tokenmeter._library import HOLD_MAX, UNKNOWN, Handle, Header, Library, PromptTokens, Slice, read_bytes, slice_of
from tokenmeter.errors import Status
from tokenmeter.handle import Owned
from tokenmeter.record import Record
from tokenmeter.values import Close

Bytes = bytes | bytearray | memoryview

EDIT_BYTES = 1024
"""More than an edit adds to a request body."""


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

    def request_edit(self, body: Bytes) -> bytes | None:
        """Adds the request for usage to the whole body, by the meter's usage policy; None if it stays as it is."""
        edit = self._library.tm_exchange_request_edit
        status, edited = read_bytes(lambda out: edit(self._handle, slice_of(body), out), len(body) + EDIT_BYTES)
        return None if self._library.check(status) == Status.UNCHANGED else edited

    def response_head(
        self, status: int, headers: Iterable[tuple[str | bytes, str | bytes]], at_ns: int | None = None
    ) -> bool:
        """Reads the head of the response. False if it is not the answer of a model: the exchange is over then."""
        fields, count = header_fields(headers)
        head = self._library.tm_exchange_response_head
        if self._library.check(head(self._handle, status, fields, count, now(at_ns))) == Status.NOT_METERED:
            self._release()
        return self.is_open

    def response_body(self, data: Bytes, at_ns: int | None = None) -> None:
        """Reads the next bytes of the response body."""
        self._library.check(self._library.tm_exchange_response_body(self._handle, slice_of(data), now(at_ns)))

    def response_edit(self, data: Bytes, at_ns: int | None = None) -> bytes:
        """Reads the next bytes of the response body. Returns what the client is to see; `b""` releases the rest."""
        edit, at = self._library.tm_exchange_response_edit, now(at_ns)
        status, shown = read_bytes(lambda out: edit(self._handle, slice_of(data), at, out), len(data) + HOLD_MAX + len(data) // 64)
        return bytes(data) if self._library.check(status) == Status.UNCHANGED else shown

    def client_wait(self, ns: int) -> None:
        """Adds time in which the client did not read."""
        self._library.check(self._library.tm_exchange_client_wait(self._handle, ns))

    def count_by_engine(self) -> None:
        """Takes all counts from the engine from now on."""
        self._library.check(self._library.tm_exchange_count_by_engine(self._handle))

    def prompt_tokens(
        self,
        *,
        input: int,
        cached: int | None = None,
        cache_write: int | None = None,
        audio: int | None = None,
        image: int | None = None,
        video: int | None = None,
    ) -> None:
        """Adds a prompt of the engine. All but `input` are parts of it; None: not known."""
        parts = (UNKNOWN if part is None else part for part in (cached, cache_write, audio, image, video))
        counts = PromptTokens(sizeof(PromptTokens), input, *parts)
        self._library.check(self._library.tm_exchange_prompt_tokens(self._handle, byref(counts)))

    def finish(self, choice: int, reason: str) -> None:
        """Ends a choice: "stop", "length", "abort", …"""
        self._library.check(self._library.tm_exchange_finish(self._handle, choice, slice_of(reason)))

    def end(self, close: Close, at_ns: int | None = None) -> Record | None:
        """Ends the exchange and returns its record; None if nothing of inference was seen."""
        close, record = Close(close), Handle(0)
        status = self._library.tm_exchange_end(self._release(), close, now(at_ns), byref(record))
        return None if self._library.check(status) == Status.NOT_METERED else Record(self._library, record)

    def end_unread(self, close: Close, at_ns: int | None = None) -> None:
        """Ends the exchange: its record goes to the metrics page only."""
        close = Close(close)
        self._library.check(self._library.tm_exchange_end(self._release(), close, now(at_ns), None))

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
