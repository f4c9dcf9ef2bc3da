"""The metrics page on a port of its own: SGLang's own page shows nothing but its processes' files."""
import http.server
import logging
import threading
from collections.abc import Callable

logger = logging.getLogger("tokenmeter")


def serve(address: str, page: Callable[[], str]) -> http.server.ThreadingHTTPServer:
    """Serves the page at `HOST:PORT` from a thread that ends with the process."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            body = page().encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            logger.debug(format, *args)

    host, _, port = address.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
    threading.Thread(target=server.serve_forever, name="tokenmeter-page", daemon=True).start()
    return server
