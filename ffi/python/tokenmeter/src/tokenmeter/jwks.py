"""Fetches published keys from a URL by one GET, bounded in time and bytes.

https uses the system's root certificates and the proxy of the environment. http is for this machine: it uses no proxy
and follows no redirect, which could lead to another machine without encryption.
"""
import functools
import io
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any

JWKS_BYTES = 512 << 10
"""The maximum size of a JWKS. One with certificates has about ten thousand bytes."""
FETCH_SECONDS = 5.0
"""The timeout of a connection, and of its whole response."""
REDIRECTS = 3
"""The maximum number of redirects from https, none of them to http."""


class FetchError(Exception):
    """A source that has no usable content. The message has no address, whose query may be a secret."""


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects from https to https."""

    max_redirections = REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if req.type != "https":
            fp.close()
            raise FetchError("it redirects, which is not followed over http")
        if urllib.parse.urlsplit(newurl).scheme != "https":
            fp.close()
            raise FetchError("it redirects to a URL that is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class TimedFile(io.RawIOBase):
    """What a socket receives until a deadline. A timeout of the socket alone begins again with each byte."""

    def __init__(self, sock: socket.socket, received: io.RawIOBase) -> None:
        self._sock, self._received, self._deadline = sock, received, time.monotonic() + FETCH_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


class TimedResponse(HTTPResponse):
    """A response whose lines, fields and body have one deadline."""

    def __init__(self, sock: socket.socket, *arguments: Any, **names: Any) -> None:
        super().__init__(sock, *arguments, **names)
        self.fp = io.BufferedReader(TimedFile(sock, self.fp.detach()))


class Timed(urllib.request.AbstractHTTPHandler):
    """Opens connections with timed responses."""

    def do_open(self, http_class: Callable[..., HTTPConnection], req: urllib.request.Request, **names: Any) -> HTTPResponse:
        def connection(*arguments: Any, **names: Any) -> HTTPConnection:
            made = http_class(*arguments, **names)
            made.response_class = TimedResponse
            return made

        return super().do_open(connection, req, **names)


class TimedHTTP(Timed, urllib.request.HTTPHandler):
    """Opens http URLs."""


class TimedHTTPS(Timed, urllib.request.HTTPSHandler):
    """Opens https URLs."""


@functools.cache
def opener(scheme: str) -> urllib.request.OpenerDirector:
    """Returns the HTTP client for URLs of a scheme."""
    proxies = urllib.request.ProxyHandler(None if scheme == "https" else {})
    return urllib.request.build_opener(proxies, Redirects(), TimedHTTP(), TimedHTTPS())


def fetch(url: str) -> bytes:
    """Returns the content at a URL. Raises FetchError."""
    fields = {"accept": "application/jwk-set+json, application/json", "user-agent": "tokenmeter"}
    try:
        client = opener(urllib.parse.urlsplit(url).scheme)
        with client.open(urllib.request.Request(url, headers=fields), timeout=FETCH_SECONDS) as response:
            content = b""
            while part := response.read1(1 << 16):
                content += part
                if len(content) > JWKS_BYTES:
                    raise FetchError(f"it is larger than {JWKS_BYTES} bytes")
            return content
    except Exception as error:
        raise FetchError(describe(error)) from None


def describe(error: Exception) -> str:
    """Describes an error without its address."""
    if isinstance(error, FetchError):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"it responded {error.code}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"it took longer than {FETCH_SECONDS:g} s"
    if isinstance(cause, HTTPException):
        return "its response is not HTTP"
    if isinstance(cause, OSError):
        return f"it cannot be reached: {cause.strerror or type(cause).__name__}"
    return f"it cannot be fetched: {type(cause).__name__}"
