"""The package with libtokenmeter, which `TOKENMETER_LIBRARY` names."""
import ctypes
import gc
import re
import threading
import unittest

import transcript
from tokenmeter import Close, Error, Meter, Number, Provenance, Rate, Status, TextValue, TokenCount, TokenType, UsagePolicy, _library

CHAT = "/v1/chat/completions"
JSON = [("content-type", "application/json")]
STREAM = [(b"Content-Type", b"text/event-stream")]
PRICES = b"""\
version: "1"
currency: USD
unit: per_million
models:
  - name: tiny
    input: 1.00
    output: 2.00
"""
TENANTS = b"rules:\n  - header: x-tenant\ntrusted_peers: [127.0.0.1/32]\n"
KEYS = "https://id.example.com/keys"
TOKENS = f"rules:\n  - jwt: {{keys: {KEYS}, issuer: a, audience: [b], claim: c, algorithms: [RS256]}}\n".encode()


def event(text):
    return b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n' % text


class WithMeter(unittest.TestCase):
    def setUp(self):
        self.meter = Meter(upstream="here", kind="vllm")
        self.addCleanup(self.meter.close)

    def begin(self, body=b'{"model": "tiny", "messages": [], "stream": true}', **fields):
        exchange = self.meter.begin(method="POST", path=CHAT, **fields)
        exchange.request_body(body)
        exchange.request_complete()
        return exchange

    def in_flight(self):
        return sum(float(value) for value in re.findall(r"^tokenmeter_exchanges_in_flight\S* (\S+)$", self.meter.metrics(), re.M))

    def fails(self, status, call, *arguments, **names):
        with self.assertRaises(Error) as raised:
            call(*arguments, **names)
        self.assertEqual(raised.exception.status, status)
        return raised.exception.message


class Recorded(WithMeter):
    def test_transcripts_give_their_records(self):
        count = 0
        for one in transcript.simple():
            exchange = self.meter.begin(method="POST", path=one.target, headers=one.request_headers, at_ns=0)
            exchange.request_body(one.request)
            exchange.request_complete(0)
            if not exchange.response_head(one.status, one.response_headers, 0):
                continue
            for at_ns, part in enumerate(one.parts, 1):
                exchange.response_body(part, at_ns)
            with self.subTest(one.name), exchange.end(Close.CLEAN, len(one.parts)) as record:
                counts, sources = one.counts()
                found = {type: record.tokens(type) for type in TokenType if type < TokenType.INPUT_ALL}
                self.assertEqual({type.name.lower(): count.count if count else 0 for type, count in found.items()}, counts)
                for side, all in (("input", TokenType.INPUT_ALL), ("output", TokenType.OUTPUT_ALL)):
                    total = record.tokens(all)
                    self.assertEqual(total.provenance.name.lower() if total else "none", sources[side])
                self.assertEqual(record.ending, one.ending)
                count += 1
        self.assertGreater(count, 50)


