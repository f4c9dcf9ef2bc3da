"""Keys of `jwt` rules from files and from a server of this machine, with tokens of `proxy/tenant/tests/tokens`."""
import http.server
import io
import json
import logging
import pathlib
import socket
import tempfile
import threading
import time
import unittest
import urllib.request
from unittest import mock

from tokenmeter import Close, Error, FetchError, Meter, TenantsWatch, jwks, tenants_watch
from tokenmeter.jwks import Redirects, fetch

TOKENS = pathlib.Path(__file__).resolve().parents[4] / "proxy" / "tenant" / "tests" / "tokens"
ALL = json.loads((TOKENS / "keys.json").read_text())["keys"]
BY_NAME = {row["name"]: row["token"] for row in json.loads((TOKENS / "tokens.json").read_text())}
TOKEN = BY_NAME["EdDSA"]
WAIT_SECONDS = 60


def keys(*names):
    """Returns a JWKS with some of the keys; that of `TOKEN` is `ed`."""
    return json.dumps({"keys": [key for key in ALL if key["kid"] in names]}).encode()


def rules(*sources):
    """Returns the content of a tenants file with a rule for each source of keys."""
    rule = "  - jwt: {keys: %s, issuer: https://id.example, audience: tokenmeter, claim: tenant}\n"
    return ("rules:\n" + "".join(rule % json.dumps(source) for source in sources)).encode()


class Issuer(http.server.ThreadingHTTPServer):
    """A server of keys. Its address has a secret in its query."""

    def __init__(self, body=b"", status=200, fields=()):
        super().__init__(("127.0.0.1", 0), Answer)
        self.body, self.status, self.fields, self.requests = body, status, fields, 0
        self.open = threading.Event()
        """Set while it answers."""
        self.open.set()
        self.serving = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.serving.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/keys?code=hunter2"

    def stop(self):
        self.open.set()
        self.shutdown()
        self.server_close()
        self.serving.join()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests += 1
        server.open.wait(WAIT_SECONDS)
        self.send_response(server.status)
        for name, value in server.fields:
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(server.body)
        except OSError:                                    # the client left
            pass

    def log_message(self, format, *arguments):
        pass


class WithMeter(unittest.TestCase):
    def setUp(self):
        self.meter = Meter(upstream="here")
        self.addCleanup(self.meter.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def issuer(self, *arguments, **names):
        issuer = Issuer(*arguments, **names)
        self.addCleanup(issuer.stop)
        return issuer

    def watch(self, *sources):
        watch = TenantsWatch(self.meter, rules(*sources), folder=self.folder)
        self.addCleanup(watch.close)
        return watch

    def tenant(self, token=TOKEN):
        """Returns the tenant of a request with a token."""
        exchange = self.meter.begin(
            method="POST", path="/v1/chat/completions", headers=[("authorization", f"Bearer {token}")])
        with exchange.end(Close.CUT) as record:
            return record.tenant

    def wait_for(self, tenant):
        deadline = time.monotonic() + WAIT_SECONDS
        while (found := self.tenant()) != tenant:
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.01)


