"""The C interface: structures, functions, loading. Its reference is tokenmeter.h."""
import ctypes
import os
import pathlib
import threading
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int32, c_size_t
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any

from tokenmeter.errors import Error, Status

ABI = 0
"""`TM_ABI` of the header that the declarations below follow."""
HOLD_MAX = 131072
"""`TM_HOLD_MAX`."""
UNKNOWN = 2**64 - 1
"""`TM_UNKNOWN`."""
FAILED = 100
"""Statuses from here on are failures."""


class Handle(Structure):
    """An object of the library; 0 is none. `tm_meter`, `tm_exchange`, … have this shape."""

    _fields_ = [("id", c_uint64)]


class Slice(Structure):
    """`tm_slice`. As `char *`, the field takes `bytes` without a copy and keeps them alive."""

    _fields_ = [("data", c_char_p), ("length", c_size_t)]


class Text(Structure):
    """`tm_text`."""

    _fields_ = [("buffer", c_char_p), ("capacity", c_size_t), ("length", c_size_t)]


class Bytes(Structure):
    """`tm_bytes`."""

    _fields_ = [("buffer", c_char_p), ("capacity", c_size_t), ("length", c_size_t)]


class Header(Structure):
    """`tm_header`."""

    _fields_ = [("name", Slice), ("value", Slice)]


class KeySource(Structure):
    """`tm_key_source`."""

    _fields_ = [("name", Slice), ("jwks", Slice)]


class MeterOptions(Structure):
    """`tm_meter_options`."""

    _fields_ = [
        ("size", c_size_t),
        ("upstream", Slice),
        ("provider", Slice),
        ("kind", Slice),
        ("stall_ns", c_uint64),
        ("max_tokens", c_uint64),
        ("max_models", c_uint32),
        ("usage_policy", c_uint32),
        ("prices", Handle),
        ("tenants", Handle),
    ]


class Request(Structure):
    """`tm_request`."""

    _fields_ = [
        ("size", c_size_t),
        ("method", Slice),
        ("path", Slice),
        ("headers", POINTER(Header)),
        ("headers_count", c_size_t),
        ("peer", Slice),
        ("at_ns", c_uint64),
        ("unix_ns", c_uint64),
    ]


class Begin(Structure):
    """`tm_begin`."""

    _fields_ = [
        ("size", c_size_t),
        ("dialect", Slice),
        ("model", Slice),
        ("tenant", Slice),
        ("principal", Slice),
        ("request_id", Slice),
        ("answers", c_uint32),
        ("stream", c_uint32),
        ("at_ns", c_uint64),
        ("unix_ns", c_uint64),
    ]


class PromptTokens(Structure):
    """`tm_prompt_tokens`."""

    _fields_ = [
        ("size", c_size_t),
        ("input", c_uint64),
        ("cached", c_uint64),
        ("cache_write", c_uint64),
        ("audio", c_uint64),
        ("image", c_uint64),
        ("video", c_uint64),
    ]


class OutputStep(Structure):
    """`tm_output_tokens`. `tokenmeter.steps` writes it as packed bytes."""

    _fields_ = [
        ("exchange", Handle),
        ("choice", c_uint32),
        ("tokens", c_uint32),
        ("reasoning", c_uint32),
        ("status", c_int32),
    ]


