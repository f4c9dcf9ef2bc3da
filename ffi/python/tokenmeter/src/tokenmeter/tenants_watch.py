"""The tenant rules of a meter, with the keys of their `jwt` rules as these change."""
import logging
import pathlib
import threading
import time
import urllib.parse
from collections.abc import Callable

from tokenmeter.errors import Error
from tokenmeter.jwks import JWKS_BYTES, FetchError, fetch
from tokenmeter.meter import Meter
from tokenmeter.tenants import Tenants, key_sources

POLL_SECONDS = 2.0
"""The interval in which files are compared, and the time of the next fetch is checked."""
REGULAR_SECONDS = 300.0
"""The interval of fetches: issuers publish a new key well before they use it."""
MINIMUM_SECONDS = 60.0
"""The interval after a token with an unknown key or a failed fetch: forged tokens must not flood the issuer."""
logger = logging.getLogger("tokenmeter")


class Source:
    """A source of keys, a file or a URL, and its last content. One thread at a time reads it."""

    def __init__(self, name: str, folder: pathlib.Path) -> None:
        self.name = name
        self.file = None if "://" in name else folder / name
        self.jwks = b""
        """The last valid content."""
        self.seen: bytes | None = None
        """The last content."""
        self.problem = ""
        """The problem of the last read."""
        self.read_at: float | None = None

    @property
    def shown(self) -> str:
        """The name without a query, which may be a secret."""
        return self.name if self.file else self.name.split("?")[0].split("#")[0]

    @property
    def is_open_to_others(self) -> bool:
        """True if the keys come over http:// from another machine."""
        url = urllib.parse.urlsplit("" if self.file else self.name)
        return url.scheme == "http" and url.hostname not in ("127.0.0.1", "::1", "localhost")

    def is_due(self, now: float, missed: Callable[[], bool]) -> bool:
        """Returns true if it is to be read. `missed` says whether a token needed another key, and forgets it."""
        if self.file or self.read_at is None:
            return True
        age = now - self.read_at
        return age >= REGULAR_SECONDS or (age >= MINIMUM_SECONDS and (bool(self.problem) or missed()))

    def read(self) -> bytes:
        """Returns the content. Raises FetchError."""
        content = fetch(self.name) if self.file is None else read_file(self.file)
        if not content:
            raise FetchError("it is empty")
        return content


class TenantsWatch:
    """Gives a meter the rules of a tenants file, and new rules when the keys of a source change.

    The rules apply from now on. Until the keys of a URL are fetched, its rules match no token; after a failed read the
    last valid keys remain. Threads of its own read the sources: no request waits for them.
    """

    def __init__(self, meter: Meter, yaml: bytes, hash_key: bytes = b"", folder: pathlib.Path = pathlib.Path()) -> None:
        """Reads the rules, and the keys of files, whose names are relative to `folder`. Raises Error or FetchError."""
        self.meter, self.yaml, self.hash_key = meter, yaml, hash_key
        self.failures = 0
        """Failed reads of a source, counted once for each problem of a file."""
        self.sources = [Source(name, folder) for name in key_sources(meter._library, yaml)]
        for source in self.sources:
            if source.is_open_to_others:
                logger.warning("tokenmeter: anyone on the network path can replace the keys of %s, and then act as any "
                               "tenant: use https://", source.shown)
            if source.file:
                try:
                    source.jwks = source.seen = source.read()
                except FetchError as error:
                    raise FetchError(f"the keys of {source.shown}: {error}") from None
        self._stopped, self._lock = threading.Event(), threading.Lock()
        self._rules = self._with({})

    def start(self) -> None:
        """Reads the sources from now on, each in a thread that ends with the process."""
        for source in self.sources:
            threading.Thread(target=self._run, args=(source,), name="tokenmeter-keys", daemon=True).start()

    def close(self) -> None:
        """Stops the threads, at most a fetch later. The meter keeps the last rules."""
        self._stopped.set()

    def check(self, source: Source, now: float) -> None:
        """Reads a source if it is due, and gives the meter its keys if they changed. Never raises."""
        try:
            if not source.is_due(now, lambda: self._key_missed(source)):
                return
            source.read_at = now
            content = source.read()
            if content != source.seen:
                source.seen = content
                self._put(source, content)
                logger.info("tokenmeter: new keys of %s are in use", source.shown)
            if content == source.jwks:
                source.problem = ""
        except Exception as error:
            problem = error.message if isinstance(error, Error) else f"the keys of {source.shown}: {error}"
            is_new = problem != source.problem
            if is_new:
                logger.warning("tokenmeter: the keys before remain in use: %s", problem)
            self.failures += is_new or source.file is None
            source.problem = problem

    def _run(self, source: Source) -> None:
        while not self._stopped.is_set():
            self.check(source, time.monotonic())
            self._stopped.wait(POLL_SECONDS)

    def _key_missed(self, source: Source) -> bool:
        with self._lock:
            return self._rules.key_missed(source.name)

    def _put(self, source: Source, jwks: bytes) -> None:
        with self._lock:
            rules = self._with({source.name: jwks})
            self._rules.close()
            self._rules, source.jwks = rules, jwks

    def _with(self, changed: dict[str, bytes]) -> Tenants:
        """Gives the meter the rules with all keys, some of them changed."""
        keys = {source.name: source.jwks for source in self.sources} | changed
        rules = Tenants(self.meter._library, self.yaml, self.hash_key, keys)
        self.meter._use(rules)
        return rules


def read_file(path: pathlib.Path) -> bytes:
    """Returns the content of a file of keys. Raises FetchError."""
    try:
        with path.open("rb") as file:
            content = file.read(JWKS_BYTES + 1)
    except OSError as error:
        raise FetchError(f"it cannot be read: {error.strerror}") from None
    if len(content) > JWKS_BYTES:
        raise FetchError(f"it is larger than {JWKS_BYTES} bytes")
    return content
