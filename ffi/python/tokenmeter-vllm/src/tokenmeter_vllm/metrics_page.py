"""The metrics page: vLLM's families, then those of the meter, of every API process once."""
import os
import pathlib
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from tokenmeter_vllm.families import merge
from tokenmeter_vllm.circuit_breaker import logger
from tokenmeter_vllm.registry import Registry

WRITE_EVERY_SECONDS = 1.0
"""The age that the counts of another API process can have."""
LEVELS = ("engine", "reported", "off")


def is_wanted(scope: MutableMapping[str, Any]) -> bool:
    """Returns true for a request of vLLM's metrics page."""
    path: str = scope["path"]
    return scope["method"] == "GET" and path.rstrip("/").endswith("/metrics")


class Page:
    """The page of this process. With several API processes each writes its own to a file, and a scrape adds them up."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.shared: SharedPages | None = None
        if registry.settings.shared:
            self.shared = SharedPages(pathlib.Path(registry.settings.shared), self.own)
            self.shared.start()

    def own(self) -> str:
        """Returns the families of this process."""
        return "\n".join((*self.plugin(), self.registry.meter.metrics()))

    def plugin(self) -> Iterable[str]:
        """Yields the families of the plugin itself."""
        registry = self.registry
        name = "tokenmeter_plugin_level"
        yield f"# HELP {name} Source of the token counts of new exchanges, as a label of the one series with value 1."
        yield f"# TYPE {name} gauge"
        for level in LEVELS:
            yield f'{name}{{level="{level}"}} {int(level == registry.level)}'
        for name, help, series in (
            ("failures", "Exceptions of a part of the plugin; the first one turns the part off.",
             {'{part="engine"}': registry.engine.failures, '{part="http"}': registry.http.failures}),
            ("lost_exchanges", "Exchanges without a record, because a part of the plugin was turned off.",
             {"": registry.lost_exchanges}),
            ("unattributed_tokens", "Tokens that vLLM counted for no exchange in flight.",
             {"": registry.unattributed_tokens}),
            ("failed_key_reads", "Failed reads of the keys of jwt rules. The keys before remain in use.",
             {"": registry.tenants.failures if registry.tenants else 0}),
        ):  # fmt: skip
            yield f"# HELP tokenmeter_plugin_{name}_total {help}"
            yield f"# TYPE tokenmeter_plugin_{name}_total counter"
            for labels, value in series.items():
                yield f"tokenmeter_plugin_{name}_total{labels} {value}"

    async def serve(
        self,
        app: Callable[..., Awaitable[None]],
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Serves vLLM's page with ours behind it. Whatever fails, vLLM's page is served as it is."""
        # Without them vLLM answers in the text format, the one that the library writes and that can be summed.
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in (b"accept", b"accept-encoding")]
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        await app({**scope, "headers": headers}, receive, keep)
        try:
            messages = self.extended(messages)
        except Exception as error:
            self.registry.http.failures += 1
            logger.warning("tokenmeter: the metrics page lacks its families: %s", error)
        for message in messages:
            await send(message)

    def extended(self, messages: list[Any]) -> list[Any]:
        """Returns the messages of a response with our families in its body."""
        start = messages[0]
        fields = {name.lower(): value for name, value in start["headers"]}
        is_text = fields.get(b"content-type", b"").startswith(b"text/plain")
        if start["status"] != 200 or not is_text or b"content-encoding" in fields:
            return messages
        body = b"".join(message.get("body", b"") for message in messages[1:])
        body += (self.shared.page() if self.shared else self.own()).encode()
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        return [{**start, "headers": headers}, {"type": "http.response.body", "body": body}]


class SharedPages:
    """The pages of all API processes, as files in the directory in which they share vLLM's metrics.

    vLLM empties and removes the directory with its own files, so that pages live as long as vLLM's counters: the counts
    of an API process that ended stay. A scrape reads files only, also for its own process: a page that is newer than
    its file would let a counter go back at the next scrape, which another process may serve.
    """

    def __init__(self, folder: pathlib.Path, own: Callable[[], str]) -> None:
        self.folder, self.own = folder, own
        self.file = folder / f"tokenmeter_{os.getpid()}.prom"
        self.writing = threading.Lock()

    def start(self) -> None:
        """Writes the page from now on, in a thread that ends with the process."""
        threading.Thread(target=self.run, name="tokenmeter-page", daemon=True).start()

    def run(self) -> None:
        stop = threading.Event()
        while not stop.wait(WRITE_EVERY_SECONDS):
            try:
                self.write()
            except Exception as error:
                logger.warning("tokenmeter: metrics are no longer shared between API processes: %s", error)
                return

    def write(self) -> None:
        """Replaces the file of this process at once."""
        with self.writing:
            new = self.file.with_suffix(".new")
            new.write_text(self.own())
            new.replace(self.file)

    def page(self) -> str:
        """Returns the sum of all pages, with this process's page up to date."""
        self.write()
        return merge(file.read_text() for file in sorted(self.folder.glob("tokenmeter_*.prom")))
