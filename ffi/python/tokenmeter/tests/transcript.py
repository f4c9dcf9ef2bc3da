"""Recorded exchanges of `tests/transcripts`: the bytes of one, and the record that the meter must make of it."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[4] / "tests" / "transcripts"


class Transcript:
    """A recording of one exchange on one connection."""

    def __init__(self, folder):
        self.name = f"{folder.parent.name}/{folder.name}"
        self.target, _, self.request_headers, self.request = message((folder / "request.http").read_bytes())
        wire = (folder / "response.http").read_bytes()
        _, status, self.response_headers, _ = message(wire)
        self.status = int(status)
        arrivals = (folder / "arrivals.jsonl").read_text().splitlines()
        self.parts = list(parts(wire, [json.loads(line)["len"] for line in arrivals]))
        self.record = (folder / "record.txt").read_text()

    def counts(self):
        """Returns the counts of the record by the name of their type, and the two sources."""
        by_type = {name: int(count) for name, count in re.findall(r"^  ((?:in|out)put\w*): (\d+)$", self.record, re.M)}
        return by_type, dict(re.findall(r"^(input|output): (?:\d+ )?(\w+)$", self.record, re.M))

    @property
    def ending(self):
        return re.search(r"^ending: (\w+)$", self.record, re.M)[1]


def simple():
    """Yields the recordings of one exchange each, with a response that is whole, chunked and not compressed."""
    for folder in sorted(ROOT.glob("*/*")):
        if (folder / "record.txt").exists() and not (folder / "record-2.txt").exists():
            wire = (folder / "response.http").read_bytes()
            head = wire.split(b"\r\n\r\n", 1)[0].lower()
            is_plain = b"transfer-encoding: chunked" in head and b"content-encoding" not in head
            if is_plain and wire.endswith(b"\r\n0\r\n\r\n") and wire.count(b"HTTP/1.1 ") == 1:
                yield Transcript(folder)


def message(wire):
    """Returns the target or version, the status or version, the fields and the body of a message."""
    head, body = wire.split(b"\r\n\r\n", 1)
    start, *fields = head.decode("latin-1").split("\r\n")
    words = start.split(" ", 2)
    headers = [tuple(field.split(": ", 1)) for field in fields]
    return words[1] if not start.startswith("HTTP/") else words[0], words[1], headers, body


def parts(wire, reads):
    """Yields the body without its chunks, cut where the client's reads were."""
    body, raw_at = [], wire.index(b"\r\n\r\n") + 4
    ends = [sum(reads[: number + 1]) for number in range(len(reads))]
    while True:
        line = wire.index(b"\r\n", raw_at)
        size = int(wire[raw_at:line], 16)
        if size == 0:
            break
        body.append((line + 2, wire[line + 2 : line + 2 + size]))
        raw_at = line + size + 4
    for end, start in zip(ends, [0, *ends]):
        part = b"".join(data[max(start - at, 0) : max(end - at, 0)] for at, data in body)
        if part:
            yield part
