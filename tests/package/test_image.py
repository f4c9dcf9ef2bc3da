"""The images: what is in them, and the binary in a container runtime."""
import collections
import datetime
import http.server
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from container import Container, Image
from release import ROOT, eventually, fetch, file

MULTIARCH = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# Bytes, for the image without nft. Loops of vector instructions are 2 MB of it (the profile dist in Cargo.toml), and what
# package/binary optimizes by a profile 1 MB more.
UNPACKED_MAX = 29_000_000


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.image = Image(file("*-tokenmeter.oci.tar"), cls.folder / "tokenmeter")
        cls.redirect = Image(file("*-redirect.oci.tar"), cls.folder / "redirect")

    def start(self, *flags, upstream="http://127.0.0.1:1", **options):
        """Starts a proxy on free ports; returns it with the addresses of its listener and its admin page."""
        args = ["run", f"--upstream={upstream}", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", *flags]
        container = self.enterContext(Container(self.image, args, **options)).follow()

        def addresses():
            self.assertIsNone(container.process.poll(), container.log())
            return re.search(r"listening on (http://[0-9.:]+).*metrics (http://[0-9.:]+)/metrics", container.log())
        return container, *eventually(addresses).groups()

    def test_version_is_that_of_the_archive(self):
        code, output = self.image.run("--version")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.split()[:2], ["tokenmeter", self.image.config["config"]["Labels"][
            "org.opencontainers.image.version"]])

    def test_proxy_answers_and_ends_with_exit_code_0(self):
        container, _, admin = self.start("--ledger=spend.db", "--drain-delay-ms=0")
        self.assertEqual(fetch(f"{admin}/livez")[0], 200)
        self.assertEqual(fetch(f"{admin}/readyz")[0], 503, "its upstream is absent")
        container.signal("TERM")
        self.assertEqual(container.process.wait(timeout=60), 0, container.log())
        ledger = container.state / "spend.db"
        self.assertEqual((ledger.stat().st_uid, ledger.stat().st_gid), (65532, 65532))

    def test_run_is_the_default_command(self):
        code, output = self.image.run()
        self.assertEqual(code, 2, output)
        self.assertIn("upstream", output)

    def test_no_file_is_writable_and_there_is_no_shell(self):
        of_redirect = {"usr/bin/tokenmeter", "usr/sbin/nft"}
        for image, programs in (self.image, {"usr/bin/tokenmeter"}), (self.redirect, of_redirect):
            files = [one for one in image.files if not one.issym()]
            writable = {one.name for one in files if one.mode & 0o022 or one.uid or one.gid}
            self.assertEqual(writable, {"tmp", "var/lib/tokenmeter"})
            self.assertEqual([one.name for one in files if one.mode & 0o6000], [], "setuid or setgid")
            found = {one.name for one in files if one.isfile() and one.mode & 0o111 and ".so" not in one.name}
            self.assertEqual(found, programs)

    def test_user_is_not_root_and_root_is_read_only(self):
        for image in (self.image, self.redirect):
            self.assertEqual(image.config["config"]["User"], "65532:65532")
        code, output = self.image.run("prices", "init", "--input", "1", "--output", "2", "--out", "/tmp/prices.yaml")
        self.assertNotEqual(code, 0, output)
        self.assertIn("Read-only file system", output)

    def test_name_of_an_upstream_is_resolved_by_dns(self):
        queries = collections.deque()
        server = self.enterContext(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind(("127.0.0.53", 53))

        def answer():
            while True:
                try:
                    query, client = server.recvfrom(512)
                except OSError:
                    return
                queries.append(query)
                question = query[12:query.index(b"\0", 12) + 5]
                is_a = question[-4:-2] == b"\0\1"
                head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
                record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton("127.0.0.1") if is_a else b""
                server.sendto(head + question + record, client)
        threading.Thread(target=answer, daemon=True).start()
        resolv = self.folder / "resolv.conf"
        resolv.write_text("nameserver 127.0.0.53\n")
        upstream, port = serve(self)
        _, listener, admin = self.start(upstream=f"http://vllm.example:{port}", mounts={"/etc/resolv.conf": resolv})
        eventually(lambda: fetch(f"{admin}/readyz")[0] == 200)
        self.assertEqual(fetch(f"{listener}/v1/models"), (200, "{}"))
        self.assertTrue(any(b"\4vllm\7example\0" in query for query in queries))
        self.assertIn("/v1/models", upstream.paths)

    def test_roots_of_tls_are_found(self):
        bundle = self.image.root / BUNDLE.lstrip("/")
        roots = ssl.create_default_context(cafile=bundle).get_ca_certs()
        self.assertGreater(len(roots), 100)
        with self.subTest("a root of the bundle is trusted"):
            key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                            "-addext", "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
            collector, port = serve(self, tls=(certificate, key))
            flags = [f"--otlp-endpoint=https://127.0.0.1:{port}", "--otlp-protocol=http/protobuf",
                     "--drain-delay-ms=0"]
            container, _, _ = self.start(*flags, mounts={BUNDLE: certificate})
            container.signal("TERM")
            self.assertEqual(container.process.wait(timeout=60), 0, container.log())
            self.assertIn("/v1/metrics", collector.paths, container.log())
        with self.subTest("no other root is trusted"):
            collector.paths.clear()
            container, _, _ = self.start(*flags)
            container.signal("TERM")
            self.assertEqual(container.process.wait(timeout=60), 0, container.log())
            self.assertEqual(list(collector.paths), [])
            self.assertRegex(container.log(), "(?i)certificate")

    def test_driver_that_a_runtime_mounts_is_loaded(self):
        scene, library = self.folder / "scene", self.folder / "libnvidia-ml.so.1"
        scene.write_text("count 1\n0.uuid GPU-stand-in\n0.energy 1000\n0.power 100000\n")
        # The driver's library needs these by name, which no new library does.
        needed = [f"/lib/{MULTIARCH}/lib{name}" for name in ("pthread.so.0", "dl.so.2", "rt.so.1", "m.so.6")]
        subprocess.run(["cc", "-shared", "-fPIC", '-DSCENE="/etc/tokenmeter/scene"', "-o", library,
                        ROOT / "sidecar/gpu/tests/nvml/stub.c", "-Wl,--no-as-needed", *needed], check=True)
        dynamic = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True).stdout
        for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1"):
            self.assertIn(name, dynamic)
        stub = self.folder / "stub"
        stub.mkdir()
        scene.rename(stub / "scene")
        driver = f"/usr/lib/{MULTIARCH}/libnvidia-ml.so.1"
        _, _, admin = self.start("--gpu=nvml", "--gpu-sample-ms=100", "--gpu-stale-ms=500",
                                 mounts={driver: library, "/etc/tokenmeter": stub})
        eventually(lambda: "GPU-stand-in" in fetch(f"{admin}/metrics")[1])

    def test_nft_of_the_second_image_changes_rules(self):
        def nft(*command):
            return self.redirect.run("/usr/sbin/nft", *command, entrypoint=False, user="0:0", network=False,
                                     capabilities=["CAP_NET_ADMIN"])
        code, output = nft("--echo", "add table inet t; "
                           "add chain inet t c { type nat hook prerouting priority dstnat; }; "
                           "add rule inet t c tcp dport 8000 redirect to :9800")
        self.assertEqual(code, 0, output)
        self.assertIn("redirect to :9800", output)
        self.assertEqual(self.redirect.run("--version"), self.image.run("--version"))

    def test_equal_input_makes_an_equal_digest(self):
        again = self.folder / "again.tar"
        command = [ROOT / "helm/image/build", self.image.root / "usr/bin/tokenmeter", again]
        created = re.sub(r"Z$", "+00:00", self.image.config["created"])
        epoch = str(int(datetime.datetime.fromisoformat(created).timestamp()))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch,
                       "TOKENMETER_LICENSES": self.image.root / "usr/share/doc/tokenmeter/licenses"}
        for _ in range(2):
            subprocess.run(command, check=True, env=environment)
            self.assertEqual(again.read_bytes(), file("*-tokenmeter.oci.tar").read_bytes())

    def test_scanners_find_the_packages(self):
        status = self.image.root / "var/lib/dpkg/status.d"
        self.assertEqual({path.name for path in status.iterdir()}, {"libc6", "libgcc-s1", "ca-certificates"})
        for path in status.iterdir():
            self.assertRegex(path.read_text(), r"(?m)^Version: \S")
            self.assertTrue((self.image.root / "usr/share/doc" / path.name / "copyright").is_file())
        self.assertIn("VERSION_ID", (self.image.root / "etc/os-release").read_text())

    def test_images_are_as_small_as_the_page_says(self):
        page = (ROOT / "sidecar/tokenmeter/install.md").read_text()
        for name, image in ("tokenmeter", self.image), ("redirect", self.redirect):
            with self.subTest(name):
                stated = re.search(rf"-{name}\.oci\.tar`.*: (\d+) MB, (\d+) MB compressed", page)
                unpacked_max, compressed_max = (int(size) * 1_000_000 for size in stated.groups())
                if name == "tokenmeter":
                    self.assertLessEqual(unpacked_max, UNPACKED_MAX)
                self.assertLessEqual(sum(one.size for one in image.files), unpacked_max)
                self.assertLessEqual(image.compressed, compressed_max)

    def test_image_has_the_configuration_of_the_dockerfile(self):
        config = self.image.config["config"]
        self.assertEqual(config["Entrypoint"], ["/usr/bin/tokenmeter"])
        self.assertEqual(config["Cmd"], ["run"])
        self.assertEqual(config["WorkingDir"], "/var/lib/tokenmeter")
        self.assertEqual(set(config["ExposedPorts"]), {"9800/tcp", "9464/tcp"})


def serve(test, tls=None):
    """Starts a server that answers each request with `{}`; returns it, with the requested paths, and its port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.server.paths.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        do_POST = do_HEAD = do_GET

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    server.paths = collections.deque()
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return server, server.server_address[1]


if __name__ == "__main__":
    unittest.main()
