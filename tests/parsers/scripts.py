"""Requests and responses, valid ones and mutations of them, the same in each run."""
import os
import random

COUNT = int(os.environ.get("SCRIPTS") or (20_000 if os.environ.get("TOKENMETER_LONG") else 1_000))
"""Scripts each way."""

REQUESTS = (
    b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HEAD /b?c=d HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    b"GET /c HTTP/1.0\r\n\r\n",
    b"POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    b"POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
    b"POST /g HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\nTE: trailers\r\n\r\n"
    b"05\r\nhello\r\n0\r\nx: y\r\n\r\n",
    b"POST /h HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    b"PUT http://b/i HTTP/1.1\r\nHost: a\r\nContent-Length: 44\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\nx: 12345\r\n\r\n",
    b"POST /j HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"24\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: x, keep-alive\r\nx: y\r\n\r\n",
    b"POST /k HTTP/1.1\r\nHost: a\r\nConnection: close, Content-Length\r\nContent-Length: 3\r\n\r\nabc",
)

RESPONSES = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6 ;a=b\r\n world\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nup to the end",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\nETag: \"a\"\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    b"HTTP/1.1 500 Error\nContent-Length : 4, 4\n\nnope",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"a\r\ndata: {}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n00000003\r\nabc\r\n0\r\n\r\n",
)

WORDS = (
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b";", b",", b"\"", b"\\", b"\0", b"\x7f", b"\xff", b"#", b"0", b"5", b"-1", b"+5",
    b"0x5", b"5_", b"00", b"fffffffffffffffff", b"\r\n\r\n", b"0\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: 5, 5\r\n",
    b"content-length:6\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding : chunked\r\n", b"Transfer_Encoding: chunked\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n", b"x: y\r\n", b" folded\r\n", b"Host: b\r\n", b"Connection: close\r\n",
    b"Connection: Transfer-Encoding\r\n", b"Upgrade: h2c\r\n", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/2.0", b"HTTP/1.10", b"GET ",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
)


def scripts(seeds, seed):
    """The seeds, then mutations of them."""
    dice = random.Random(seed)
    return [*seeds, *(mutated(dice, dice.choice(seeds), seeds) for _ in range(COUNT - len(seeds)))]


def mutated(dice, message, seeds):
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        at, to = sorted(dice.randrange(len(message) + 1) for _ in range(2))
        to = min(to, at + dice.choice((1, 2, 8, 40)))
        message = dice.choice((
            lambda: message[:at] + dice.choice(WORDS) + message[at:],
            lambda: message[:at] + dice.choice(WORDS) + message[at:],
            lambda: message[:at] + dice.choice(WORDS) + message[to:],
            lambda: message[:at] + message[to:],
            lambda: message[:to] + message[at:],
            lambda: message[:at] + bytes([dice.randrange(256)]) + message[at + 1:],
            lambda: at_line_end(dice, message),
            lambda: message + dice.choice(seeds),
        ))()
    return message


def at_line_end(dice, message):
    """A word behind one of its lines, where fields are."""
    ends = [at + 1 for at, byte in enumerate(message) if byte == 10]
    at = dice.choice(ends) if ends else 0
    return message[:at] + dice.choice(WORDS) + message[at:]
