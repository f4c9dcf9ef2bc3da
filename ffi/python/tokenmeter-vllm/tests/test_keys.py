"""Rules of the kind `jwt` with libtokenmeter: the plugin fetches keys from a server of this machine."""
import asyncio
import http.server
import json
import pathlib
import tempfile
import threading
import time
import unittest

from rig import Client, respond
from tokenmeter import FetchError
from tokenmeter_vllm import registry as registries
from tokenmeter_vllm.metrics_page import Page
from tokenmeter_vllm.settings import Settings

TOKENS = pathlib.Path(__file__).resolve().parents[4] / "proxy" / "tenant" / "tests" / "tokens"
TOKEN = next(row["token"] for row in json.loads((TOKENS / "tokens.json").read_text()) if row["name"] == "EdDSA")
WAIT_SECONDS = 60


class Issuer(http.server.BaseHTTPRequestHandler):
    keys = (TOKENS / "keys.json").read_bytes()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.keys)

    def log_message(self, format, *arguments):
        pass


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, source):
        """Makes the registry of a process with a rule for tokens."""
        rule = f"jwt: {{keys: {json.dumps(source)}, issuer: https://id.example, audience: tokenmeter, claim: tenant}}"
        file = self.folder / "tenants.yaml"
        file.write_text(f"rules: [{{{rule}}}]\n")
        registry = registries.make(Settings(tenants=str(file)))
        self.addCleanup(registry.tenants.close)
        return registry

    def serve(self, registry):
        """Serves a request with a token."""
        async def application(scope, receive, send):
            await receive()
            await respond(send, b'{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}}')

        async def request():
            self.registry = registry
            client = Client(self, application, headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
            await client.task
            self.assertEqual(client.messages[0]["status"], 200)
        asyncio.run(request())

    def wait_for(self, registry, tenant):
        deadline = time.monotonic() + WAIT_SECONDS
        while f'tenant="{tenant}"' not in registry.meter.metrics():
            self.assertLess(time.monotonic(), deadline)
            self.serve(registry)
            time.sleep(0.01)

    def test_tenant_is_that_of_a_token_once_keys_are_fetched(self):
        issuer = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
        serving = threading.Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        self.addCleanup(serving.join)
        self.addCleanup(issuer.server_close)
        self.addCleanup(issuer.shutdown)
        registry = self.make(f"http://127.0.0.1:{issuer.server_port}/keys")
        self.wait_for(registry, "acme")
        self.assertIn("tokenmeter_plugin_failed_key_reads_total 0\n", Page(registry).own())

    def test_unavailable_keys_are_counted_and_cost_no_request(self):
        with self.assertLogs("tokenmeter", "WARNING") as logs:
            registry = self.make("http://127.0.0.1:1/keys?code=hunter2")
            deadline = time.monotonic() + WAIT_SECONDS
            while not registry.tenants.failures:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
        self.assertNotIn("hunter2", logs.output[0])
        self.assertIn("tokenmeter_plugin_failed_key_reads_total 1\n", Page(registry).own())
        self.wait_for(registry, "default")

    def test_file_is_relative_to_the_tenants_file(self):
        with self.assertRaisesRegex(FetchError, "the keys of keys.json: it cannot be read"):
            self.make("keys.json")
        (self.folder / "keys.json").write_bytes(Issuer.keys)
        registry = self.make("keys.json")
        self.serve(registry)
        self.assertIn('tenant="acme"', registry.meter.metrics())


if __name__ == "__main__":
    unittest.main()
