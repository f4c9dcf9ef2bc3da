"""Other projects' parsers of the response to a GET. Each function returns its status, its body, and whether it is whole;
`None` if the parser refuses it."""
import asyncio
import http.client
import io

import h11
import httptools
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import HttpResponseParserPy


def by_h11(data):
    at = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    at.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    at.send(h11.EndOfMessage())
    at.receive_data(data)
    at.receive_data(b"")
    status, body = None, b""
    try:
        while True:
            event = at.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return status, body, True
            elif not isinstance(event, h11.InformationalResponse):
                return None
    except h11.RemoteProtocolError as error:
        return (status, body, False) if "closed connection" in str(error) else None


class Listener:
    """Collects the events of llhttp."""

    def __init__(self):
        self.status, self.body, self.is_whole = None, b"", False

    def on_message_begin(self):
        self.body, self.is_whole = b"", False

    def on_headers_complete(self):
        self.status = self.parser.get_status_code()

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.is_whole = self.status >= 200


def by_llhttp(data):
    listener = Listener()
    listener.parser = httptools.HttpResponseParser(listener)
    try:
        listener.parser.feed_data(data)
    except httptools.HttpParserError:
        return None
    return listener.status, listener.body, listener.is_whole


def by_aiohttp(data):
    async def read():
        loop = asyncio.get_running_loop()
        parser = HttpResponseParserPy(BaseProtocol(loop), loop, 1 << 20, response_with_body=True)
        try:
            messages, _, _ = parser.feed_data(data)
        except Exception:  # its errors have no common base
            return None
        if not messages:
            return None
        try:
            parser.feed_eof()
        except Exception:
            pass  # `body` shows if it is whole
        message, body = messages[-1]
        return message.code, b"".join(getattr(body, "_buffer", ())), body.is_eof() and body.exception() is None
    return asyncio.run(read())


class Received(io.BytesIO):
    """A socket that has received these bytes, and a file that stays open after an interim response."""

    def makefile(self, *_):
        return self

    def close(self):
        pass


def by_python(data):
    received = Received(data)
    try:
        while True:
            response = http.client.HTTPResponse(received, method="GET")
            response.begin()
            if response.status >= 200:
                return response.status, response.read(), True
    except http.client.IncompleteRead as error:
        return response.status, error.partial, False
    except http.client.HTTPException:
        return None
