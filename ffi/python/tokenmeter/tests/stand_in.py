"""A recording stand-in for libtokenmeter.so: Python functions with the names of tokenmeter.h."""
import ctypes

from tokenmeter import _library
from tokenmeter.errors import Status


class StandIn:
    """Records calls; `results` says what a function returns, `texts` what it writes."""

    def __init__(self):
        self.calls, self.results, self.texts, self.next_id = [], {}, {}, 0

    def __getattr__(self, name):
        if not name.startswith("tm_"):
            raise AttributeError(name)

        def function(*arguments):
            return self.call(name, arguments)
        setattr(self, name, function)
        return function

    def call(self, name, arguments):
        if name == "tm_version":
            return b"0.0.0"
        self.calls.append((name, [self.value(argument) for argument in arguments]))
        status = self.results.get(name, Status.OK)
        out = getattr(arguments[-1], "_obj", None) if arguments else None
        if status < _library.FAILED and isinstance(out, _library.Handle):
            self.next_id += 0 if status else 1
            out.id = 0 if status else self.next_id
        if isinstance(out, _library.Text):
            return self.write(out, self.texts.get(name, b"message"), status)
        return status

    @staticmethod
    def write(out, text, status):
        if status != Status.OK:
            return status
        out.length = len(text)
        if out.capacity < len(text) + 1:
            return Status.BUFFER
        address = ctypes.c_void_p.from_buffer(out).value
        ctypes.memmove(address, text + b"\0", len(text) + 1)
        return Status.OK

    @staticmethod
    def value(argument):
        if isinstance(argument, _library.Handle):
            return argument.id
        if isinstance(argument, _library.Slice):
            return ctypes.string_at(ctypes.c_void_p.from_buffer(argument).value, argument.length) if argument.length else b""
        return argument

    def names(self):
        return [name for name, _ in self.calls]
