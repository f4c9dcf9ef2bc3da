"""A fake of a hosted provider: an HTTP server (hypercorn) in a thread, which records what it receives.

A provider is a module with `HOST`, `CODINGS` (the content codings it sends, the preferred first), `answer(request)`,
`failure(status)` and `BROKEN`, an error within a stream. Tests say what the next requests meet by `fail`, `hold` and
`interrupt`.
"""
import asyncio
import collections
import json
import threading
import zlib
from dataclasses import dataclass, field

import brotli
import hypercorn.asyncio
import hypercorn.config
import zstandard
from process import free_port

HELD_MAX_S = 20
"""A held stream ends by itself after this time."""


@dataclass
class Request:
    """A request as received."""
    version: str
    method: str
    target: str
    headers: list
    body: bytes

    @property
    def path(self):
        return self.target.partition("?")[0]

    @property
    def query(self):
        return dict(part.partition("=")[::2] for part in self.target.partition("?")[2].split("&") if part)

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return next((value for key, value in self.headers if key == name), "")


@dataclass
class Reply:
    """A response: `body`, or the pieces of a stream, each sent on its own."""
    status: int
    headers: list
    body: bytes = b""
    pieces: list = field(default_factory=list)
    compressed: bool = True


def json_reply(status, headers, value, indent=None):
    separators = None if indent else (",", ":")
    body = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False).encode()
    return Reply(status, [("content-type", "application/json"), *headers], body)


def event(value, name=None, end="\n"):
    """One server-sent event."""
    data = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return (f"event: {name}{end}" if name else "").encode() + f"data: {data}{end}{end}".encode()


class Compressor:
    """A content coding, flushed after each piece so that a stream stays one."""

    def __init__(self, coding):
        if coding == "gzip":
            made = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
            self.compress, self.flush, self.finish = made.compress, lambda: made.flush(zlib.Z_SYNC_FLUSH), made.flush
        elif coding == "br":
            made = brotli.Compressor()
            self.compress, self.flush, self.finish = made.process, made.flush, made.finish
        else:
            made = zstandard.ZstdCompressor().compressobj()
            self.compress, self.finish = made.compress, made.flush
            self.flush = lambda: made.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def piece(self, data):
        return self.compress(data) + self.flush()


class Fake:
    """One provider as a server. With an authority it speaks TLS, with these protocols by ALPN, and serves requests
    for its own name only."""

    def __init__(self, provider, authority=None, protocols=()):
        self.provider, self.authority, self.protocols = provider, authority, protocols
        self.port = free_port()
        self.url = f"{'https' if authority else 'http'}://127.0.0.1:{self.port}"
        self.requests, self.failures = [], collections.deque()
        self.held = self.interrupted = None
        self.left = threading.Event()
        self.loop, self.started = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        assert self.started.wait(10), "the fake did not start"

    def fail(self, *statuses):
        """The next requests get these errors."""
        self.failures.extend(statuses)

    def hold(self, pieces):
        """The next stream stops after this number of pieces, until its client leaves."""
        self.held = pieces
        self.left.clear()

    def interrupt(self, pieces):
        """The next stream ends in an error after this number of pieces."""
        self.interrupted = pieces

    def forget(self):
        """Cancels the planned errors and stops."""
        self.failures.clear()
        self.held = self.interrupted = None

    def last(self):
        return self.requests[-1]

    def serve(self):
        asyncio.set_event_loop(self.loop)
        config = hypercorn.config.Config()
        config.bind = [f"127.0.0.1:{self.port}"]
        config.include_server_header = False
        config.accesslog = config.errorlog = None
        config.graceful_timeout = 0.1
        if self.authority:
            config.alpn_protocols = list(self.protocols)
            config.certfile, config.keyfile = str(self.authority.chain), str(self.authority.key)
        self.stopped = asyncio.Event()
        self.loop.run_until_complete(hypercorn.asyncio.serve(self.app, config, shutdown_trigger=self.stopped.wait))

    def stop(self):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(10)

    async def app(self, scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.startup":
                    self.started.set()
                else:
                    return
        request = await self.read(scope, receive)
        self.requests.append(request)
        if self.authority and request.header("host").partition(":")[0] != self.provider.HOST:
            reply = Reply(403, [("content-type", "text/html"), ("server", "cloudflare")], b"error code: 1003")
        elif self.failures:
            reply = self.provider.failure(self.failures.popleft())
        else:
            reply = self.provider.answer(request)
            if reply.pieces and self.interrupted is not None:
                reply.pieces[self.interrupted:] = [self.provider.BROKEN]
                self.interrupted = None
        await self.write(reply, request, receive, send)

    async def read(self, scope, receive):
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        target = scope["raw_path"].decode("latin-1")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        return Request(scope["http_version"], scope["method"], target, headers, body)

    async def write(self, reply, request, receive, send):
        headers = list(reply.headers)
        accepted = {one.partition(";")[0].strip() for one in request.header("accept-encoding").split(",")}
        coding = next((one for one in self.provider.CODINGS if one in accepted), None) if reply.compressed else None
        compressor = Compressor(coding) if coding else None
        if coding:
            headers.append(("content-encoding", coding))
        body = reply.body
        if compressor and body:
            body = compressor.compress(body) + compressor.finish()
        if not reply.pieces:
            headers.append(("content-length", str(len(body))))
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        held, self.held = (self.held, None) if reply.pieces else (None, self.held)
        for number, piece in enumerate(reply.pieces):
            if number == held:
                await self.wait_for_client(receive)
                return
            data = compressor.piece(piece) if compressor else piece
            await send({"type": "http.response.body", "body": data, "more_body": True})
            await asyncio.sleep(0.002)
        if compressor and reply.pieces:
            body = compressor.finish()
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def wait_for_client(self, receive):
        async def gone():
            while (await receive())["type"] != "http.disconnect":
                pass
        try:
            await asyncio.wait_for(gone(), HELD_MAX_S)
            self.left.set()
        except TimeoutError:
            pass
