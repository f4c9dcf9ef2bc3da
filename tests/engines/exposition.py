"""Prometheus' text format: samples, and sums and differences of them."""
import re
import urllib.request

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*?)\})? (\S+)(?: [^{}]*)?(?: # .*)?$")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


class Samples:
    """One scrape."""

    def __init__(self, text):
        self.rows = []
        for line in text.splitlines():
            found = None if line.startswith("#") else SAMPLE.match(line)
            if found:
                self.rows.append((found[1], dict(LABEL.findall(found[2] or "")), float(found[3])))

    def sum(self, name, **labels):
        """The sum of all series of that name that carry these labels."""
        return sum(value for row, have, value in self.rows if row == name and labels.items() <= have.items())

    def has(self, name):
        return any(row == name for row, _, _ in self.rows)

    def values(self, name, label, **labels):
        """label value -> sum, for one label of a metric, among the series that have the other labels."""
        have = {row_labels[label] for row, row_labels, _ in self.rows if row == name and label in row_labels}
        return {value: self.sum(name, **{**labels, label: value}) for value in have}


class Difference:
    """The difference between two scrapes."""

    def __init__(self, before, after):
        self.before, self.after = before, after

    def of(self, name, **labels):
        return self.after.sum(name, **labels) - self.before.sum(name, **labels)

    def by(self, name, label, **labels):
        """label value -> difference, without zeros."""
        before, after = self.before.values(name, label, **labels), self.after.values(name, label, **labels)
        moved = {value: count - before.get(value, 0) for value, count in after.items()}
        return {value: count for value, count in moved.items() if count}


def scrape(address):
    with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=60) as reply:
        return Samples(reply.read().decode())