class Exchanges(WithMeter):
    def test_unmetered_path_has_no_exchange(self):
        self.assertIsNone(self.meter.begin(method="GET", path="/health"))

    def test_response_that_is_not_one_of_a_model_ends_the_exchange(self):
        exchange = self.meter.begin(method="POST", path="/invocations")
        self.assertFalse(exchange.response_head(404, []))
        self.assertFalse(exchange.is_open)
        exchange.close()
        self.assertEqual(self.in_flight(), 0)

    def test_record_has_tokens_times_texts_and_rates(self):
        exchange = self.begin(headers=[("x-request-id", "r 7"), (b"accept", b"*/*")], peer="127.0.0.1", at_ns=0)
        self.assertTrue(exchange.response_head(200, STREAM, 1))
        exchange.response_body(event(b"a\\u0000b"), 2)
        exchange.response_body(memoryview(event(b"c")), 3)
        exchange.response_body(bytearray(b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}\n\n'), 4)
        exchange.response_body(b"data: [DONE]\n\n", 5)
        exchange.client_wait(7)
        with exchange.end(Close.CLEAN) as record:
            self.assertEqual(record.tokens(TokenType.OUTPUT), TokenCount(5, Provenance.REPORTED))
            self.assertEqual((record.input_tokens, record.output_tokens, record.model, record.tenant), (3, 5, "tiny", "default"))
            self.assertEqual((record.number(Number.STATUS), record.number(Number.CLIENT_WAIT_NS)), (200, 7))
            self.assertEqual((record.text(TextValue.REQUEST_ID), record.text(TextValue.UPSTREAM)), ("r 7", "here"))
            self.assertIsInstance(record.rate(Rate.OUTPUT), float)
            self.assertIsInstance(record.ttft_ns, int)
            self.assertEqual(record.as_dict()["tokens"], {"input": 3, "output": 5})
            self.assertEqual((record.cost, record.number(Number.FIRST_TOOL_NS)), (None, None))
        self.assertIn('tokenmeter_tokens_total{', self.meter.metrics())

    def test_page_fits_behind_the_hosts_own(self):
        self.begin().end_unread(Close.CUT)
        lines = self.meter.metrics().splitlines()
        self.assertIn("# TYPE tokenmeter_exchanges_total counter", lines)
        types = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        self.assertEqual([name for name in types if not name.startswith(("tokenmeter_", "gen_ai_"))], [])
        self.assertTrue(all(line.startswith(("# HELP ", "# TYPE ", "tokenmeter_", "gen_ai_")) for line in lines))

    def test_uncounted_type_is_none(self):
        exchange = self.begin()
        exchange.response_head(200, JSON)
        with exchange.end(Close.CUT) as record:
            self.assertIsNone(record.tokens(TokenType.INPUT))

    def test_prices_make_costs(self):
        with Meter(upstream="here", kind="vllm", prices=PRICES) as meter:
            exchange = meter.begin_described(dialect="openai_chat", model="tiny")
            exchange.prompt_tokens(input=1_000_000)
            tokens = meter.output_tokens()
            tokens.add(exchange, 0, 500_000)
            tokens.send()
            with exchange.end(Close.CLEAN) as record:
                self.assertEqual((float(record.cost), record.text(TextValue.CURRENCY)), (2.0, "USD"))
            meter.set_prices(PRICES.replace(b"2.00", b"4.00"))

    def test_rules_determine_the_tenant(self):
        self.meter.set_tenants(TENANTS)
        exchange = self.begin(headers=[("x-tenant", "blue")], peer="127.0.0.1")
        with exchange.end(Close.CLEAN) as record:
            self.assertEqual(record.tenant, "blue")
        self.fails(Status.TENANTS, self.meter.set_tenants, b"nonsense: 1\n")

    def test_keys_of_rules_are_given_by_name(self):
        self.assertIn(KEYS, self.fails(Status.TENANTS, self.meter.set_tenants, TOKENS))
        jwks = b'{"keys": [{"kty": "RSA", "kid": "1", "n": "%s", "e": "AQAB"}]}' % (b"u" * 342 + b"w")
        self.meter.set_tenants(TOKENS, keys={KEYS: jwks})

    def test_wrong_prices_name_their_line(self):
        message = self.fails(Status.PRICES, Meter, upstream="here", prices=PRICES + b"nonsense: 1\n")
        self.assertIn("line 8: a price file has no key `nonsense`", message)

    def test_usage_is_requested_and_removed(self):
        with Meter(upstream="here", kind="vllm", usage_policy=UsagePolicy.INJECT) as meter:
            exchange, body = meter.begin(method="POST", path=CHAT, headers=JSON), b'{"model": "tiny", "messages": [], "stream": true}'
            exchange.request_body(body)
            exchange.request_complete()
            self.assertIn(b'"include_usage":true', exchange.request_edit(body))
            exchange.response_head(200, STREAM)
            usage = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}\n\n'
            shown = [exchange.response_edit(part) for part in (event(b"a"), usage, b"data: [DONE]\n\n", b"")]
            self.assertEqual(b"".join(shown), event(b"a") + b"data: [DONE]\n\n")
            with exchange.end(Close.CLEAN) as record:
                self.assertEqual(record.tokens(TokenType.OUTPUT), TokenCount(5, Provenance.REPORTED))

    def test_body_that_stays_is_none(self):
        self.assertIsNone(self.begin().request_edit(b"{}"))


