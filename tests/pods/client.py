"""Clients that know the address of a server and nothing of a proxy."""
import asyncio
import json


class ClosedIdle(Exception):
    """A kept connection that the server closed before a byte of the answer: pools send such a request again."""


class Connection:
    """A pooled HTTP/1.1 connection."""

    def __init__(self, host, port):
        self.host, self.port, self.reader, self.writer, self.is_kept = host, port, None, None, False

    async def get(self, path):
        """The status and the body."""
        await self._send(f"GET {path} HTTP/1.1\r\nHost: {authority(self.host, self.port)}\r\n\r\n")
        return await self._answer()

    async def chat(self, tokens, pause_ms):
        """The status and the body of a stream."""
        body = json.dumps({"model": "m", "stream": True, "max_tokens": tokens, "pause_ms": pause_ms,
                           "messages": [{"role": "user", "content": "hi"}]})
        await self._send(f"POST /v1/chat/completions HTTP/1.1\r\nHost: {authority(self.host, self.port)}\r\n"
                         f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        return await self._answer()

    def is_open(self):
        """True while the connection may be used again. Clients check it before they do."""
        return self.writer is not None and not self.reader.at_eof()

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None

    async def _send(self, text):
        if not self.is_open():
            self.close()
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            self.is_kept = False
        self.writer.write(text.encode())
        try:
            await self.writer.drain()
        except ConnectionError as error:
            if self.is_kept:
                raise ClosedIdle from error
            raise

    async def _answer(self):
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if self.is_kept and not getattr(error, "partial", b""):
                raise ClosedIdle from error
            raise
        self.is_kept = True
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        else:
            body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            self.close()
        return int(head.split(" ", 2)[1]), body.decode()


async def once(host, port, path):
    """One GET on a connection of its own."""
    connection = Connection(host, port)
    try:
        return await connection.get(path)
    finally:
        connection.close()


def is_whole(answer, tokens):
    """True if an answer is the whole stream, with the same frames as without a proxy."""
    status, body = answer
    return status == 200 and body.count('"content"') == tokens and body.endswith("data: [DONE]\n\n") \
        and '"usage"' not in body


def authority(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
