"""The metrics page: vLLM's page with the meter's families, and the sum over processes."""
import asyncio
import dataclasses
import pathlib
import tempfile
import unittest

from recording import RecordingMeter
from tokenmeter_vllm.families import merge
from tokenmeter_vllm.metrics_page import Page, SharedPages
from tokenmeter_vllm.middleware import Meter
from tokenmeter_vllm.registry import Registry
from tokenmeter_vllm.settings import Settings

VLLM = b"# TYPE vllm:x counter\nvllm:x_total 1\n"
ONE = """\
# HELP a_total A.
# TYPE a_total counter
a_total{x="1 2"} 2
# TYPE h histogram
h_bucket{le="+Inf"} 3
h_sum 1.5
h_count 3
# TYPE g_in_flight gauge
g_in_flight 1
# TYPE info gauge
info{v="1"} 1
"""


class PageTest(unittest.TestCase):
    def setUp(self):
        self.registry = Registry(RecordingMeter(), Settings())

    def get(self, body, content_type, status=200, registry=None, encoding=None):
        seen, messages = {}, []

        async def application(scope, receive, send):
            seen.update(scope)
            headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
            headers += [(b"content-encoding", encoding)] if encoding else []
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        async def send(message):
            messages.append(message)
        scope = {"type": "http", "method": "GET", "path": "/metrics",
                 "headers": [(b"accept", b"x"), (b"accept-encoding", b"gzip"), (b"host", b"h")]}
        asyncio.run(Meter(application, registry or self.registry)(scope, None, send))
        text = b"".join(message.get("body", b"") for message in messages)
        self.assertIn((b"content-length", b"%d" % len(text)), messages[0]["headers"])
        return text.decode(), [name for name, _ in seen["headers"]]

    def test_families_follow_vllms(self):
        text, headers = self.get(VLLM, b"text/plain; version=0.0.4")
        self.assertTrue(text.startswith(VLLM.decode()))
        self.assertIn("\ntokenmeter_tokens_total 0\n", text)
        self.assertIn('tokenmeter_plugin_level{level="reported"} 1\n', text)
        self.assertEqual(headers, [b"host"])

    def test_other_answers_stay(self):
        self.assertEqual(self.get(b"no", b"text/plain", status=404)[0], "no")
        self.assertEqual(self.get(b"zip", b"text/plain", encoding=b"gzip")[0], "zip")
        self.assertEqual(self.get(b"open", b"application/openmetrics-text")[0], "open")

    def test_failing_page_leaves_vllms(self):
        self.registry.meter.metrics = None
        with self.assertLogs("tokenmeter", "WARNING"):
            self.assertEqual(self.get(VLLM, b"text/plain")[0], VLLM.decode())

    def test_processes_are_summed_once(self):
        with tempfile.TemporaryDirectory() as folder:
            registry = Registry(RecordingMeter(), dataclasses.replace(Settings(), shared=folder))
            registry.engine.failures = 2
            other = SharedPages(pathlib.Path(folder), Page(self.registry).own)
            other.file = pathlib.Path(folder, "tokenmeter_1.prom")
            self.registry.engine.failures = 3
            other.write()
            for _ in range(2):
                text, _ = self.get(VLLM, b"text/plain", registry=registry)
                self.assertEqual(text.count('tokenmeter_plugin_failures_total{part="engine"} 5\n'), 1)


class Sums(unittest.TestCase):
    def test_series_add_by_kind(self):
        self.assertEqual(merge([ONE, ONE]), ONE.replace("} 2", "} 4").replace("} 3", "} 6").replace("1.5", "3")
                         .replace("count 3", "count 6").replace("flight 1", "flight 2"))

    def test_families_of_one_page_stay(self):
        other = "# TYPE b_total counter\nb_total 1\n"
        self.assertEqual(merge([ONE, other]), ONE + other)


if __name__ == "__main__":
    unittest.main()
