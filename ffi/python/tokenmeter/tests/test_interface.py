"""The Python interface over a stand-in of the library."""
import ctypes
import unittest

from stand_in import StandIn
from tokenmeter import Close, Error, Meter, Status, _library


class Interface(unittest.TestCase):
    def setUp(self):
        self.lib = StandIn()
        _library.loaded = _library.Library(self.lib)
        self.addCleanup(setattr, _library, "loaded", None)
        self.meter = Meter(upstream="vllm", kind="vllm")
        self.lib.calls.clear()

    def begin(self):
        exchange = self.meter.begin(method="POST", path="/v1/completions", headers=[("a", "b")])
        self.lib.calls.clear()
        return exchange

    def test_structures_have_the_sizes_of_c(self):
        sizes = {_library.Slice: 16, _library.Text: 24, _library.Header: 32, _library.OutputStep: 24, _library.Request: 88,
                 _library.MeterOptions: 80, _library.Begin: 120, _library.PromptTokens: 24}
        self.assertEqual({kind: ctypes.sizeof(kind) for kind in sizes}, sizes)

    def test_unmetered_path_has_no_exchange(self):
        self.lib.results["tm_exchange_begin"] = Status.NOT_METERED
        self.assertIsNone(self.meter.begin(method="GET", path="/health"))

    def test_body_keeps_zero_bytes(self):
        self.begin().request_body(b"a\0b")
        self.assertEqual(self.lib.calls[0][1][1], b"a\0b")

    def test_misuse_raises_status_and_message(self):
        self.lib.results["tm_exchange_request_body"], self.lib.texts["tm_error_message"] = Status.ORDER, b"too late"
        with self.assertRaises(Error) as raised:
            self.begin().request_body(b"")
        self.assertEqual((raised.exception.status, raised.exception.message), (Status.ORDER, "too late"))

    def test_other_abi_is_refused(self):
        self.lib.results["tm_abi_check"] = Status.ABI
        with self.assertRaises(Error):
            _library.Library(self.lib)

    def test_long_text_is_read_again(self):
        self.lib.texts["tm_meter_metrics"] = b"x" * 100_000
        self.assertEqual(len(self.meter.metrics()), 100_000)
        self.assertEqual(self.lib.names(), ["tm_meter_metrics"] * 2)

    def test_ended_exchange_is_not_discarded(self):
        exchange = self.begin()
        record = exchange.end(Close.CLEAN)
        del exchange, record
        self.assertEqual(self.lib.names(), ["tm_exchange_end", "tm_record_free"])

    def test_forgotten_exchange_is_discarded_once(self):
        exchange = self.begin()
        exchange.close()
        exchange.close()
        del exchange
        self.assertEqual(self.lib.names(), ["tm_exchange_discard"])

    def test_failed_constructor_frees_nothing(self):
        self.lib.results["tm_meter_new"] = Status.VALUE
        with self.assertRaises(Error):
            Meter(upstream="")
        self.assertNotIn("tm_meter_free", self.lib.names())

    def test_absent_number_is_none(self):
        record = self.begin().end(Close.CLEAN)
        self.lib.results["tm_record_number"] = Status.ABSENT
        self.assertIsNone(record.ttft_ns)

    def test_step_is_one_call_and_grows(self):
        tokens, exchange = self.meter.output_tokens(), self.begin()
        sent = []
        self.lib.tm_output_tokens_add = lambda steps, count, at_ns: sent.extend(
            (step.exchange.id, step.choice, step.tokens) for step in steps[:count]) or 0
        tokens._library = _library.Library(self.lib)
        for choice in range(200):
            tokens.add(exchange, choice, choice + 1)
        self.assertEqual(tokens.send(), 0)
        self.assertEqual(sent, [(exchange._handle.id, choice, choice + 1) for choice in range(200)])
        self.assertEqual((len(tokens), tokens.send(), len(sent)), (0, 0, 200))

    def test_rejected_entries_are_counted(self):
        tokens, exchange = self.meter.output_tokens(), self.begin()

        def reject_second(steps, count, at_ns):
            steps[1].status = Status.HANDLE
            return 0
        self.lib.tm_output_tokens_add = reject_second
        tokens._library = _library.Library(self.lib)
        for _ in range(3):
            tokens.add(exchange, 0, 1)
        self.assertEqual(tokens.send(), 1)


if __name__ == "__main__":
    unittest.main()
