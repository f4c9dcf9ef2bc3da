"""Hooked stand-ins with a recording meter, and requests to them."""
import asyncio
import importlib
import unittest

import engine
from recording import RecordingMeter
from tokenmeter_vllm.hooks import Hooks
from tokenmeter_vllm.middleware import Meter
from tokenmeter_vllm.registry import Registry
from tokenmeter_vllm.settings import Settings


class Rig(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        importlib.reload(engine)                           # classes without the hooks of other tests
        self.meter = RecordingMeter()
        self.registry = Registry(self.meter, Settings())
        self.original = engine.AsyncLLM.generate
        self.hooks = Hooks(engine.AsyncLLM, engine.OutputProcessor, lambda: self.registry)
        self.llm = engine.AsyncLLM()

    @property
    def counter(self):
        return self.llm.output_processor.generation_tokens_total

    def params(self, **fields):
        return engine.SamplingParams(**fields)

    async def settle(self):
        for _ in range(20):
            await asyncio.sleep(0)

    async def read(self, request_id="r", params=None, outputs=None):
        """Reads a generation to its end."""
        async for output in self.llm.generate("prompt", params or self.params(), request_id):
            if outputs is not None:
                outputs.append(output)

    def start(self, *arguments, **fields):
        return asyncio.get_running_loop().create_task(self.read(*arguments, **fields))

    async def leave(self, task):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Client:
    """One HTTP request through the middleware to an application."""

    def __init__(self, rig, application, path="/v1/completions", headers=()):
        self.messages, self.inbox = [], asyncio.Queue()
        self.inbox.put_nowait({"type": "http.request", "body": b'{"model": "tiny"}', "more_body": False})
        scope = {"type": "http", "method": "POST", "path": path, "headers": list(headers), "client": ("127.0.0.1", 1)}
        self.task = asyncio.get_running_loop().create_task(Meter(application, rig.registry)(scope, self.inbox.get, self.send))

    async def send(self, message):
        self.messages.append(message)

    def disconnect(self):
        self.inbox.put_nowait({"type": "http.disconnect"})

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.messages)


async def respond(send, *parts):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
