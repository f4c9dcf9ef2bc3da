"""The tokens of one engine step."""
import ctypes
import struct
import time

from tokenmeter._library import Library, OutputStep
from tokenmeter.exchange import Exchange

FIELDS = struct.Struct("=QIIIi")
"""`tm_output_tokens`: exchange, choice, tokens, reasoning, status."""
assert FIELDS.size == ctypes.sizeof(OutputStep)


class OutputTokens:
    """A list of new tokens, for any number of exchanges, that one call of the library adds.

    It is filled and sent once per engine step. Its buffer is reused and grows to the largest step; an entry makes no
    object. For one thread at a time.
    """

    def __init__(self, library: Library, capacity: int = 64) -> None:
        self._library, self._capacity, self._count = library, capacity, 0
        self._steps = (OutputStep * capacity)()

    def __len__(self) -> int:
        return self._count

    def add(self, exchange: Exchange, choice: int, tokens: int, reasoning: int = 0) -> None:
        """Appends new tokens of one choice."""
        if self._count == self._capacity:
            self._grow()
        FIELDS.pack_into(self._steps, self._count * FIELDS.size, exchange._id, choice, tokens, reasoning, 0)
        self._count += 1

    def send(self, at_ns: int | None = None) -> None:
        """Adds all tokens to their exchanges and empties the list. If some fail, the others count, and it raises."""
        count, self._count = self._count, 0
        if count:
            at_ns = time.monotonic_ns() if at_ns is None else at_ns
            self._library.check(self._library.tm_output_tokens_add(self._steps, count, at_ns))

    def clear(self) -> None:
        """Empties the list."""
        self._count = 0

    def _grow(self) -> None:
        old, self._capacity = self._steps, self._capacity * 2
        self._steps = (OutputStep * self._capacity)()
        ctypes.memmove(self._steps, old, ctypes.sizeof(old))
