"""The record of an ended exchange."""
import json
from ctypes import byref, c_double, c_uint32, c_uint64
from dataclasses import dataclass
from typing import Any

from tokenmeter._library import Handle, Library
from tokenmeter.errors import Status
from tokenmeter.handle import Owned
from tokenmeter.values import Number, Provenance, Rate, TextValue, TokenType


@dataclass(frozen=True)
class TokenCount:
    """Tokens of one type, and the source of the count."""

    count: int
    provenance: Provenance


class Record(Owned):
    """What was measured of an exchange. It does not change any more."""

    def __init__(self, library: Library, handle: Handle) -> None:
        super().__init__(library, handle, library.tm_record_free)

    @property
    def input_tokens(self) -> int | None:
        """All prompt tokens; None if nothing counted them."""
        return self.number(Number.INPUT_TOKENS)

    @property
    def output_tokens(self) -> int | None:
        """All generated tokens; None if nothing counted them."""
        return self.number(Number.OUTPUT_TOKENS)

    @property
    def ttft_ns(self) -> int | None:
        """Time from the complete request to the first token; None without one."""
        return self.number(Number.FIRST_TOKEN_NS)

    @property
    def duration_ns(self) -> int | None:
        """Time from the complete request to the end."""
        return self.number(Number.DURATION_NS)

    @property
    def ending(self) -> str | None:
        """How the exchange ended: "complete", "length", "client_abort", …"""
        return self.text(TextValue.ENDING)

    @property
    def model(self) -> str | None:
        """The model of the request, else of the response."""
        return self.text(TextValue.MODEL)

    @property
    def tenant(self) -> str | None:
        """The tenant who is charged."""
        return self.text(TextValue.TENANT)

    @property
    def cost(self) -> str | None:
        """The cost as an exact decimal; None without a price."""
        return self.text(TextValue.COST)

    def tokens(self, type: TokenType) -> TokenCount | None:
        """Returns the count of a type of tokens; None if nothing counted them."""
        count, provenance = c_uint64(0), c_uint32(0)
        read = self._library.tm_record_tokens
        status = self._library.check(read(self._handle, int(type), byref(count), byref(provenance)))
        return None if status == Status.ABSENT else TokenCount(count.value, Provenance(provenance.value))

    def number(self, which: Number) -> int | None:
        """Returns a number of the record; None if it is not known."""
        value = c_uint64(0)
        status = self._library.check(self._library.tm_record_number(self._handle, int(which), byref(value)))
        return None if status == Status.ABSENT else value.value

    def rate(self, which: Rate) -> float | None:
        """Returns a rate of the record; None if it is not known."""
        value = c_double(0)
        status = self._library.check(self._library.tm_record_rate(self._handle, int(which), byref(value)))
        return None if status == Status.ABSENT else value.value

    def text(self, which: TextValue) -> str | None:
        """Returns a text of the record; None if it is not known."""
        return self._library.text(self._library.tm_record_text, self._handle, int(which))

    def as_dict(self) -> dict[str, Any]:
        """Returns the whole record."""
        text = self._library.text(self._library.tm_record_json, self._handle, capacity=4096)
        whole: dict[str, Any] = json.loads(text or "{}")
        return whole
