"""What tokenmeter sends to a server, of requests of any bytes: all parsers find the same requests in it."""
import contextlib

import canonical
import next_hop
import pytest
import requests_read
import rig
import scripts

READERS = {
    "h11": requests_read.by_h11,
    "llhttp": requests_read.by_llhttp,
    "gunicorn": requests_read.by_gunicorn,
    "aiohttp": requests_read.by_aiohttp,
}


@pytest.fixture(scope="module")
def streams():
    """The bytes of each connection to the server."""
    recorder = rig.Recorder()
    rig.exchange(recorder, scripts.scripts(scripts.REQUESTS, 1))
    streams = [stream for stream in recorder.connections if stream]
    assert len(streams) > scripts.COUNT / 50, "hardly a request reached the server"
    return streams


def whole(stream):
    """The whole requests of a stream, each with the position behind it."""
    return [found for found in canonical.every(canonical.request, stream) if found[0].is_whole]


def test_streams_are_canonical(streams):
    assert sum(len(whole(stream)) for stream in streams) > scripts.COUNT / 5, "hardly a request is whole"


@pytest.mark.parametrize("name", [*READERS, *next_hop.SETTINGS])
def test_parser_finds_the_same_requests(name, streams):
    """It may refuse one, such as one of an unknown method; then it reads on behind it."""
    with contextlib.nullcontext(READERS[name]) if name in READERS else next_hop.running(name) as read:
        assert_same(name, read, streams)


def assert_same(name, read, streams):
    count, refused = 0, []
    for stream in streams:
        expected = whole(stream)
        count += len(expected)
        at = 0
        while True:
            found, is_refused = read(stream[at:])
            # One of them writes methods in upper case.
            seen = [(method.upper(), target, body) for method, target, body in found]
            assert seen == [(message.start[0].upper(), message.start[1], message.body)
                            for message, _ in expected[:len(found) if is_refused else None]], (stream[at:], is_refused)
            if not is_refused or len(found) >= len(expected):
                break
            refused.append(expected[len(found)][0])
            at, expected = expected[len(found)][1], whole(stream)
            expected = [message for message in expected if message[1] > at]
    print(f"{name}: {count} requests, {len(refused)} refused")
    assert len(refused) < count / 5, refused[:20]
