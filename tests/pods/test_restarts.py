"""Rolling restarts under streams: no request and no row of the ledger is lost."""
import asyncio
import collections
import os
import random

import client
from pod import PUBLIC, Pod, PodTest

IS_LONG = bool(os.environ.get("TOKENMETER_LONG"))
RESTARTS = 100 if IS_LONG else 5
CLIENTS = 500 if IS_LONG else 40
REPLICAS = 2

# Less than the drain's delay, as by the default of 5 s in a cluster.
ENDPOINTS_REMOVED_S = 0.3
DRAIN_DELAY_MS = 2_000


class Restarts(PodTest):
    def setUp(self):
        super().setUp()
        self.endpoints, self.failures = [], []
        self.asked, self.resent = collections.Counter(), 0
        self.is_over = asyncio.Event()

    async def test_takeover_loses_nothing(self):
        await self.lose_nothing("takeover")

    async def test_redirect_loses_nothing(self):
        await self.lose_nothing("redirect")

    async def test_plain_container_loses_nothing(self):
        await self.lose_nothing("takeover", min(RESTARTS, 3), native=False)

    async def test_server_without_the_hook_cuts_streams(self):
        requests = await self.restart("takeover", 1, waits=False)
        self.assertTrue(self.failures, f"none of {requests} requests was cut: the tests above prove nothing")
        # What was cut has its row, too.
        self.assertEqual(sum(every for every, _ in self.rows()), requests)

    async def lose_nothing(self, mode, restarts=RESTARTS, native=True):
        requests = await self.restart(mode, restarts, native=native)
        rows = self.rows()
        every, whole = (sum(pod[part] for pod in rows) for part in (0, 1))
        print(f"{mode}: {restarts} restarts, {CLIENTS} clients, {requests} requests, {every} rows, "
              f"{self.resent} sent again after the end of a kept connection")
        asked = [(self.asked[pod.v4], had, pod.log()) for pod, had in zip(self.pods, rows)]
        lacking = [pod for pod in asked if pod[0] != pod[1][0]]
        self.assertEqual((self.failures, lacking), ([], []))
        self.assertEqual((every, whole), (requests, requests))
        self.assertTrue(all(pod[0] > 0 for pod in rows), f"each pod had a part: {rows}")

    async def restart(self, mode, restarts, waits=True, native=True):
        """Replace a pod this often under streams, then end all; the number of requests."""
        for _ in range(REPLICAS):
            await self.add(mode)
        clients = [asyncio.create_task(self.client(number)) for number in range(CLIENTS)]
        for _ in range(restarts):
            await self.add(mode)
            oldest = self.endpoints[0]
            await asyncio.gather(oldest.delete(waits, native), self.remove(oldest))
        self.is_over.set()
        requests = sum(await asyncio.gather(*clients))
        for pod in self.endpoints:
            await pod.delete()
        return requests

    async def add(self, mode):
        self.pods.append(Pod(self.node, mode, DRAIN_DELAY_MS))
        self.endpoints.append(await self.pods[-1].start())

    async def remove(self, pod):
        """Remove a pod from its Service, a moment after its deletion began."""
        await asyncio.sleep(ENDPOINTS_REMOVED_S)
        self.endpoints.remove(pod)

    def rows(self):
        return [pod.rows() for pod in self.pods]

    async def client(self, number):
        """Send streams until the end, every other client on a kept connection; the number of requests."""
        chance, requests, connection = random.Random(number), 0, None
        while not self.is_over.is_set():
            if connection is None:
                connection = client.Connection(chance.choice(self.endpoints).v4, PUBLIC)
            tokens = chance.randrange(1, 16)
            try:
                answer = await connection.chat(tokens, 200)
                if not client.is_whole(answer, tokens):
                    self.failures.append((connection.host, answer))
                requests += 1
                self.asked[connection.host] += 1
            except client.ClosedIdle:
                # It is asked again on a new connection. If it was forwarded already, the ledger has a row too many.
                self.resent += 1
                connection.close()
                connection = None
                continue
            except (OSError, EOFError) as error:
                requests += 1
                self.asked[connection.host] += 1
                self.failures.append((connection.host, repr(error)))
                connection.close()
            # A client thinks for a moment; a pool sees meanwhile that a connection was closed.
            await asyncio.sleep(0.1 + chance.random() / 5)
            if number % 2 == 1 or not connection.is_open():
                connection.close()
                connection = None
        if connection is not None:
            connection.close()
        return requests
