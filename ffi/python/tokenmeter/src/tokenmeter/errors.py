"""The error of a call into the library."""
from enum import IntEnum


class Status(IntEnum):
    """Results of a call, as numbered in tokenmeter.h. From 100 on a call failed."""

    OK = 0
    ABSENT = 1
    NOT_METERED = 2
    UNCHANGED = 3
    NULL = 100
    HANDLE = 101
    ORDER = 102
    VALUE = 103
    TEXT = 104
    BUFFER = 105
    SIZE = 106
    ALIGNMENT = 107
    PRICES = 200
    TENANTS = 201
    DECODING = 202
    LIMIT = 300
    PANIC = 301
    ABI = 302
    START = 303
    UNSUPPORTED = 304


class Error(Exception):
    """A call that failed: its status, and the library's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (status {status})")
        self.status = status
        self.message = message
