"""The record of an ended exchange."""
import json
from collections.abc import Iterator, Mapping
from ctypes import byref, c_double, c_uint32, c_uint64
from dataclasses import dataclass
from typing import Any

from tokenmeter._library import Handle, Library
from tokenmeter.errors import Status
from tokenmeter.handle import Owned
from tokenmeter.values import Number, Provenance, Rate, Text, TokenType


@dataclass(frozen=True)
class TokenCount:
    """Tokens of one type, and the source of the count."""

    count: int
    provenance: Provenance


class Tokens(Mapping[TokenType, TokenCount]):
    """Token counts of a record, by type."""

    def __init__(self, record: "Record") -> None:
        self._record = record

    def __getitem__(self, type: TokenType) -> TokenCount:
        return self._record._token_count(type)

    def __iter__(self) -> Iterator[TokenType]:
        return iter(TokenType)

    def __len__(self) -> int:
        return len(TokenType)


class Record(Owned):
    """What was measured of an exchange. It does not change any more."""

    def __init__(self, library: Library, handle: Handle) -> None:
        super().__init__(library, handle, library.tm_record_free)

    @property
    def tokens(self) -> Tokens:
        """Token counts, by type."""
        return Tokens(self)

    @property
    def ttft_ns(self) -> int | None:
        """Time to the first token; None without one."""
        return self.number(Number.TTFT_NS)

    @property
    def duration_ns(self) -> int | None:
        """Time from the request to the end."""
        return self.number(Number.DURATION_NS)

    @property
    def ending(self) -> str | None:
        """How the exchange ended: "complete", "length", "client_abort", …"""
        return self.text(Text.ENDING)

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self.text(Text.MODEL)

    @property
    def tenant(self) -> str | None:
        """The tenant who is charged."""
        return self.text(Text.TENANT)

    @property
    def charge(self) -> str | None:
        """The charge as a decimal; None without a price."""
        return self.text(Text.CHARGE)

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

    def text(self, which: Text) -> str | None:
        """Returns a text of the record; None if it is not known."""
        return self._library.text(self._library.tm_record_text, self._handle, int(which))

    def as_dict(self) -> dict[str, Any]:
        """Returns the whole record."""
        text = self._library.text(self._library.tm_record_json, self._handle, capacity=4096)
        whole: dict[str, Any] = json.loads(text or "{}")
        return whole

    def _token_count(self, type: TokenType) -> TokenCount:
        count, provenance = c_uint64(0), c_uint32(0)
        status = self._library.tm_record_tokens(self._handle, int(type), byref(count), byref(provenance))
        self._library.check(status)
        return TokenCount(count.value, Provenance(provenance.value))
