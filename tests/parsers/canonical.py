"""Canonical HTTP/1.1: the few forms that every parser reads alike. All bytes that tokenmeter writes must have one of them."""
import dataclasses
import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
VALUE = rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?"
FIELD = re.compile(rb"(%b): ?(%b)\r\n" % (TOKEN, VALUE))
REQUEST_LINE = re.compile(rb"(%b) ([\x21\x22\x24-\x7e]+) HTTP/1\.1\r\n" % TOKEN)
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-9][0-9]{2}) ([\t\x20-\x7e]*)\r\n")
CHUNK_LINE = re.compile(rb"([1-9A-Fa-f][0-9A-Fa-f]{0,12})\r\n")


class NotCanonical(Exception):
    """Bytes that tokenmeter must not write."""


@dataclasses.dataclass
class Message:
    """A request or a response. `start`: method and target, or the status. `body`: its received part."""
    start: tuple
    body: bytes
    is_whole: bool


def read_fields(data, at):
    """The fields from `at`, in lower case, and the position behind their empty line; `None` if they are not whole."""
    found = []
    while not data.startswith(b"\r\n", at):
        match = FIELD.match(data, at)
        if match is None:
            if b"\r\n" in data[at:]:
                raise NotCanonical(data[at:at + 60])
            return None
        found.append((match[1].lower(), match[2]))
        at = match.end()
    return found, at + 2


def read_body(data, at, fields, is_bodiless):
    """The received part of the body from `at`, whether it is whole, and the position behind it. No body ends with its connection."""
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if is_bodiless:
        return b"", True, at
    if len(lengths) + len(codings) > 1 or codings not in ([], [b"chunked"]):
        raise NotCanonical((lengths, codings))
    if lengths:
        if not re.fullmatch(rb"[0-9]+", lengths[0]):
            raise NotCanonical(lengths)
        end = at + int(lengths[0])
        return data[at:end], end <= len(data), min(end, len(data))
    if not codings:
        return b"", True, at
    payload = b""
    while not data.startswith(b"0\r\n", at):
        match = CHUNK_LINE.match(data, at)
        if match is None:
            if b"\r\n" in data[at:]:
                raise NotCanonical(data[at:at + 60])
            return payload, False, len(data)
        at, size = match.end(), int(match[1], 16)
        payload += data[at:at + size]
        if len(data) < at + size + 2:
            return payload, False, len(data)
        if data[at + size:at + size + 2] != b"\r\n":
            raise NotCanonical(data[at:at + size + 2])
        at += size + 2
    trailers = read_fields(data, at + 3)
    return (payload, False, len(data)) if trailers is None else (payload, True, trailers[1])


def request(data, at=0):
    """The request at this position, and the position behind it; `None` if its head is not whole."""
    return message(data, at, REQUEST_LINE, lambda words: (words, False))


def response(data, at=0):
    """The response to a GET at this position, and the position behind it; `None` if its head is not whole."""
    return message(data, at, STATUS_LINE, lambda words: (words[:1], words[0][:1] == b"1" or words[0] in (b"204", b"304")))


def message(data, at, first_line, read_words):
    """A message. `read_words` returns the words of its first line to keep, and whether it has no body."""
    match = first_line.match(data, at)
    if match is None:
        if b"\r\n" in data[at:]:
            raise NotCanonical(data[at:at + 60])
        return None
    head = read_fields(data, match.end())
    if head is None:
        return None
    start, is_bodiless = read_words(match.groups())
    payload, is_whole, end = read_body(data, head[1], head[0], is_bodiless)
    return Message(start, payload, is_whole), end


def every(read, data):
    """All messages of a stream, each with the position behind it; the last one may not be whole."""
    messages, at = [], 0
    while at < len(data) and (found := read(data, at)) is not None:
        messages.append(found)
        if not found[0].is_whole:
            break
        at = found[1]
    return messages
