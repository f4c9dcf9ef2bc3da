"""tokenmeter in front of a fake provider, with a ledger; and its records."""
import sqlite3

from meter import EXCHANGES, Meter
from process import eventually, free_port

TYPES = ("input", "input_cached", "input_cache_write", "output", "output_reasoning")
COLUMNS = (*TYPES, "id", "provider", "dialect", "model", "response_model", "ending", "status", "streamed",
           "input_provenance", "output_provenance", "service_tier", "upstream_attempts")
ROWS = "tokenmeter_ledger_rows_total"


class Proxy(Meter):
    """tokenmeter as a process. `url` is what a client is given instead of the provider's. `hosts` are names that resolve
    in this process only: it has an /etc/hosts of its own, in a mount namespace, which needs root.
    """

    def __init__(self, upstream, folder, *options, hosts=None):
        self.address = ("127.0.0.1", free_port())
        self.url = "http://%s:%d" % self.address
        self.ledger = folder / "ledger.db"
        self.taken = 0
        if hosts:
            names = folder / "hosts"
            names.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in hosts.items()))
            script = f'mount --bind "{names}" /etc/hosts && exec "$0" "$@"'
            self.command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        self.start(folder / "tokenmeter.log", "--upstream", upstream, "--listen", "%s:%d" % self.address,
                   "--engine-metrics", "off", "--ledger", str(self.ledger), *options)

    def skip_rows(self):
        """Skips the rows of all exchanges that have ended."""
        self.taken = int(self.samples().sum(EXCHANGES))
        assert eventually(lambda: self.samples().sum(ROWS) == self.taken)

    def rows(self, number):
        """The next rows of the ledger, as dictionaries."""
        wanted = self.taken + number
        assert eventually(lambda: self.samples().sum(ROWS) >= wanted), f"{self.samples().sum(ROWS)} rows of {wanted}"
        with sqlite3.connect(self.ledger) as database:
            found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM exchange ORDER BY started_us, id").fetchall()
        assert len(found) == wanted
        rows = [dict(zip(COLUMNS, row)) for row in found[self.taken:]]
        for row in rows:
            row["upstream_attempts"] = row["upstream_attempts"] or 1      # one attempt is not written
        self.taken = wanted
        return rows

    def row(self):
        row, = self.rows(1)
        return row


def tokens(row):
    """Token type -> count, without zeros."""
    return {kind: row[kind] for kind in TYPES if row[kind]}
