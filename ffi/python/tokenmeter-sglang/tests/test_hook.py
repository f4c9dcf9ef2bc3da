"""The hook around a stand-in with the signatures of SGLang 0.5.23."""
import asyncio
import logging
import sys
import types
import unittest
import urllib.request
from types import SimpleNamespace

from tokenmeter import Close
from tokenmeter_sglang import plugin
from tokenmeter_sglang.page import serve
from tokenmeter_sglang.plugin import Hook


class Exchange:
    def __init__(self, meter, facts):
        self.meter, self.facts, self.output, self.input, self.cached = meter, facts, {}, 0, 0
        self.reasons, self.ended = {}, None

    def prompt_tokens(self, *, input, cached):
        if self.meter.failing:
            raise RuntimeError
        self.input, self.cached = self.input + input, self.cached + cached

    def finish(self, choice, reason):
        self.reasons[choice] = reason

    def end_unread(self, close):
        self.ended = close


class Tokens:
    def __init__(self):
        self.entries = []

    def add(self, exchange, choice, tokens):
        self.entries.append((exchange, choice, tokens))

    def send(self):
        for exchange, choice, tokens in self.entries:
            exchange.output[choice] = exchange.output.get(choice, 0) + tokens
        self.entries.clear()


class RecordingMeter:
    failing = False

    def __init__(self):
        self.exchanges = []

    def begin_described(self, **facts):
        self.exchanges.append(Exchange(self, facts))
        return self.exchanges[-1]

    def output_tokens(self):
        return Tokens()


class GenerateReqInput(SimpleNamespace):
    pass


class EmbeddingReqInput(SimpleNamespace):
    pass


def request(kind=GenerateReqInput, rid="r", **fields):
    return kind(rid=rid, is_single=True, parallel_sample_num=1, stream=True, batch_size=1, **fields)


def output(tokens, index=None, finish=None, prompt=5, cached=2):
    reason = {"type": finish} if finish else None
    facts = {"id": "r", "prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": tokens, "finish_reason": reason}
    return {"text": "", "meta_info": facts} | ({} if index is None else {"index": index})


class TokenizerManager:
    served_model_name = "tiny"

    def __init__(self, outputs):
        self.outputs, self.closed = outputs, False

    async def generate_request(self, obj, request=None):
        try:
            for output in self.outputs:
                if isinstance(output, BaseException):
                    raise output
                await asyncio.sleep(0)
                yield output
        finally:
            self.closed = True


class HookTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.meter = RecordingMeter()
        self.hook = Hook(lambda: self.meter)

    def call(self, outputs, obj=None):
        self.manager = TokenizerManager(outputs)
        return self.hook.around(TokenizerManager.generate_request, self.manager, obj or request())

    async def read(self, outputs, obj=None):
        return [output async for output in self.call(outputs, obj)]

    async def test_running_totals_are_added_as_growth(self):
        got = await self.read(sent := [output(1), output(4), output(6, finish="length")])
        (exchange,) = self.meter.exchanges
        self.assertEqual((got, exchange.output, exchange.input, exchange.cached), (sent, {0: 6}, 5, 2))
        self.assertEqual((exchange.reasons, exchange.ended, exchange.facts["model"]), ({0: "length"}, Close.CLEAN, "tiny"))

    async def test_unstreamed_batch_is_a_list(self):
        obj = request()
        obj.parallel_sample_num, obj.is_single, obj.batch_size, obj.rid = 2, False, 2, ["a", "b"]
        await self.read([[output(number + 1, finish="stop") for number in range(4)]], obj)
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.output, exchange.input), ({0: 1, 1: 2, 2: 3, 3: 4}, 10))
        self.assertEqual((exchange.facts["answers"], exchange.facts["request_id"]), (4, "a"))

    async def test_streamed_choices_have_an_index(self):
        obj = request()
        obj.parallel_sample_num = 2
        await self.read([output(1, index=1), output(2, index=0), output(3, index=1, finish="stop")], obj)
        self.assertEqual((self.meter.exchanges[0].output, self.meter.exchanges[0].input), ({1: 3, 0: 2}, 5))

    async def test_left_stream_keeps_tokens_that_were_read(self):
        outputs = self.call([output(2), output(5)])
        await anext(outputs)
        await outputs.aclose()
        self.assertEqual((self.meter.exchanges[0].output, self.meter.exchanges[0].ended), ({0: 2}, Close.CLIENT_GONE))
        self.assertTrue(self.manager.closed)

    async def test_sglangs_disconnect_is_a_client_that_left(self):
        for error, close in (("Request is disconnected from the client side", Close.CLIENT_GONE), ("too long", Close.CUT)):
            with self.assertRaises(ValueError):
                await self.read([ValueError(error)])
            self.assertEqual(self.meter.exchanges[-1].ended, close)

    async def test_exception_turns_off_and_costs_no_request(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.meter.failing = True
        self.assertEqual(await self.read(sent := [output(1), output(2)]), sent)
        self.assertEqual(await self.read(sent), sent)
        self.assertEqual((self.hook.is_on, self.hook.failures, len(self.meter.exchanges)), (False, 1, 1))

    async def test_embeddings_and_health_checks_are_not_metered(self):
        await self.read([output(1)], request(EmbeddingReqInput))
        await self.read([output(1)], request(rid="HEALTH_CHECK_1"))
        self.assertEqual(self.meter.exchanges, [])

    def test_hook_is_registered(self):
        registered = []
        module = types.ModuleType("sglang.srt.plugins.hook_registry")
        module.HookType = SimpleNamespace(AROUND="around")
        module.HookRegistry = SimpleNamespace(register=lambda *arguments: registered.append(arguments))
        for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
            sys.modules[name] = types.ModuleType(name)
            self.addCleanup(sys.modules.pop, name)
        sys.modules[module.__name__] = module
        self.addCleanup(sys.modules.pop, module.__name__)
        plugin.register()
        ((target, _, kind),) = registered
        self.assertEqual((target, kind), (plugin.TARGET, "around"))

    def test_page_is_served(self):
        server = serve("127.0.0.1:0", lambda: "a 1\n")
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.assertEqual(opener.open(f"http://127.0.0.1:{server.server_port}/metrics").read(), b"a 1\n")


if __name__ == "__main__":
    unittest.main()
