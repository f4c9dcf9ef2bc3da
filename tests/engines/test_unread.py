"""A client that reads the content of an unstreamed answer and not its usage at the end: it is charged for all."""
import socket

import pytest

import cases
import wire
from call import SECONDS
from exposition import Difference
from meter import EXCHANGES
from tap import CASE, reset
from test_mixed import OUTPUT, tokens

pytestmark = [pytest.mark.metered, pytest.mark.engine("llamacpp", "vllm")]
LONG = {"logprobs": True, "top_logprobs": 20, "max_tokens": 2400, "ignore_eos": True}
"""More than 4 MiB of JSON, the largest send buffer that Linux gives a socket: the client leaves before the proxy has sent all,
however fast either is."""


def test_content_without_usage_is_charged(rig):
    case = cases.chat("unread", LONG)
    engine, meter = rig.engine.settled_counters(), rig.meter.samples()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.settimeout(SECONDS)
        client.connect(rig.address)
        headers = [*case.headers, (CASE, rig.new_name(case))]
        client.sendall(wire.request(case.method, case.path, "%s:%d" % rig.address, case.body, headers))
        seen = client.recv(1024)
        assert b" 200 " in seen
        reset(client)
    moved = rig.meter.moved(meter)
    generated = rig.engine.moved(Difference(engine, rig.engine.settled_counters()))[2]
    assert moved.by(EXCHANGES, "ending") == {"client_abort": 1}, "or all of it fits in buffers, and nothing was tested"
    assert tokens(moved, OUTPUT) == {"reported": generated}
    assert generated == LONG["max_tokens"]
