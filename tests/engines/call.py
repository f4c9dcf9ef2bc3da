"""Sends a request: over a plain socket, which shows every byte, and with curl."""
import pathlib
import socket
import subprocess
import tempfile
import time

import wire
from process import eventually
from tap import CASE

SECONDS = 120
"""Maximum seconds without data; an engine on two busy cores can be slow."""


class Call:
    """One request over a socket of its own, and the bytes received so far."""

    def __init__(self, address, case, name=None):
        self.case, self.received, self.closed = case, bytearray(), False
        self.socket = socket.create_connection(address, timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = [*case.headers, *([(CASE, name)] if name else [])]
        self.socket.sendall(wire.request(case.method, case.path, "%s:%d" % address, case.body, headers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        """Close the connection, whatever is missing."""
        self.socket.close()

    def response(self):
        return wire.parse(bytes(self.received), 0, self.closed, self.case.method)

    def read(self):
        """Read once; false at the end."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.received += data
        self.closed = not data
        return not self.closed

    def read_until(self, enough):
        """Read until enough(bytes so far)."""
        while not enough(self.received) and self.read():
            pass
        return self

    def read_whole(self):
        """The response, read to its end or that of the connection."""
        while not self.closed:
            # checking for the end only where it is possible saves parsing a long stream at every read
            if self.received.endswith((b"\n", b"}", b"]")) or len(self.received) < 4096:
                response = self.response()
                if response and response.whole and (response.header("content-length") or response.header("transfer-encoding")):
                    break
            self.read()
        return self.response()

    def stays_silent(self, seconds):
        """True if nothing is received for that long."""
        self.socket.settimeout(seconds)
        try:
            return not self.read()
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(SECONDS)


def send(address, case, name=None):
    with Call(address, case, name) as call:
        return call.read_whole()


class Curl:
    """As above, with curl; its output goes to files, which can be read meanwhile."""

    def __init__(self, address, case, name=None):
        self.directory = tempfile.TemporaryDirectory(prefix="engine-tests-curl-")
        self.head, self.output = (pathlib.Path(self.directory.name, n) for n in ("head", "output"))
        url = f"http://{address[0]}:{address[1]}{case.path}"
        command = ["curl", "--silent", "--show-error", "--no-buffer", "--noproxy", "*", "--max-time", str(SECONDS),
                   "--request", case.method, "--dump-header", self.head, "--output", self.output, url]
        for header in [*case.headers, *([(CASE, name)] if name else [])]:
            command += ["--header", "%s: %s" % header]
        if case.body is not None:
            command += ["--header", "Content-Type: application/json", "--data-binary", "@-"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.child.stdin.write(case.body or b"")
        self.child.stdin.close()
        self.child.stdin = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()
        self.directory.cleanup()

    def leave(self):
        self.child.terminate()
        self.child.communicate()

    def read_until(self, enough):
        def probe():
            return self.child.poll() is not None or enough(self.body())
        if not eventually(probe, SECONDS):
            raise TimeoutError(f"curl has received only {len(self.body())} bytes")
        return self

    def body(self):
        return self.output.read_bytes() if self.output.exists() else b""

    def finish(self):
        """(exit code, status, end-to-end headers, body)."""
        begun = time.monotonic()
        error = self.child.communicate(timeout=SECONDS + 10)[1].decode().strip()
        print(f"curl: {self.child.returncode} {error} after {time.monotonic() - begun:.2f} s")
        head = self.head.read_bytes() if self.head.exists() else b""
        message = wire.parse(head, 0, True, "HEAD")
        return self.child.returncode, message and message.status, message and message.end_to_end(), self.body()
