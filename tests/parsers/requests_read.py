"""Other projects' parsers of a stream of requests. Each function returns the whole requests, as method, target and body, and
whether the parser refused the rest."""
import asyncio

import h11
import httptools
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import HttpRequestParserPy
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser


def by_h11(data):
    found, at = [], h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    at.receive_data(data)
    at.receive_data(b"")
    try:
        while True:
            event = at.next_event()
            if isinstance(event, h11.Request):
                start, body = (event.method, event.target), b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                found.append((*start, body))
                at.send(h11.Response(status_code=204, headers=[]))
                at.send(h11.EndOfMessage())
                at.start_next_cycle()
            else:
                return found, False
    except h11.RemoteProtocolError as error:
        # The end within a message is one, too.
        return found, "closed connection" not in str(error) and "without sending complete" not in str(error)
    except h11.LocalProtocolError:
        return found, False  # the request was the last of its connection


class Listener:
    """Collects the events of llhttp."""

    def __init__(self):
        self.found, self.target, self.body = [], b"", b""

    def on_message_begin(self):
        self.target, self.body = b"", b""

    def on_url(self, url):
        self.target += url

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.found.append((self.parser.get_method(), self.target, self.body))


def by_llhttp(data):
    listener = Listener()
    listener.parser = httptools.HttpRequestParser(listener)
    try:
        listener.parser.feed_data(data)
    except httptools.HttpParserError:
        return listener.found, True
    return listener.found, False


def by_gunicorn(data):
    found = []
    try:
        for request in RequestParser(Config(), iter([data]), ("127.0.0.1", 1)):
            body = request.body.read()
            if len(body) < int(dict(request.headers).get("CONTENT-LENGTH", 0)):
                break  # the stream ended within it
            found.append((request.method.encode(), request.uri.encode("latin-1"), body))
    except StopIteration:
        return found, False
    except (ParseException, OSError) as error:
        return found, type(error).__name__ not in ("NoMoreData", "ChunkMissingTerminator")
    return found, False


def by_aiohttp(data):
    async def read():
        parser = HttpRequestParserPy(BaseProtocol(asyncio.get_running_loop()), asyncio.get_running_loop(), 1 << 20)
        messages, is_refused = [], False
        try:
            # In pieces: an error loses the messages of its piece.
            for at in range(0, len(data), 16):
                messages += parser.feed_data(data[at:at + 16])[0]
        except Exception:  # its errors have no common base
            is_refused = True
        whole = [(message.method.encode(), message.path.encode("utf-8", "surrogateescape"), b"".join(getattr(body, "_buffer", ())))
                 for message, body in messages if body.is_eof() and body.exception() is None]
        return whole, is_refused
    return asyncio.run(read())
