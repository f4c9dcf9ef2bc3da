"""The middleware with the engine behind it: one exchange for each HTTP request."""
import asyncio
import unittest

from rig import Client, Rig, respond
from tokenmeter import Close


class Http(Rig):
    async def generate(self, request_id, params=None):
        async for _ in self.llm.generate("prompt", params or self.params(), request_id):
            pass

    async def test_bodies_and_engine_meet_in_one_exchange(self):
        async def application(scope, receive, send):
            await receive()
            await self.generate("r")
            await respond(send, b"{", b"}")
        client = Client(self, application, headers=[(b"x-request-id", b"7")])
        await self.settle()
        self.llm.step(2)
        self.llm.step(1, finish="length")
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.request, exchange.response, exchange.status), (b'{"model": "tiny"}', b"{}", 200))
        self.assertEqual((exchange.tokens, exchange.by_engine, exchange.ended), (3, True, Close.CLEAN))
        self.assertEqual((client.body, exchange.facts["peer"]), (b"{}", "127.0.0.1"))

    async def test_several_prompts_have_choices_of_their_own(self):
        async def application(scope, receive, send):
            await asyncio.gather(*(asyncio.create_task(self.generate(f"r-{index}", self.params(n=2))) for index in range(3)))
            await respond(send)
        client = Client(self, application)
        await self.settle()
        self.llm.step(1, finish="length")
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.output, exchange.input), (dict.fromkeys(range(6), 1), 15))

    async def test_tool_loop_continues_its_choice(self):
        async def application(scope, receive, send):
            await self.generate("r_0")
            await self.generate("r_1")
            await respond(send)
        client = Client(self, application, path="/v1/responses")
        for _ in range(2):
            await self.settle()
            self.llm.step(2, finish="stop")
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.output, exchange.input), ({0: 4}, 10))

    async def test_client_that_leaves_keeps_tokens(self):
        async def application(scope, receive, send):
            await receive()
            work = asyncio.create_task(self.generate("r"))
            await receive()                                # the disconnect
            await self.leave(work)
        client = Client(self, application)
        await self.settle()
        self.llm.step(3)
        client.disconnect()
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, exchange.ended), (3, Close.CLIENT_GONE))

    async def test_exchange_waits_for_generation_that_ends_later(self):
        async def application(scope, receive, send):
            await receive()
            self.work = asyncio.create_task(self.generate("r"))
            await asyncio.sleep(0)
            await receive()
        client = Client(self, application)
        await self.settle()
        client.disconnect()
        await client.task
        self.assertIsNone(self.meter.exchanges[0].ended)
        self.llm.step(2)
        await self.leave(self.work)
        self.assertEqual((self.meter.tokens, self.counter, self.meter.exchanges[0].ended), (2, 2, Close.CLIENT_GONE))

    async def test_background_generation_has_an_exchange_of_its_own(self):
        gate = asyncio.Event()

        async def later():
            await gate.wait()
            await self.generate("r")

        async def application(scope, receive, send):
            self.work = asyncio.create_task(later())
            await respond(send, b"queued")
        await Client(self, application, path="/v1/responses").task
        gate.set()
        await self.settle()
        self.llm.step(2, finish="stop")
        await self.work
        first, second = self.meter.exchanges
        self.assertEqual((first.tokens, first.by_engine, second.tokens, second.ended), (0, False, 2, Close.CLEAN))

    async def test_path_that_is_not_metered_is_counted_by_its_generation(self):
        async def application(scope, receive, send):
            await self.generate("r")
            await respond(send)
        client = Client(self, application, path="/inference/generate")
        await self.settle()
        self.llm.step(2, finish="stop")
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, exchange.facts["model"]), (2, "tiny"))

    async def test_response_that_is_not_one_of_a_model_has_no_record(self):
        async def application(scope, receive, send):
            await receive()
            await respond(send, b"a", b"b")
        self.meter.rejects_head = True
        client = Client(self, application)
        await client.task
        (exchange,) = self.meter.exchanges
        self.assertEqual((client.body, exchange.ended, self.registry.http.failures, self.registry.open), (b"ab", None, 0, set()))

    async def test_application_that_fails_is_cut(self):
        async def application(scope, receive, send):
            raise ValueError
        with self.assertRaises(ValueError):
            await Client(self, application).task
        self.assertEqual(self.meter.exchanges[0].ended, Close.CUT)

    async def test_cancelled_application_is_a_client_that_left(self):
        async def application(scope, receive, send):
            await asyncio.sleep(60)
        client = Client(self, application)
        await self.settle()
        await self.leave(client.task)
        self.assertEqual(self.meter.exchanges[0].ended, Close.CLIENT_GONE)

    async def test_disconnect_after_response_is_clean(self):
        async def application(scope, receive, send):
            await receive()
            await respond(send, b"done")
            await receive()
        client = Client(self, application)
        await self.settle()
        client.disconnect()
        await client.task
        self.assertEqual(self.meter.exchanges[0].ended, Close.CLEAN)


if __name__ == "__main__":
    unittest.main()