class Fetched(WithMeter):
    def test_requests_do_not_wait_for_keys(self):
        issuer = self.issuer(keys("ed"))
        issuer.open.clear()
        self.watch(issuer.url).start()
        # The server answers only afterwards, so a request that waited would not end.
        self.assertEqual(self.tenant(), "default")
        issuer.open.set()
        self.wait_for("acme")

    def test_source_that_hangs_delays_no_other(self):
        hanging, issuer = self.issuer(keys("rsa")), self.issuer(keys("ed"))
        hanging.open.clear()
        self.watch(hanging.url, issuer.url).start()
        self.wait_for("acme")

    def test_keys_are_fetched_every_five_minutes(self):
        issuer = self.issuer(keys("ed"))
        watch = self.watch(issuer.url)
        for now, requests in ((0, 1), (2, 1), (60, 1), (299, 1), (300, 2), (599, 2), (600, 3)):
            watch.check(watch.sources[0], now)
            self.assertEqual((self.tenant(), issuer.requests), ("acme", requests), now)

    def test_unknown_key_is_fetched_once_a_minute(self):
        issuer = self.issuer(keys("rsa"))
        watch = self.watch(issuer.url)
        for now, requests in ((0, 1), (59, 1), (60, 2), (61, 2), (119, 2)):
            watch.check(watch.sources[0], now)
            self.assertEqual(issuer.requests, requests, now)
            # The library keeps the results of tokens: the same one is not looked up again.
            self.assertEqual(self.tenant(BY_NAME["no nbf"] if now > 60 else TOKEN), "default")
        issuer.body = keys("rsa", "ed")
        watch.check(watch.sources[0], 120)
        self.assertEqual((self.tenant(), watch.failures), ("acme", 0))
        watch.check(watch.sources[0], 180)
        self.assertEqual(issuer.requests, 3)

    def test_failed_fetch_keeps_keys(self):
        issuer = self.issuer(keys("ed"))
        watch = self.watch(issuer.url)
        (source,) = watch.sources
        watch.check(source, 0)
        issuer.status = 503
        with self.assertLogs("tokenmeter", "WARNING") as logs:
            for now, failures in ((300, 1), (359, 1), (360, 2)):
                watch.check(source, now)
                self.assertEqual((self.tenant(), watch.failures), ("acme", failures), now)
        shown = f"the keys of http://127.0.0.1:{issuer.server_port}/keys: it responded 503"
        self.assertEqual(logs.output, [f"WARNING:tokenmeter:tokenmeter: the keys before remain in use: {shown}"])
        issuer.status = 200
        watch.check(source, 420)
        self.assertEqual((source.problem, watch.failures, issuer.requests), ("", 2, 4))
        watch.check(source, 480)
        self.assertEqual(issuer.requests, 4)

    def test_invalid_keys_are_not_used(self):
        issuer = self.issuer(keys("ed"))
        watch = self.watch(issuer.url)
        (source,) = watch.sources
        watch.check(source, 0)
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        cases = (b"hunter2", "not JSON"), (keys("enc"), "none of its keys"), (b"", "it is empty"), (b" " * 600_000, "larger than")
        for number, (body, problem) in enumerate(cases, 1):
            issuer.body = body
            watch.check(source, number * 300)
            self.assertIn(problem, source.problem)
            self.assertNotIn("hunter2", source.problem)
            self.assertEqual((self.tenant(), watch.failures), ("acme", number))

    def test_watch_that_is_closed_reads_no_more(self):
        issuer = self.issuer(keys("ed"))
        watch = self.watch(issuer.url)
        watch.close()
        watch.start()
        for thread in threading.enumerate():
            if thread.name == "tokenmeter-keys":
                thread.join(WAIT_SECONDS)
        self.assertEqual((self.tenant(), issuer.requests), ("default", 0))


class Files(WithMeter):
    def test_file_that_changes_is_read(self):
        file = self.folder / "keys.json"
        file.write_bytes(keys("rsa"))
        with mock.patch.object(tenants_watch, "POLL_SECONDS", 0.01):
            self.watch("keys.json").start()
            self.assertEqual(self.tenant(), "default")
            file.write_bytes(keys("ed"))
            self.wait_for("acme")

    def test_broken_file_keeps_keys(self):
        file = self.folder / "keys.json"
        file.write_bytes(keys("ed"))
        watch = self.watch("keys.json")
        (source,) = watch.sources
        with self.assertLogs("tokenmeter", "WARNING") as logs:
            file.write_bytes(b"{}")
            watch.check(source, 0)
            watch.check(source, 2)
            file.unlink()
            watch.check(source, 4)
            watch.check(source, 6)
        self.assertEqual((self.tenant(), watch.failures, len(logs.output)), ("acme", 2, 2))
        file.write_bytes(keys("ed"))
        watch.check(source, 8)
        self.assertEqual(source.problem, "")

    def test_start_needs_valid_rules_and_files(self):
        with self.assertRaisesRegex(FetchError, "the keys of keys.json: it cannot be read: No such file"):
            self.watch("keys.json")
        (self.folder / "keys.json").write_bytes(b"")
        with self.assertRaisesRegex(FetchError, "it is empty"):
            self.watch("keys.json")
        (self.folder / "keys.json").write_bytes(b"{}")
        with self.assertRaisesRegex(Error, "not a JWKS"):
            self.watch("keys.json")
        with self.assertRaisesRegex(Error, "tenants:1: "):
            TenantsWatch(self.meter, b"rules: 7")

    def test_keys_over_http_from_elsewhere_are_warned_of(self):
        with self.assertLogs("tokenmeter", "WARNING") as logs:
            self.watch("http://id.example/keys?code=hunter2", "http://127.0.0.1:1/keys", "https://id.example/keys")
        self.assertEqual(len(logs.output), 1)
        self.assertIn("the keys of http://id.example/keys,", logs.output[0])

    def test_rules_without_keys_need_no_thread(self):
        watch = TenantsWatch(self.meter, b"default: nobody\n")
        watch.start()
        self.assertEqual((watch.sources, self.tenant()), ([], "nobody"))


