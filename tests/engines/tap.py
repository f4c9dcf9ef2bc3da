"""A TCP proxy that records both directions of each connection.

It stands between the proxy under test and the engine, so that what the client received can be
compared with what the engine really sent. An end (FIN) is passed on as an end and a reset as a
reset: the tap must not make a broken answer look finished.
"""
import itertools
import socket
import struct
import threading
from contextlib import suppress

import answer
import wire

CASE = "x-case"
"""The request header that identifies an exchange."""
HOLD = "x-hold-after"
"""The request header with the number of events after which the tap holds the answer, until the near side has left:
the events seen by then are known exactly."""

READS = itertools.count()
"""Numbers the reads from the near sides of all connections."""


class Tap:
    def __init__(self, target):
        self.target, self.connections = target, []
        self.listener = None
        self.address = None
        self.open()

    def open(self):
        """Listen; after `close`, on the same port again."""
        self.listener = socket.create_server(self.address or ("127.0.0.1", 0), backlog=64)
        self.address = self.listener.getsockname()
        threading.Thread(target=self.accept, args=[self.listener], daemon=True).start()

    def close(self):
        """Refuse connections from now on."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)      # wakes accept(); closing alone would not
        self.listener.close()

    def accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                reset(near)
                continue
            connection = Connection(near, far)
            self.connections.append(connection)
            connection.start()

    def exchanges(self, case):
        """(request, response) of each exchange with that case header, in order; the response may be None."""
        return [pair for pair in self.in_order() if pair[0].header(CASE) == case]

    def every_exchange(self):
        """name -> (request, response) of all exchanges, the last of each name."""
        return {pair[0].header(CASE): pair for pair in self.in_order()}

    def in_order(self):
        """(request, response) of each exchange so far; the response may be None."""
        found = [pair for connection in list(self.connections) for pair in connection.exchanges()]
        return sorted(found, key=lambda pair: pair[0].begun)

    def requests(self):
        """Number of requests so far."""
        return len(self.in_order())

    def answers(self):
        """The body of each answer so far."""
        return [response.body for connection in list(self.connections) for _, response in connection.exchanges() if response]

    def unanswered(self):
        """Number of held answers on a connection that neither side has closed."""
        ways = [connection for connection in list(self.connections) if not (connection.left.is_set() or connection.ended)]
        return sum(not (response and response.whole) for way in ways for _, response in way.exchanges())

    def left(self, case):
        """True if the near side of that exchange's connection has closed it."""
        return any(connection.left.is_set() for connection in list(self.connections)
                   if any(request.header(CASE) == case for request, _ in connection.exchanges()))


class Connection:
    """One connection: `sent` to the engine, `received` from it; `left` when the near side has closed, `ended` when
    the engine has."""

    def __init__(self, near, far):
        self.near, self.far = near, far
        self.sent, self.received = bytearray(), bytearray()
        self.reads = []
        self.left, self.ended = threading.Event(), False
        self.open_ways = 2
        self.closed_exchanges = None
        self.lock = threading.Lock()
        for s in (near, far):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self):
        threading.Thread(target=self.pump, args=[self.near, self.far, self.sent], daemon=True).start()
        threading.Thread(target=self.pump, args=[self.far, self.near, self.received], daemon=True).start()

    def pump(self, source, sink, record):
        try:
            while data := source.recv(1 << 16):
                if source is self.far and (stop := self.hold_from(data)) is not None:
                    record += data[:stop]
                    sink.sendall(data[:stop])
                    self.left.wait()
                    raise ConnectionResetError("the near side left while the answer was held")
                if source is self.near:
                    self.reads.append((len(record), next(READS)))
                record += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # a reset, or a write to a closed side: both sides must see it
            reset(source)
            reset(sink)
        finally:
            if source is self.near:
                self.left.set()
            else:
                self.ended = True
            with self.lock:
                self.open_ways -= 1
                if self.open_ways == 0:
                    self.near.close()
                    self.far.close()

    def hold_from(self, data):
        """The position in the engine's next bytes at which the hold begins, if one was requested."""
        if HOLD.encode() not in self.sent:
            return None
        request, response = self.exchanges()[-1]
        left = int(request.header(HOLD) or 1 << 30) - (len(answer.events(response.body)) if response else 0)
        at = data.find(b"\r\n\r\n") + 4 if response is None else 0
        while left and (at := data.find(b"\n\n", at) + 2) > 1:
            left -= 1
        return None if left else at

    def exchanges(self):
        """(request, response) of each exchange, in order; parsed once when both sides have closed."""
        if self.closed_exchanges is None:
            is_closed, pairs = self.open_ways == 0, self.parsed()
            if not is_closed:
                return pairs
            self.closed_exchanges = pairs
        return self.closed_exchanges

    def parsed(self):
        sent, received, closed = bytes(self.sent), bytes(self.received), self.ended
        at = answered = 0
        pairs = []
        while (request := wire.parse(sent, at)) is not None:
            request.begun = max(number for begins, number in list(self.reads) if begins <= at)
            response = wire.parse(received, answered, closed, request.method)
            pairs.append((request, response))
            at = request.end
            if not request.whole or response is None:
                break
            answered = response.end
        return pairs


def reset(s):
    """Close with a reset."""
    with suppress(OSError):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        s.close()
