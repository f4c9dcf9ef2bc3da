"""Clients and servers unchanged: port takeover and redirected connections."""
import asyncio
import sys

import client
from pod import ADMIN, HERE, MOVED, PUBLIC, REDIRECTED, SERVER_UID, UID, Pod, PodTest


class Modes(PodTest):
    def pod(self, mode):
        self.pods.append(Pod(self.node, mode))
        return self.pods[-1]

    async def exchange(self, pod, host, port=PUBLIC):
        """A stream and a probe, as without a proxy."""
        connection = client.Connection(host, port)
        self.assertTrue(client.is_whole(await connection.chat(5, 1), 5), host)
        status, body = await connection.get("/health")
        self.assertEqual((status, body.split()[0]), (200, "/health"), host)
        connection.close()

    async def test_both_modes_meter_both_address_families(self):
        for mode in ("takeover", "redirect"):
            with self.subTest(mode):
                pod = await self.pod(mode).start()
                for host in (pod.v4, pod.v6):
                    await self.exchange(pod, host)
                await pod.delete()
                self.assertEqual(pod.rows(), (2, 2))

    async def test_redirect_meters_clients_in_the_pod(self):
        pod = await self.pod("redirect").start()
        script = ("import asyncio, sys; sys.path.insert(0, sys.argv[1]); import client\n"
                  "answer = asyncio.run(client.Connection(sys.argv[2], int(sys.argv[3])).chat(3, 1))\n"
                  "print('whole' if client.is_whole(answer, 3) else answer)")
        for host in ("127.0.0.1", "::1", pod.v4, pod.v6):
            code, output = await pod.run(sys.executable, "-c", script, HERE, host, PUBLIC, uid=SERVER_UID)
            self.assertEqual((code, output), (0, "whole\n"), host)
        await pod.delete()
        self.assertEqual(pod.rows(), (4, 4))

    async def test_own_connections_are_not_redirected(self):
        pod = await self.pod("redirect").start()
        script = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); " \
                 "s.sendall(b'GET /who HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n'); print(s.getsockname()[1], s.recv(999))"
        before = (await client.once(pod.v4, ADMIN, "/metrics"))[1]
        code, output = await pod.run(sys.executable, "-c", script, PUBLIC, uid=UID)
        self.assertEqual(code, 0, output)
        after = (await client.once(pod.v4, ADMIN, "/metrics"))[1]
        self.assertEqual(passed(before), passed(after), "tokenmeter did not see it")
        await pod.run(sys.executable, "-c", script, PUBLIC, uid=SERVER_UID)
        after = (await client.once(pod.v4, ADMIN, "/metrics"))[1]
        self.assertEqual(passed(before) + 1, passed(after), "it sees others")

    async def test_connection_that_was_not_redirected_is_closed(self):
        pod = await self.pod("redirect").start()
        with self.assertRaises((ConnectionError, EOFError)):
            await client.once(pod.v4, REDIRECTED, "/health")
        await self.exchange(pod, pod.v4)

    async def test_redirected_own_connections_do_not_start(self):
        pod = self.pod("redirect")
        await pod.connect()
        code, output = await pod.redirect("--exclude-uid", "7")
        self.assertEqual(code, 0, output)
        code, output = await pod.run(self.node.binary, "run")
        self.assertEqual(code, 1, output)
        self.assertIn("--exclude-uid 65532", output)

    async def test_rules_are_replaced_and_removed(self):
        pod = await self.pod("redirect").start()
        for _ in range(2):
            code, output = await pod.redirect()
            self.assertEqual(code, 0, output)
        code, rules = await pod.run("nft", "list", "ruleset", uid=None)
        self.assertEqual((code, rules.count("redirect to"), rules.count("table ")), (0, 2, 1), rules)
        await self.exchange(pod, pod.v4)
        for _ in range(2):
            code, output = await pod.run(self.node.binary, "redirect", "--remove", uid=None)
            self.assertEqual(code, 0, output)
        self.assertEqual(await pod.run("nft", "list", "ruleset", uid=None), (0, ""))
        _, body = await client.once(pod.v4, PUBLIC, "/health")
        self.assertIn("10.77.0.1", body, "the server sees the client again")

    async def test_rules_need_the_capability(self):
        pod = self.pod("redirect")
        await pod.connect()
        code, output = await pod.run(self.node.binary, "redirect", "--to", REDIRECTED, "--port", PUBLIC)
        self.assertEqual(code, 1)
        self.assertIn("NET_ADMIN", output)

    async def test_server_moved_by_takeover_answers_probes_on_its_port(self):
        pod = await self.pod("takeover").start()
        _, body = await client.once(pod.v4, MOVED, "/health")
        self.assertIn("10.77.0.1", body)


def passed(page):
    """Requests that were forwarded unmetered, by the metrics page."""
    samples = (line.split() for line in page.splitlines() if line.startswith("tokenmeter_passthrough_total"))
    return sum(float(sample[-1]) for sample in samples)