class Fetches(WithMeter):
    def problem(self, url):
        with self.assertRaises(FetchError) as raised:
            fetch(url)
        self.assertNotIn("hunter2", str(raised.exception))
        return str(raised.exception)

    def test_http_redirect_reaches_no_other_server(self):
        other = self.issuer(keys("ed"))
        for status in (301, 302, 303, 307):
            issuer = self.issuer(status=status, fields=[("location", other.url)])
            self.assertEqual(self.problem(issuer.url), "it redirects, which is not followed over http")
        self.assertEqual(other.requests, 0)

    def test_redirect_from_https_to_http_is_an_error(self):
        request = urllib.request.Request("https://id.example/keys")
        with self.assertRaisesRegex(FetchError, "it redirects to a URL that is not https"):
            Redirects().redirect_request(request, io.BytesIO(), 302, "", {}, "http://id.example/keys")
        followed = Redirects().redirect_request(request, io.BytesIO(), 302, "", {}, "https://other.example/keys")
        self.assertEqual(followed.full_url, "https://other.example/keys")

    def test_http_uses_no_proxy(self):
        proxy, issuer = self.issuer(b"proxy"), self.issuer(keys("ed"))
        jwks.opener.cache_clear()
        self.addCleanup(jwks.opener.cache_clear)
        with mock.patch.dict("os.environ", {"http_proxy": proxy.url, "no_proxy": ""}):
            self.assertEqual((fetch(issuer.url), proxy.requests), (keys("ed"), 0))

    def test_server_that_hangs_is_left(self):
        issuer = self.issuer()
        issuer.open.clear()
        with mock.patch.object(jwks, "FETCH_SECONDS", 0.2):
            self.assertEqual(self.problem(issuer.url), "it took longer than 0.2 s")

    def test_response_that_trickles_is_left(self):
        chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        for begin, piece in (
            (b"", b"H"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (b"HTTP/1.1 200 OK\r\n", b"x"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b" "),
            (chunked, b"0"),
            (chunked, b"1\r\n \r\n"),
            (chunked + b"0\r\n", b"x: y\r\n"),
        ):
            with self.subTest(begin=begin, piece=piece), mock.patch.object(jwks, "FETCH_SECONDS", 0.3):
                listener = socket.create_server(("127.0.0.1", 0))
                serving = threading.Thread(target=trickle, args=(listener, begin, piece))
                serving.start()
                self.addCleanup(serving.join)
                url = f"http://127.0.0.1:{listener.getsockname()[1]}/keys?code=hunter2"
                self.assertEqual(self.problem(url), "it took longer than 0.3 s")

    def test_server_that_is_not_there_has_a_cause(self):
        issuer = Issuer()
        issuer.stop()
        self.assertEqual(self.problem(issuer.url), "it cannot be reached: Connection refused")


def trickle(listener, begin, piece):
    """Sends `begin` and many pieces to a client, until it leaves."""
    with listener, listener.accept()[0] as client:
        try:
            client.sendall(begin)
            for _ in range(200):
                time.sleep(0.05)
                client.sendall(piece)
        except OSError:
            pass


if __name__ == "__main__":
    unittest.main()
