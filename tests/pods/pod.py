"""Pods of network namespaces: containers share one, as in Kubernetes. The tests' own namespace is the node."""
import asyncio
import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import client

PUBLIC = 8000          # the port that clients know
MOVED = 8200           # the server's port in mode takeover
REDIRECTED = 15001     # tokenmeter's port in mode redirect
ADMIN = 9464
UID = 65532
SERVER_UID = 65533
HERE = pathlib.Path(__file__).parent


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


class Node:
    """A bridge to which pods are attached."""

    def __init__(self):
        self.numbers = itertools.count(2)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tokenmeter-pods-"))
        self.folder.chmod(0o755)
        # Where the pods' user can read it.
        self.binary = self.folder / "tokenmeter"
        shutil.copy(os.environ["TOKENMETER_BIN"], self.binary)
        self.binary.chmod(0o755)
        ip("link", "set", "lo", "up")
        # Without an address of its own a bridge takes one of its ports', and changes it when that port leaves.
        ip("link", "add", "node", "address", "02:77:00:00:00:01", "type", "bridge")
        ip("link", "set", "node", "up")
        ip("addr", "add", "10.77.0.1/16", "dev", "node")
        ip("addr", "add", "fd77::1/64", "dev", "node", "nodad")

    def close(self):
        ip("link", "del", "node")
        shutil.rmtree(self.folder)


class Pod:
    """A server, and tokenmeter in front of it: by `takeover` or by `redirect`."""

    def __init__(self, node, mode, delay_ms=0, grace_ms=60_000):
        self.node, self.mode, self.number = node, mode, next(node.numbers)
        self.v4, self.v6 = f"10.77.{self.number >> 8}.{self.number & 255}", f"fd77::{self.number:x}"
        self.link = f"pod{self.number}"
        self.state = node.folder / f"pod-{self.number}"
        self.state.mkdir()
        os.chown(self.state, UID, UID)
        listen, server = (PUBLIC, MOVED) if mode == "takeover" else (REDIRECTED, PUBLIC)
        self.server_port = server
        self.environment = {
            "PATH": os.environ["PATH"],
            "TOKENMETER_LISTEN": f"[::]:{listen}",
            "TOKENMETER_UPSTREAM": f"http://127.0.0.1:{server}",
            "TOKENMETER_TRANSPARENT": str(mode == "redirect").lower(),
            "TOKENMETER_ADMIN": f"[::]:{ADMIN}",
            "TOKENMETER_KIND": "openai",
            "TOKENMETER_ENGINE_METRICS": "off",
            "TOKENMETER_LEDGER": str(self.state / "spend.db"),
            "TOKENMETER_DRAIN_TOKEN_FILE": str(self.state / "drain.token"),
            "TOKENMETER_DRAIN_DELAY_MS": str(delay_ms),
            "TOKENMETER_DRAIN_GRACE_MS": str(grace_ms),
            "TOKENMETER_GPU": "off",
        }
        self.pause = subprocess.Popen(["unshare", "--net", "setpriv", "--pdeathsig", "KILL", "sleep", "infinity"])
        self.sidecar = self.server = None

    async def connect(self):
        """Attach the namespace to the node."""
        own, namespace = os.stat("/proc/self/ns/net").st_ino, f"/proc/{self.pause.pid}/ns/net"
        while os.stat(namespace).st_ino == own:
            await asyncio.sleep(0.01)
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(self.pause.pid))
        ip("link", "set", self.link, "master", "node", "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                      ["addr", "add", f"{self.v4}/16", "dev", "eth0"],
                      ["addr", "add", f"{self.v6}/64", "dev", "eth0", "nodad"]):
            subprocess.run(self.inside("ip", *words), check=True)

    def inside(self, *command, uid=None):
        """A command in the namespace; as root, without `uid`."""
        user = [] if uid is None else [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return ["nsenter", "--target", str(self.pause.pid), "--net",
                "setpriv", "--pdeathsig", "KILL", *user, *map(str, command)]

    async def container(self, name, *command, uid):
        with (self.state / f"{name}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self.inside(*command, uid=uid), stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment)

    async def run(self, *command, uid=UID):
        """Run a command to its end: the exit code, and stdout and stderr together."""
        child = await asyncio.create_subprocess_exec(
            *self.inside(*command, uid=uid), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, env=self.environment)
        output, _ = await child.communicate()
        return child.returncode, output.decode()

    async def redirect(self, *more):
        """The init container of the mode redirect, which has NET_ADMIN."""
        return await self.run(self.node.binary, "redirect", "--to", REDIRECTED, "--port", PUBLIC, *more, uid=None)

    async def start(self):
        """Start the containers in Kubernetes' order, until the pod is ready."""
        await self.connect()
        if self.mode == "redirect":
            code, output = await self.redirect()
            assert code == 0, output
        self.sidecar = await self.container("tokenmeter", self.node.binary, "run", uid=UID)
        await self.until("/livez")
        script = HERE / "server.py"
        self.server = await self.container("server", sys.executable, script, self.server_port, uid=SERVER_UID)
        await self.until("/readyz")
        return self

    async def until(self, path):
        """Wait until a probe of the admin address succeeds."""
        for _ in range(600):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if (await client.once(self.v4, ADMIN, path))[0] == 200:
                    return
            assert self.sidecar.returncode is None, self.log()
            await asyncio.sleep(0.05)
        raise AssertionError(f"{path} does not succeed:\n{self.log()}")

    async def delete(self, waits=True, native=True):
        """Delete the pod as the kubelet does: both hooks at once, SIGTERM to each container after its hook, and to a
        `native` sidecar only after the server's end. Endpoints are removed by others meanwhile. Unless it `waits`, the
        server has no hook."""
        server = asyncio.create_task(self.end_server(waits))
        code, output = await self.run(self.node.binary, "drain")
        assert code == 0, output
        if native:
            await server
        self.sidecar.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(self.sidecar.wait(), 60) == 0, self.log()
        await server
        self.close()

    async def end_server(self, waits):
        if waits:
            # The kubelet ignores the answer.
            await client.once(self.v4, ADMIN, "/drained")
        self.server.send_signal(signal.SIGTERM)
        await self.server.wait()

    def close(self):
        """End the namespace, and with it what still runs in it."""
        for child in (self.sidecar, self.server):
            if child is not None and child.returncode is None:
                child.kill()
        if self.pause.returncode is None:
            self.pause.kill()
            self.pause.wait()
            # The kernel removes the namespace, and its link with it, some time later. The next pod may have this name.
            # No check: the kernel may have been faster.
            subprocess.run(["ip", "link", "del", self.link], stderr=subprocess.DEVNULL)

    def rows(self):
        """The exchanges in the ledger, and those among them that ended well."""
        with contextlib.closing(sqlite3.connect(self.state / "spend.db")) as ledger:
            counts = "SELECT count(*), count(*) FILTER (WHERE ending = 'complete') FROM exchanges"
            return ledger.execute(counts).fetchone()

    def log(self):
        return (self.state / "tokenmeter.log").read_text()


class PodTest(unittest.IsolatedAsyncioTestCase):
    """A test with a node and its pods, which end with it."""

    def setUp(self):
        self.node, self.pods = Node(), []

    def tearDown(self):
        for pod in self.pods:
            pod.close()
        self.node.close()

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
