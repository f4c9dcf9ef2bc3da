"""Exceptions inside the plugin: the part is off, the exception is counted, no request notices."""
import importlib.util
import logging
import pathlib
import sys
import tempfile
import unittest

import engine
from rig import Client, Rig, respond
from tokenmeter import Close
from tokenmeter_vllm import plugin
from tokenmeter_vllm.after_import import AfterImport
from tokenmeter_vllm.settings import Settings


class Failures(Rig):
    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    async def serve(self, outputs):
        task = self.start(outputs=outputs)
        await self.settle()
        self.llm.step(1)
        self.llm.step(1, finish="length")
        await task

    async def test_each_failing_call_unhooks_and_costs_no_request(self):
        for failing in ("begin_described", "count_by_engine", "add", "send", "prompt_tokens", "finish", "end"):
            with self.subTest(failing):
                self.setUp()
                self.meter.failing = failing
                await self.serve(outputs := [])
                self.assertEqual([output.finished for output in outputs], [False, True])
                self.assertEqual((self.registry.engine.is_on, self.registry.engine.failures), (False, 1))
                self.assertIs(engine.AsyncLLM.generate, self.original)
                self.assertEqual(self.registry.level, "reported")
                await self.serve(again := [])
                self.assertEqual((len(again), self.registry.engine.failures), (2, 1))

    async def test_incomplete_counts_are_dropped_and_counted(self):
        first = self.start("first")
        await self.settle()
        self.llm.step(2)
        self.meter.failing = "add"
        self.llm.step(2)
        self.meter.failing = None
        self.llm.step(1, finish="length")
        await first
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.discarded, exchange.ended, self.registry.lost_exchanges), (True, None, 1))

    async def test_unexpected_engine_unhooks(self):
        self.llm.model_config = None
        await self.serve(outputs := [])
        self.assertEqual((len(outputs), self.registry.engine.failures), (2, 1))

    async def test_later_wrapper_of_another_plugin_stays(self):
        ours = engine.AsyncLLM.generate
        engine.AsyncLLM.generate = lambda *args, **kwargs: ours(*args, **kwargs)
        theirs, self.meter.failing = engine.AsyncLLM.generate, "count_by_engine"
        await self.serve(outputs := [])
        await self.serve(outputs)
        self.assertIs(engine.AsyncLLM.generate, theirs)
        self.assertEqual((len(outputs), self.registry.engine.failures), (4, 1))

    async def test_failing_middleware_forwards_everything(self):
        async def application(scope, receive, send):
            await receive()
            await respond(send, b"a", b"b")
        for failing in ("begin", "request_body", "response_head", "response_body", "end"):
            with self.subTest(failing):
                self.setUp()
                self.meter.failing = failing
                client = Client(self, application)
                await client.task
                self.assertEqual((client.body, self.registry.http.failures), (b"ab", 1))

    async def test_engine_counts_on_without_the_middleware(self):
        async def application(scope, receive, send):
            await self.read()
            await respond(send, b"done")
        self.meter.failing = "response_head"
        client = Client(self, application)
        await self.settle()
        self.llm.step(2, finish="length")
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((client.body, exchange.tokens, exchange.ended), (b"done", 2, Close.CLEAN))
        self.assertEqual(self.registry.level, "engine")

    async def test_engine_counts_after_the_middleware_failed(self):
        async def application(scope, receive, send):
            await receive()
            await self.read()
            await respond(send, b"done")
        self.meter.failing = "request_body"
        client = Client(self, application)
        await self.settle()
        self.llm.step(2, finish="length")
        await client.task
        dropped, counted = self.meter.exchanges
        self.assertEqual((dropped.discarded, counted.tokens, counted.ended), (True, 2, Close.CLEAN))
        self.assertEqual((self.registry.lost_exchanges, self.registry.engine.failures), (1, 0))

    async def test_library_that_is_missing_unhooks(self):
        self.hooks.get = lambda: None
        await self.serve(outputs := [])
        self.assertEqual(len(outputs), 2)
        self.assertIs(engine.AsyncLLM.generate, self.original)


class Registration(unittest.TestCase):
    def version(self, version):
        sys.modules["vllm"] = type(sys)("vllm")
        sys.modules["vllm"].__version_tuple__ = version
        self.addCleanup(sys.modules.pop, "vllm")

    def test_tested_version_is_hooked(self):
        self.version((0, 32, 1))
        self.assertTrue(plugin.is_supported(force=False))

    def test_other_version_warns_once_and_can_be_forced(self):
        self.version((0, 33, 0))
        for force in (False, True):
            with self.assertLogs("tokenmeter", "WARNING") as logs:
                self.assertEqual(plugin.is_supported(force), force)
            self.assertEqual(len(logs.output), 1)

    def test_hook_follows_the_import(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "later_module.py").write_text("value = 1\n")
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            self.addCleanup(sys.modules.pop, "later_module")
            seen = []
            AfterImport("later_module", lambda module: seen.append(module.value))
            self.assertEqual(seen, [])
            importlib.import_module("later_module")
            self.assertEqual(seen, [1])
            AfterImport("later_module", lambda module: seen.append(2))
            self.assertEqual(seen, [1, 2])

    def test_settings_are_read(self):
        settings = Settings.read({"TOKENMETER_UPSTREAM_NAME": "a", "TOKENMETER_FORCE": "1", "TOKENMETER_PRICES": ""})
        self.assertEqual((settings.upstream, settings.force, settings.off, settings.prices), ("a", True, False, None))


if __name__ == "__main__":
    unittest.main()
