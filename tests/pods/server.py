"""A stand-in for an inference server, unaware of any proxy. SIGTERM cuts its streams at once, as a server may.

usage: server.py PORT
"""
import asyncio
import json
import os
import signal
import sys


async def head(reader):
    """Read a request: its path and its body; None at the end of the connection."""
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    fields = dict(line.lower().split(": ", 1) for line in text.split("\r\n")[1:] if ": " in line)
    return text.split(" ", 2)[1], await reader.readexactly(int(fields.get("content-length", 0)))


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text.encode())


async def stream(writer, body):
    """A chat completion of `max_tokens` frames, one every `pause_ms`."""
    request = json.loads(body)
    frames = request["max_tokens"]
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    base = {"id": "x", "object": "chat.completion.chunk", "model": request["model"]}
    for number in range(frames):
        choice = {"index": 0, "delta": {"content": f" {number}"}, "finish_reason": None}
        writer.write(chunk("data: " + json.dumps({**base, "choices": [choice]}) + "\n\n"))
        await writer.drain()
        await asyncio.sleep(request["pause_ms"] / 1000)
    usage = {"prompt_tokens": 3, "completion_tokens": frames, "total_tokens": 3 + frames}
    if request.get("stream_options", {}).get("include_usage"):
        writer.write(chunk("data: " + json.dumps({**base, "choices": [], "usage": usage}) + "\n\n"))
    writer.write(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


async def serve(reader, writer):
    try:
        while (request := await head(reader)) is not None:
            path, body = request
            if path == "/v1/chat/completions":
                await stream(writer, body)
            else:
                text = f"{path} of {writer.get_extra_info('peername')[0]}\n".encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
                await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    await asyncio.start_server(serve, ["0.0.0.0", "::"], int(sys.argv[1]), backlog=1024)
    print("listening", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
