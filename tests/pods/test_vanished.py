"""A client that vanishes with its machine, so that its connection has no end, does not keep the server busy."""
import asyncio
import json
import socket
import time

import client
from pod import ADMIN, PUBLIC, Pod, PodTest

TCP_REPAIR = 19
"""The socket option of a mode in which closing sends nothing (linux/tcp.h)."""

PROBED_S = 15
"""The seconds of silence after which the kernel probes a peer."""


class Vanished(PodTest):
    async def test_client_that_vanishes_ends_its_request(self):
        self.pods.append(Pod(self.node, "takeover"))
        pod = await self.pods[-1].start()
        body = json.dumps({"model": "m", "stream": True, "max_tokens": 2, "pause_ms": 600_000, "messages": []})
        request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        vanishing = socket.create_connection((pod.v4, PUBLIC))
        vanishing.sendall(request.encode())
        await asyncio.to_thread(vanishing.recv, 1)
        self.assertEqual(await in_flight(pod), 1)
        vanishing.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        vanishing.close()
        begun = time.monotonic()
        while await in_flight(pod) != 0:
            self.assertLess(time.monotonic() - begun, 3 * PROBED_S, "its request goes on")
            await asyncio.sleep(0.5)


async def in_flight(pod):
    page = (await client.once(pod.v4, ADMIN, "/metrics"))[1]
    samples = (line.split() for line in page.splitlines() if line.startswith("tokenmeter_exchanges_in_flight"))
    return sum(float(sample[-1]) for sample in samples)