class Engine(WithMeter):
    def test_engine_counts_before_the_response(self):
        exchange, tokens = self.begin(), self.meter.output_tokens()
        exchange.count_by_engine()
        exchange.prompt_tokens(input=10, cached=4)
        for choice in (0, 1):
            tokens.add(exchange, choice, 3, reasoning=1)
        tokens.send()
        exchange.response_head(200, STREAM)
        exchange.response_body(event(b"a"))
        exchange.finish(0, "stop")
        tokens.add(exchange, 1, 2)
        tokens.send()
        with exchange.end(Close.CLIENT_GONE) as record:
            wanted = {TokenType.INPUT: 6, TokenType.INPUT_CACHED: 4, TokenType.OUTPUT: 6, TokenType.OUTPUT_REASONING: 2}
            for type, count in wanted.items():
                self.assertEqual(record.tokens(type), TokenCount(count, Provenance.ENGINE))
            self.assertEqual((record.ending, record.number(Number.CHOICES)), ("client_abort", 2))

    def test_described_exchange_has_a_record(self):
        exchange = self.meter.begin_described(
            dialect="vllm_generate", model="tiny", tenant="a", principal="p", request_id="r", answers=2, stream=True)
        exchange.prompt_tokens(input=3)
        exchange.finish(0, "length")
        with exchange.end(Close.CLEAN) as record:
            texts = [record.text(which) for which in (TextValue.DIALECT, TextValue.MODEL, TextValue.TENANT, TextValue.PRINCIPAL)]
            self.assertEqual(texts, ["vllm_generate", "tiny", "a", "p"])
            self.assertEqual((record.input_tokens, record.output_tokens, record.number(Number.ANSWERS)), (3, 0, 2))

    def test_step_of_many_is_sent_once(self):
        tokens, calls = self.meter.output_tokens(), []
        add = self.meter._library.tm_output_tokens_add
        self.meter._library.tm_output_tokens_add = lambda *arguments: calls.append(arguments) or add(*arguments)
        self.addCleanup(setattr, self.meter._library, "tm_output_tokens_add", add)
        exchanges = [self.begin() for _ in range(200)]
        for number, exchange in enumerate(exchanges):
            tokens.add(exchange, 0, number)
        tokens.send()
        tokens.send()
        self.assertEqual((len(calls), len(tokens)), (1, 0))
        for number, exchange in enumerate(exchanges):
            with exchange.end(Close.CLEAN) as record:
                self.assertEqual(record.output_tokens, number)

    def test_rejected_tokens_raise_and_the_others_count(self):
        tokens, gone, counted = self.meter.output_tokens(), self.begin(), self.begin()
        for exchange in (gone, counted):
            tokens.add(exchange, 0, 2)
        gone.discard()
        self.fails(Status.HANDLE, tokens.send)
        self.assertEqual(len(tokens), 0)
        with counted.end(Close.CLEAN) as record:
            self.assertEqual(record.output_tokens, 2)


