"""HTTP/1.1 messages as bytes: their ends, and their contents without framing.

Written for the tests and used on both sides of the proxy, so that neither curl nor the proxy
itself has to be believed about where a body ended.
"""
import gzip
from dataclasses import dataclass

HOP_BY_HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
              "te", "trailer", "transfer-encoding", "upgrade"}
CLIENT = {"User-Agent": "engine-tests", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
"""The header fields of every client of the tests."""


@dataclass
class Message:
    """A request or a response; `whole` is false if the connection ended before the message did."""
    first: str
    headers: list
    body: bytes
    whole: bool
    end: int
    begun: int = 0
    """Its position among all recorded messages, in the order of their starts."""

    @property
    def status(self):
        return int(self.first.split()[1])

    @property
    def path(self):
        return self.first.split()[1]

    @property
    def method(self):
        return self.first.split()[0]

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    def content(self):
        """Its body, unpacked."""
        return gzip.decompress(self.body) if self.header("content-encoding") == "gzip" else self.body

    def end_to_end(self):
        """Its headers, sorted, without those of one connection."""
        named = {n.strip().lower() for key, value in self.headers if key == "connection" for n in value.split(",")}
        return sorted((k, v) for k, v in self.headers if k not in HOP_BY_HOP | named)


def request(method, path, host, body=None, headers=()):
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in CLIENT.items())]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def parse(data, start=0, closed=False, method=None):
    """The message at `start`, or None before its head is complete.

    `closed`: no more bytes will come. `method`: for a response, that of its request;
    None parses a request.
    """
    head_end = data.find(b"\r\n\r\n", start)
    if head_end < 0:
        return None
    first, *lines = bytes(data[start:head_end]).decode("latin-1").split("\r\n")
    at = head_end + 4
    if method and first.split()[1].startswith("1"):
        return parse(data, at, closed, method)               # an interim response is not the response
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    message = Message(first, headers, b"", True, at)
    coding, length = message.header("transfer-encoding"), message.header("content-length")
    if method == "HEAD" or method and message.status in (204, 304):
        pass
    elif coding and "chunked" in coding.lower():
        message.body, message.whole, message.end = dechunk(data, at)
    elif length is not None:
        message.end = min(len(data), at + int(length))
        message.body, message.whole = bytes(data[at:message.end]), len(data) >= at + int(length)
    elif method:
        message.body, message.whole, message.end = bytes(data[at:]), closed, len(data)
    return message


def dechunk(data, at):
    """(body, true if its last chunk has arrived, its end), for the bytes so far."""
    body = bytearray()
    while True:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return bytes(body), False, len(data)
        size = int(bytes(data[at:line_end]).split(b";")[0], 16)
        at = line_end + 2
        if size == 0:
            while (line_end := data.find(b"\r\n", at)) > at:   # trailers
                at = line_end + 2
            return bytes(body), line_end == at, len(data) if line_end < 0 else at + 2
        body += data[at:at + size]
        if len(data) < at + size + 2:
            return bytes(body), False, len(data)
        at += size + 2
