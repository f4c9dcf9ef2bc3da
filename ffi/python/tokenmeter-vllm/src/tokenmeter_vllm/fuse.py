"""A fuse: the first exception of a part turns that part off, and nothing else."""
import logging
from collections.abc import Callable

logger = logging.getLogger("tokenmeter")


class Fuse:
    """The state of one part of the plugin. A part asks `whole` before its work, and calls `blow` on an exception."""

    def __init__(self, part: str, *off: Callable[[], None]) -> None:
        self.part, self.off, self.whole, self.failures = part, list(off), True, 0

    def blow(self, error: Exception) -> None:
        """Counts the exception; the first one is logged and turns the part off. Never raises."""
        self.failures += 1
        if self.whole:
            self.whole = False
            logger.error("tokenmeter: %s is off after an error; requests go on", self.part, exc_info=error)
            for step in self.off:
                try:
                    step()
                except Exception:
                    logger.exception("tokenmeter: %s could not be removed; it passes calls through", self.part)