class Misuse(WithMeter):
    def test_wrong_values_raise(self):
        self.assertIn("nonsense", self.fails(Status.VALUE, Meter, upstream="here", kind="nonsense"))
        self.assertIn("nonsense", self.fails(Status.VALUE, self.meter.begin_described, dialect="nonsense", model="tiny"))
        self.fails(Status.TEXT, self.meter.begin_described, dialect="openai_chat", model="tiny", tenant="\n")
        self.fails(Status.VALUE, self.begin().finish, 0, "")
        with self.assertRaises(ValueError):
            self.begin().end(9)

    def test_wrong_order_raises(self):
        exchange = self.begin()
        self.assertIn("complete", self.fails(Status.ORDER, exchange.request_body, b""))
        self.fails(Status.ORDER, exchange.response_body, b"")
        exchange.response_head(200, JSON)
        self.fails(Status.ORDER, exchange.response_head, 200, JSON)

    def test_use_after_the_end_raises(self):
        exchange = self.begin()
        record = exchange.end(Close.CLEAN)
        for call, *arguments in ((exchange.response_body, b""), (exchange.count_by_engine,), (exchange.end, Close.CLEAN)):
            self.fails(Status.NULL, call, *arguments)
        record.close()
        self.fails(Status.NULL, record.number, Number.STATUS)
        self.meter.close()
        self.fails(Status.NULL, self.meter.metrics)

    def test_other_abi_is_rejected(self):
        self.addCleanup(setattr, _library, "ABI", _library.ABI)
        _library.ABI = 999
        with self.assertRaises(Error) as raised:
            _library.Library(self.loaded())
        self.assertEqual(raised.exception.status, Status.ABI)

    def test_library_without_a_function_is_rejected(self):
        with self.assertRaises(AttributeError):
            _library.Library(ctypes.CDLL(None))

    @staticmethod
    def loaded():
        return ctypes.CDLL(_library.path())


class Lifetimes(WithMeter):
    def test_long_text_is_read_again(self):
        self.begin()
        page = self.meter._library.text(self.meter._library.tm_meter_metrics, self.meter._handle, capacity=1)
        self.assertEqual(page.splitlines()[0], self.meter.metrics().splitlines()[0])

    def test_ended_exchange_is_freed(self):
        exchange = self.begin()
        handle = _library.Handle(exchange._handle.id)
        record = exchange.end(Close.CLEAN)
        kept = _library.Handle(record._handle.id)
        self.assertEqual(self.meter._library.tm_exchange_discard(handle), Status.HANDLE)
        record.close()
        record.close()
        self.assertEqual(self.meter._library.tm_record_free(kept), Status.HANDLE)

    def test_forgotten_objects_are_freed(self):
        exchanges = [self.begin() for _ in range(5)]
        record = self.begin().end(Close.CLEAN)
        kept = _library.Handle(record._handle.id)
        self.assertEqual(self.in_flight(), 5)
        del exchanges, record
        gc.collect()
        self.assertEqual(self.in_flight(), 0)
        self.assertEqual(self.meter._library.tm_record_free(kept), Status.HANDLE)

    def test_exchange_outlives_its_meter(self):
        exchange = self.begin()
        self.meter.close()
        exchange.response_head(200, JSON)
        exchange.response_body(b'{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}')
        with exchange.end(Close.CLEAN) as record:
            self.assertEqual(record.output_tokens, 5)

    def test_threads_count_each_exchange_once(self):
        failures = []

        def work():
            try:
                tokens = self.meter.output_tokens()
                for _ in range(100):
                    exchange = self.begin()
                    tokens.add(exchange, 0, 3)
                    tokens.send()
                    exchange.end_unread(Close.CLEAN)
            except Exception as error:
                failures.append(error)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            self.meter.metrics()
        for thread in threads:
            thread.join()
        (total,) = re.findall(r'^tokenmeter_tokens_total{[^}]*type="output"[^}]*} (\S+)$', self.meter.metrics(), re.M)
        self.assertEqual((failures, float(total), self.in_flight()), ([], 2400, 0))

    def test_threads_share_an_exchange(self):
        exchange = self.begin()

        def work():
            tokens = self.meter.output_tokens()
            for _ in range(200):
                tokens.add(exchange, 0, 1)
                tokens.send()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with exchange.end(Close.CLEAN) as record:
            self.assertEqual(record.output_tokens, 800)


if __name__ == "__main__":
    unittest.main()
