"""The ASGI middleware: the HTTP side of an exchange."""
import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tokenmeter import Close, Error, Status

from tokenmeter_vllm import metrics_page, plugin, registry as registries
from tokenmeter_vllm.registry import InFlight, Registry

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CLIENT_WAIT_MIN_NS = 1_000_000
"""Shorter waits for the client are those of the event loop."""


class Meter:
    """Begins an exchange for each HTTP request of inference, shows it both bodies, and ends it.

    Messages are forwarded unchanged, and before the meter reads them. The context variable that it sets leads the
    engine's hooks to the exchange.
    """

    def __init__(self, app: Application, registry: Registry | None = None) -> None:
        self.app = app
        self.registry = registry or registries.get()
        plugin.start()
        self.page = metrics_page.Page(self.registry) if self.registry else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        registry = self.registry
        if registry is None or scope["type"] != "http":
            return await self.app(scope, receive, send)
        if self.page and metrics_page.is_wanted(scope):
            return await self.page.serve(self.app, scope, receive, send)
        owner = begin(registry, scope) if registry.http.is_on else None
        if owner is None:
            return await self.app(scope, receive, send)
        side = HttpSide(registry, owner, receive, send)
        token = registries.http_exchange.set(owner)
        try:
            await self.app(scope, side.receive, side.send)
        except BaseException as error:
            side.end(type(error))
            raise
        else:
            side.end(None)
        finally:
            registries.http_exchange.reset(token)


def begin(registry: Registry, scope: Scope) -> InFlight | None:
    """Begins the exchange of a request; None if it is not one of inference."""
    try:
        client = scope.get("client")
        exchange = registry.meter.begin(
            method=scope["method"],
            path=path_of(scope),
            headers=scope["headers"],
            peer=client[0] if client else "",
        )
        return None if exchange is None else registry.add(exchange)
    except Exception as error:
        registry.http.trip(error)
        return None


def path_of(scope: Scope) -> str:
    """Returns the path below the application's root, as vLLM's router sees it."""
    path: str = scope["path"]
    root: str = scope.get("root_path") or ""
    return path[len(root) :] if root and path.startswith(root + "/") else path


class HttpSide:
    """The messages of one request and its response."""

    def __init__(self, registry: Registry, owner: InFlight, receive: Receive, send: Send) -> None:
        self.registry, self.owner = registry, owner
        self.forward_receive, self.forward_send = receive, send
        self.complete, self.client_left = False, False

    @property
    def is_metered(self) -> bool:
        return self.registry.http.is_on and self.owner.exchange.is_open

    async def receive(self) -> Message:
        message = await self.forward_receive()
        if message["type"] == "http.disconnect":
            # Also the answer to a `receive` after the response: then the client did not leave.
            self.client_left = not self.complete
        elif self.is_metered:
            try:
                self.read_request(message)
            except Exception as error:
                self.registry.http.trip(error)
        return message

    async def send(self, message: Message) -> None:
        at_ns = time.monotonic_ns()
        await self.forward_send(message)
        self.complete |= message["type"] == "http.response.body" and not message.get("more_body", False)
        if self.is_metered:
            try:
                self.read_response(message, at_ns)
            except Exception as error:
                self.registry.http.trip(error)

    def read_request(self, message: Message) -> None:
        if message["type"] == "http.request":
            if body := message.get("body", b""):
                self.owner.exchange.request_body(body)
            if not message.get("more_body", False):
                self.owner.exchange.request_complete()

    def read_response(self, message: Message, at_ns: int) -> None:
        exchange = self.owner.exchange
        if message["type"] == "http.response.start":
            exchange.response_head(message["status"], message.get("headers", ()), at_ns)
        elif message["type"] == "http.response.body":
            if body := message.get("body", b""):
                try:
                    exchange.response_body(body, at_ns)
                except Error as error:
                    if error.status != Status.DECODING:   # the library counts it, and goes on without the body
                        raise
            waited = time.monotonic_ns() - at_ns
            if waited >= CLIENT_WAIT_MIN_NS:
                exchange.client_wait(waited)

    def end(self, error: type[BaseException] | None) -> None:
        """Ends the exchange, when the application returned or raised."""
        try:
            self.registry.end_request(self.owner, self.close(error))
        except Exception as failure:
            self.registry.http.trip(failure)

    def close(self, error: type[BaseException] | None) -> Close:
        if self.complete:
            return Close.CLEAN
        # A server cancels the application, or `send` fails with an OSError, when the connection is gone.
        gone = error is not None and issubclass(error, (asyncio.CancelledError, OSError))
        return Close.CLIENT_GONE if self.client_left or gone else Close.CUT
