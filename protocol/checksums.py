"""CRC32C, the checksum of record batches.

The package ``crc32c`` looks up its own version and imports a command line, and with them 40 modules of the standard
library, at the start of every server. Where its extension is a file of its own, that alone is loaded.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

Checksum = Callable[..., int]
"""Anything that holds bytes, and the checksum of what is before them (0) -> the checksum of both."""


def _extension() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if not spec or spec.loader is None:  # in a binary it is in an archive
        from crc32c import crc32c as whole  # noqa: PLC0415

        return whole
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    checksum: Checksum = module.crc32c
    return checksum


crc32c = _extension()
