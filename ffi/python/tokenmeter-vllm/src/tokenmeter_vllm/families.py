"""Sums of metrics pages in Prometheus' text format."""
from collections.abc import Iterable

SUMMED_GAUGES = ("_in_flight",)
"""Ends of the names of gauges that add up over processes. Other gauges are facts of each, as a version."""
PARTS = ("_bucket", "_sum", "_count")
"""Ends of the names of a histogram's series."""


def merge(pages: Iterable[str]) -> str:
    """Returns one page: counters and histograms are sums, gauges the largest value; each series occurs once."""
    comments: dict[str, dict[str, str]] = {}
    types: dict[str, str] = {}
    series: dict[str, dict[str, float]] = {}
    for page in pages:
        for line in page.splitlines():
            if line.startswith("# "):
                _, keyword, name, *rest = line.split(" ", 3)
                if keyword in ("HELP", "TYPE"):
                    comments.setdefault(name, {})[keyword] = line
                    series.setdefault(name, {})
                if keyword == "TYPE":
                    types[name] = rest[0]
            elif line:
                key, value = line.rsplit(" ", 1)
                name = family(key.split("{", 1)[0], types)
                kind = types.get(name, "untyped")
                adds = kind in ("counter", "histogram", "summary") or name.endswith(SUMMED_GAUGES)
                known = series.setdefault(name, {})
                new, old = float(value), known.get(key)
                known[key] = new if old is None else old + new if adds else max(old, new)
    lines: list[str] = []
    for name, values in series.items():
        lines += comments.get(name, {}).values()
        lines += [f"{key} {number(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def family(name: str, types: dict[str, str]) -> str:
    """Returns the family of a series."""
    for end in PARTS:
        if name.endswith(end) and types.get(name.removesuffix(end)) in ("histogram", "summary"):
            return name.removesuffix(end)
    return name


def number(value: float) -> str:
    """Returns a number as Prometheus writes it; whole ones without a fraction."""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value).replace("inf", "Inf").replace("nan", "NaN")
