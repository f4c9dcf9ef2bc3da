"""Tenant rules."""
from collections.abc import Mapping
from ctypes import byref

from tokenmeter._library import Handle, KeySource, Library, slice_of
from tokenmeter.errors import Status
from tokenmeter.handle import Owned


class Tenants(Owned):
    """Tenant rules with their keys. A meter that uses them keeps them."""

    def __init__(self, library: Library, yaml: bytes, hash_key: bytes, keys: Mapping[str, bytes]) -> None:
        handle, sources = Handle(0), [KeySource(slice_of(name), slice_of(jwks)) for name, jwks in keys.items()]
        array = (KeySource * len(sources))(*sources) if sources else None
        read = library.tm_tenants_read
        library.check(read(slice_of(yaml), slice_of(hash_key), array, len(sources), byref(handle)))
        super().__init__(library, handle, library.tm_tenants_free)

    def key_missed(self, source: str) -> bool:
        """Returns true if a token needed a key that the source lacks, since the last call."""
        status = self._library.tm_tenants_key_missed(self._handle, slice_of(source))
        return self._library.check(status) == Status.OK


def key_sources(library: Library, yaml: bytes) -> list[str]:
    """Returns the names of the sources of keys that the rules need: files, and URLs with `://`."""
    names = library.text(library.tm_tenants_key_sources, slice_of(yaml))
    return [] if names is None else names.split("\n")
