"""tokenmeter between a server that records what it receives and clients that record what they receive."""
import asyncio
import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.request

import canonical

AT_ONCE = 64
"""Clients at a time."""

SILENCE_S = 0.15
"""A client leaves after this time without a byte."""


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        bound = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in bound]


@contextlib.contextmanager
def proxy(upstream):
    """tokenmeter in front of this port; yields its own."""
    port, admin = free_ports(2)
    command = [os.environ["TOKENMETER_BIN"], "run", "--upstream", f"http://127.0.0.1:{upstream}", "--listen", f"127.0.0.1:{port}",
               "--admin", f"127.0.0.1:{admin}"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 20
            while not answers(admin):
                log.seek(0)
                assert process.poll() is None and time.monotonic() < deadline, f"tokenmeter does not start: {log.read()}"
                time.sleep(0.05)
            yield port
            log.seek(0)
            text = log.read()
            assert process.poll() is None and "panicked" not in text, text[-4000:]
        finally:
            process.terminate()
            process.wait(30)


def answers(admin):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=5).status == 200
    except OSError:
        return False


class Recorder:
    """A server that keeps the bytes of each connection, and closes it after some requests."""

    def __init__(self, requests_per_connection=8):
        self.connections, self.requests, self.requests_per_connection = [], [], requests_per_connection

    def record(self, request):
        self.requests.append((*request.start, request.body))

    def take(self):
        """The whole requests since the last call."""
        taken, self.requests = self.requests, []
        return taken

    async def serve(self, reader, writer):
        received, at, count = b"", 0, 0
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                received += piece
                with contextlib.suppress(canonical.NotCanonical):  # the test finds it in what was recorded
                    while (found := canonical.request(received, at)) is not None and found[0].is_whole:
                        at, count = found[1], count + 1
                        self.record(found[0])
                        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                if count == self.requests_per_connection:
                    break
        self.connections.append(received)
        writer.close()


class Scripted:
    """A server whose response to the request for `/N` is script N, cut in two."""

    def __init__(self, scripts):
        self.scripts = scripts

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            number = int(head.split(b" ")[1][1:])
            script = self.scripts[number]
            cut = number % (len(script) + 1)
            writer.write(script[:cut])
            await writer.drain()
            await asyncio.sleep(0.001)
            writer.write(script[cut:])
            await writer.drain()
        writer.close()


async def send(port, data, cut):
    """Sends bytes, cut in two, and returns what is received before the end, or before a silence."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        writer.write(data[:cut])
        await writer.drain()
        await asyncio.sleep(0.001)
        writer.write(data[cut:])
        await writer.drain()
        while piece := await asyncio.wait_for(reader.read(1 << 16), SILENCE_S):
            received += piece
    writer.close()
    return received


async def send_all(port, scripts):
    """What each script's client receives."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number, script):
        async with places:
            return await send(port, script, number % (len(script) + 1))
    return await asyncio.gather(*(one(*script) for script in enumerate(scripts)))


def exchange(server, scripts):
    """What each client receives, if the clients send these scripts to tokenmeter before this server."""
    async def run():
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        async with listening:
            with proxy(listening.sockets[0].getsockname()[1]) as port:
                return await send_all(port, scripts)
    return asyncio.run(run())
