"""The cache of machine code between processes, by a digest of its inputs.

A cache that cannot be used (a folder that cannot be written, a full disk, a damaged file) costs time and never the
build: the process prints one warning and continues without it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import diskcache

from stepladder.runtime.errors import reason
from stepladder.runtime.resources import cache_dir

Value = dict[str, str | int]

_BYTES = 256 * 1024 * 1024

_has_warned = False
# The cache that was used last, and its database: opening it takes longer than most accesses.
_opened: tuple[tuple[str, int], diskcache.Cache] | None = None


def _cache(folder: str) -> diskcache.Cache:
    """Returns the cache in a folder, opened; it stays open as long as its database is the same file."""
    global _opened
    if _opened is not None and _opened[0] == (folder, _database(folder)):
        return _opened[1]
    close()
    cache = diskcache.Cache(folder, disk=diskcache.JSONDisk, size_limit=_BYTES)
    _opened = (folder, _database(folder)), cache
    return cache


def _database(folder: str) -> int:
    """Returns the number of the file that the cache of a folder is in; 0 where there is none."""
    try:
        return os.stat(os.path.join(folder, diskcache.core.DBNAME)).st_ino
    except OSError:
        return 0


def close() -> None:
    """Closes the cache that is open, where one is."""
    global _opened
    if _opened is not None:
        cache, _opened = _opened[1], None
        with contextlib.suppress(Exception):  # of a damaged database
            cache.close()


def _use(access: Callable[[diskcache.Cache], Value | None]) -> Value | None:
    """Returns what an access to the cache gives; None, after one warning in a process, where it fails."""
    global _has_warned
    folder = str(cache_dir())
    try:
        return access(_cache(folder))
    except Exception as error:  # what is damaged raises errors of SQLite, zlib, json and pickle, and anything else
        close()
        if not _has_warned:
            _has_warned = True
            print(
                f"warning: the cache of machine code in '{folder}' cannot be used ({reason(error)}); compiling "
                f"without it\nnote: STEPLADDER_CACHE_DIR names another folder; a damaged one can be removed",
                file=sys.stderr,
            )
        return None


def lookup(key: str, kinds: dict[str, type]) -> Value | None:
    """Returns the value stored under a key, or None where there is none or the cache cannot be used.

    Args:
        key: of `store`.
        kinds: name -> type of what a value holds; another value counts as damaged.
    """

    def read(cache: diskcache.Cache) -> Value | None:
        value = cache.get(key)
        if value is not None and (type(value) is not dict or {name: type(value[name]) for name in value} != kinds):
            raise ValueError("an entry is damaged")
        return value

    return _use(read)


def store(key: str, value: Value) -> None:
    """Stores a value of strings and numbers under a key, where the cache can be used.

    Args:
        key: text that all that the value depends on makes unique.
        value: name -> text or number.
    """

    def write(cache: diskcache.Cache) -> None:
        cache.set(key, value)

    _use(write)
