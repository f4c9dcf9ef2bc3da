"""Objects of the library, as Python owns them."""
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from tokenmeter._library import Handle, Library

Self = TypeVar("Self", bound="Owned")


class Owned:
    """An object that is freed once: by `close`, by `with`, or with its last reference."""

    _handle: Handle

    def __init__(self, library: Library, handle: Handle, free: Callable[[Handle], int]) -> None:
        self._library, self._handle, self._free = library, handle, free
        self._id: int = handle.id
        """The handle's number, for the path of a token: reading it from the structure makes an object."""

    @property
    def is_open(self) -> bool:
        """True until the object is freed."""
        return self._id != 0

    def _release(self) -> Handle:
        """Returns the handle and forgets it: whoever receives it frees it."""
        handle, self._handle, self._id = self._handle, Handle(0), 0
        return handle

    def close(self) -> None:
        """Frees the object; a second call does nothing."""
        if self.is_open:
            self._library.check(self._free(self._release()))

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # The constructor may have failed, and at exit the module's names may be gone: neither is worth a message.
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.id:
            try:
                self._free(self._release())
            except Exception:
                pass