FUNCTIONS: dict[str, list[Any]] = {
    "tm_error_message": [POINTER(Text)],
    "tm_abi_check": [c_uint32],
    "tm_prices_read": [Slice, POINTER(Handle)],
    "tm_prices_free": [Handle],
    "tm_tenants_read": [Slice, Slice, POINTER(KeySource), c_size_t, POINTER(Handle)],
    "tm_tenants_key_sources": [Slice, POINTER(Text)],
    "tm_tenants_key_missed": [Handle, Slice],
    "tm_tenants_free": [Handle],
    "tm_meter_new": [POINTER(MeterOptions), POINTER(Handle)],
    "tm_meter_set_prices": [Handle, Handle],
    "tm_meter_set_tenants": [Handle, Handle],
    "tm_meter_metrics": [Handle, POINTER(Text)],
    "tm_meter_free": [Handle],
    "tm_exchange_begin": [Handle, POINTER(Request), POINTER(Handle)],
    "tm_exchange_request_body": [Handle, Slice],
    "tm_exchange_request_complete": [Handle, c_uint64],
    "tm_exchange_request_edit": [Handle, Slice, POINTER(Bytes)],
    "tm_exchange_response_head": [Handle, c_uint16, POINTER(Header), c_size_t, c_uint64],
    "tm_exchange_response_body": [Handle, Slice, c_uint64],
    "tm_exchange_response_edit": [Handle, Slice, c_uint64, POINTER(Bytes)],
    "tm_exchange_client_wait": [Handle, c_uint64],
    "tm_exchange_end": [Handle, c_uint32, c_uint64, POINTER(Handle)],
    "tm_exchange_discard": [Handle],
    "tm_exchange_begin_described": [Handle, POINTER(Begin), POINTER(Handle)],
    "tm_exchange_count_by_engine": [Handle],
    "tm_exchange_prompt_tokens": [Handle, POINTER(PromptTokens)],
    "tm_output_tokens_add": [POINTER(OutputStep), c_size_t, c_uint64],
    "tm_exchange_finish": [Handle, c_uint32, Slice],
    "tm_record_tokens": [Handle, c_uint32, POINTER(c_uint64), POINTER(c_uint32)],
    "tm_record_number": [Handle, c_uint32, POINTER(c_uint64)],
    "tm_record_rate": [Handle, c_uint32, POINTER(c_double)],
    "tm_record_text": [Handle, c_uint32, POINTER(Text)],
    "tm_record_json": [Handle, POINTER(Text)],
    "tm_record_free": [Handle],
}
"""Arguments of each function that returns a status."""
TEXTS: dict[str, list[Any]] = {"tm_version": [], "tm_status_text": [c_int32]}
"""Arguments of each function that returns a text."""


class Library:
    """The loaded library. Its functions are attributes of the same name."""

    def __init__(self, functions: Any) -> None:
        for table, result in ((FUNCTIONS, c_int32), (TEXTS, c_char_p)):
            for name, arguments in table.items():
                function = getattr(functions, name)
                function.argtypes, function.restype = arguments, result
                setattr(self, name, function)
        self.check(self.tm_abi_check(ABI))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(name)                        # declares to type checkers that attributes are functions

    def check(self, status: int) -> int:
        """Returns a status that is not a failure; raises the others."""
        if status >= FAILED:
            raise Error(status, self.message())
        return status

    def message(self) -> str:
        """Returns the message of this thread's last failure."""
        return read_text(lambda text: self.tm_error_message(text), 512)[1]

    def text(self, function: Callable[..., int], *arguments: Any, capacity: int = 256) -> str | None:
        """Returns the text that a function writes; None if it is absent."""
        status, text = read_text(lambda out: function(*arguments, out), capacity)
        return None if self.check(status) == Status.ABSENT else text


def read_text(call: Callable[[Any], int], capacity: int) -> tuple[int, str]:
    """Calls with a buffer that grows until the text fits. A metrics page may grow between two calls, hence the loop."""
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        text = Text(ctypes.cast(buffer, c_char_p), capacity, 0)
        status = call(byref(text))
        if status != Status.BUFFER:
            return status, buffer.raw[: text.length].decode("utf-8", "replace") if status == Status.OK else ""
        capacity = text.length + 1 + text.length // 8


def read_bytes(call: Callable[[Any], int], capacity: int) -> tuple[int, bytes]:
    """Calls once, with a buffer that suffices."""
    buffer = ctypes.create_string_buffer(capacity)
    out = Bytes(ctypes.cast(buffer, c_char_p), capacity, 0)
    status = call(byref(out))
    return status, ctypes.string_at(buffer, out.length) if status == Status.OK else b""


def slice_of(value: bytes | bytearray | memoryview | str) -> Slice:
    """Returns the bytes as the library takes them; only `bytes` need no copy."""
    data = value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else bytes(value)
    return Slice(data, len(data))


loaded: Library | None = None
loading = threading.Lock()


def path() -> str:
    """Returns the path of the library: the bundled one, unless `TOKENMETER_LIBRARY` names another."""
    return os.environ.get("TOKENMETER_LIBRARY") or str(pathlib.Path(__file__).with_name("libtokenmeter.so"))


def library() -> Library:
    """Returns the library, loaded at the first call."""
    global loaded
    if loaded is None:
        with loading:
            if loaded is None:
                loaded = Library(ctypes.CDLL(path()))
    return loaded
