"""The engine's hooks outside HTTP: each generation is an exchange of its own."""
import asyncio
import random
import unittest

from engine import EngineCoreRequest, Queue
from rig import Rig
from tokenmeter import Close


class Generations(Rig):
    async def test_streamed_generation_is_counted(self):
        task, outputs = self.start(outputs=(got := [])), got
        await self.settle()
        self.llm.step(2)
        self.llm.step(1, finish="length")
        await task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.output, exchange.input, exchange.cached, exchange.written), ({0: 3}, 5, 2, 1))
        self.assertEqual((exchange.reasons, exchange.ended, exchange.by_engine), ({0: "length"}, Close.CLEAN, True))
        self.assertEqual((exchange.facts["model"], exchange.facts["request_id"]), ("tiny", "r"))
        self.assertEqual([output.tokens for output in outputs], [2, 1])

    async def test_abort_before_first_token_ends_with_zero(self):
        task = self.start()
        await self.settle()
        await self.leave(task)
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, exchange.ended), (0, Close.CLIENT_GONE))
        self.assertEqual(self.llm.output_processor.request_states, {})

    async def test_abort_after_first_token_keeps_tokens(self):
        task = self.start()
        await self.settle()
        self.llm.step(2)
        late = self.llm.hold()
        await self.leave(task)
        self.llm.output_processor.process_outputs(late)    # vLLM ignores outputs of aborted requests
        self.assertEqual((self.meter.tokens, self.meter.exchanges[0].ended), (2, Close.CLIENT_GONE))
        self.assertEqual(self.counter, 2)

    async def test_unstreamed_abort_keeps_tokens(self):
        task = self.start(params=self.params(streamed=False), outputs=(outputs := []))
        await self.settle()
        for _ in range(4):
            self.llm.step(3)
        await self.leave(task)
        self.assertEqual((outputs, self.meter.tokens, self.counter), ([], 12, 12))

    async def test_choices_are_separate_and_prompt_counts_once(self):
        task = self.start(params=self.params(n=3))
        await self.settle()
        self.llm.step(2)
        self.llm.step(1, finish="stop", only=lambda state: state.request_index == 1)
        self.llm.step(1, finish="length")
        await task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.output, exchange.input), ({0: 3, 1: 3, 2: 3}, 5))
        self.assertEqual(exchange.reasons, {0: "length", 1: "stop", 2: "length"})
        self.assertEqual((exchange.facts["answers"], self.counter), (3, 9))

    async def test_tokens_after_stop_string_count_as_in_vllm(self):
        task = self.start(params=self.params(stop_after=4))
        await self.settle()
        self.llm.step(3)
        self.llm.step(3)
        await task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, self.counter, exchange.reasons), (6, 6, {0: "stop"}))

    async def test_stop_string_at_the_length_limit_is_a_stop(self):
        task = self.start(params=self.params(stop_after=4))
        await self.settle()
        self.llm.step(3)
        self.llm.step(1, finish="length")
        await task
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, exchange.reasons), (4, {0: "stop"}))
        self.assertEqual(self.llm.output_processor.reasons, ["stop"])

    async def test_equal_request_ids_stay_apart(self):
        first, second = self.start("same"), self.start("same")
        await self.settle()
        queues = [state.queue for state in self.llm.output_processor.request_states.values()]
        self.llm.step(5, only=lambda state: state.queue is queues[0])
        await self.leave(first)
        self.llm.step(1, finish="length")
        await second
        self.assertEqual([(exchange.tokens, exchange.ended) for exchange in self.meter.exchanges],
                         [(5, Close.CLIENT_GONE), (1, Close.CLEAN)])

    async def test_rejected_request_ends_cut(self):
        self.llm.rejects = True
        with self.assertRaises(ValueError):
            await self.read()
        (exchange,) = self.meter.exchanges
        self.assertEqual((exchange.tokens, exchange.ended), (0, Close.CUT))

    async def test_caller_that_closes_after_last_output_is_clean(self):
        async def read_one():
            outputs = self.llm.generate("prompt", self.params(streamed=False), request_id="r")
            await anext(outputs)
            await outputs.aclose()
        task = asyncio.create_task(read_one())
        await self.settle()
        self.llm.step(1, finish="length")
        await task
        self.assertEqual(self.meter.exchanges[0].ended, Close.CLEAN)

    async def test_generator_never_started_is_no_exchange(self):
        await self.llm.generate("prompt", self.params(), "r").aclose()
        self.assertEqual(self.meter.exchanges, [])

    async def test_forgotten_generator_ends_with_its_tokens(self):
        outputs = self.llm.generate("prompt", self.params(), "r")
        step = asyncio.create_task(anext(outputs))
        await self.settle()
        self.llm.step(2)
        await step
        late = self.llm.hold()
        del outputs, step
        self.llm.output_processor.process_outputs(late)    # vLLM counts until the collected generator is closed
        await self.settle()
        self.assertEqual((self.meter.tokens, self.counter), (5, 5))
        self.assertEqual(self.meter.exchanges[0].ended, Close.CLIENT_GONE)

    async def test_step_is_one_call(self):
        tasks = [self.start(f"r{number}") for number in range(8)]
        await self.settle()
        self.llm.step(1)
        self.assertEqual(self.meter.sends, 1)
        self.llm.step(1, finish="length")
        await asyncio.gather(*tasks)

    async def test_engine_without_generations_starts_no_meter(self):
        self.hooks.get = self.fail
        self.llm.output_processor.add_request(EngineCoreRequest("sync", "sync", self.params()), None)
        self.llm.step(1, finish="length")

    async def test_request_from_before_the_hook_is_unattributed(self):
        self.hooks.start()
        self.llm.output_processor.add_request(EngineCoreRequest("old", "old", self.params()), None, None, 0, Queue())
        self.llm.step(4, finish="length")
        self.assertEqual((self.registry.unattributed_tokens, self.counter, self.meter.exchanges), (4, 4, []))

    async def test_streamed_input_is_joined(self):
        task = self.start(params=self.params(streamed_input=True))
        await self.settle()
        self.llm.step(2, finish="length")
        await task
        self.assertEqual((self.meter.tokens, self.registry.unattributed_tokens), (2, 0))

    async def test_request_that_vllm_lost_is_unattributed(self):
        self.llm.send_waits = True
        task = self.start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await self.leave(task)                             # vLLM does not abort a request whose send is cancelled
        self.llm.step(2, finish="length")
        self.assertEqual((self.counter, self.meter.tokens, self.registry.unattributed_tokens), (2, 0, 2))

    async def test_arguments_by_name_and_position(self):
        for arguments, names in ((("p", self.params(), "r"), {}), ((), {"prompt": "p", "sampling_params": self.params(), "request_id": "r"})):
            outputs = self.llm.generate(*arguments, **names)
            step = asyncio.create_task(anext(outputs))
            await self.settle()
            self.llm.step(1, finish="length")
            await step
            await outputs.aclose()
        self.assertEqual([exchange.facts["request_id"] for exchange in self.meter.exchanges], ["r", "r"])
        self.assertTrue(self.registry.engine.is_on)

    async def test_random_traffic_equals_vllms_counter(self):
        draw, tasks = random.Random(1), []
        for number in range(300):
            choices = draw.choice([1, 1, 2, 3])
            params = self.params(n=choices, streamed=draw.random() < 0.6, stop_after=draw.choice([None, None, 4, 7]))
            tasks.append(self.start(f"r{draw.randrange(20)}", params))
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
                held = self.llm.hold(lambda _: draw.random() < 0.2)
                if draw.random() < 0.3:
                    task = draw.choice(tasks)
                    task.cancel()
                    await asyncio.sleep(0)
                self.llm.output_processor.process_outputs(held)
                self.llm.step(draw.randrange(1, 4), only=lambda _: draw.random() < 0.7)
                self.llm.step(1, finish="length", only=lambda _: draw.random() < 0.05)
        await self.settle()
        self.llm.step(1, finish="length")
        await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual(self.meter.tokens, self.counter)
        self.assertEqual((self.registry.open, self.registry.unattributed_tokens, self.registry.engine.failures), (set(), 0, 0))
        self.assertTrue(all(exchange.ended is not None for exchange in self.meter.exchanges))


if __name__ == "__main__":
    unittest.main()
