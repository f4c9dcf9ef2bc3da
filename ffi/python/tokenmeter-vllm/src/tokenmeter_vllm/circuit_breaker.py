"""A circuit breaker: the first exception of a part turns that part off, and nothing else."""
import logging
from collections.abc import Callable

logger = logging.getLogger("tokenmeter")


class CircuitBreaker:
    """The state of one part of the plugin. A part checks `is_on` before its work, and calls `trip` on an exception."""

    def __init__(self, part: str, *on_trip: Callable[[], None]) -> None:
        self.part, self.on_trip, self.is_on, self.failures = part, list(on_trip), True, 0

    def trip(self, error: Exception) -> None:
        """Counts the exception; the first one is logged and turns the part off. Never raises."""
        self.failures += 1
        if self.is_on:
            self.is_on = False
            logger.error("tokenmeter: %s is off after an error; requests go on", self.part, exc_info=error)
            for step in self.on_trip:
                try:
                    step()
                except Exception:
                    logger.exception("tokenmeter: %s could not be removed; it passes calls through", self.part)
