"""The one decorator for compiled functions, and the bit operations NumPy lacks.

numba's own disk cache compares only the file that defines a function, so after an edit in one
module a cached caller in another keeps running the old code. Here every compiled function is
cached in one folder whose name is a hash of *all* of the package's sources: another source,
another folder. A cached file is written whole and renamed into place, carries a checksum, and is
simply compiled again when anything about it is wrong.

The folder is the first of these that can be written, and by nobody else: ``$DOMINO_ENV_CACHE_DIR``,
the user's cache directory, a private directory below the system's temporary one. Where there is
none, functions are compiled anew in each process. With ``NUMBA_DISABLE_JIT=1`` everything runs as
plain Python.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import config
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

JIT_DISABLED = bool(config.DISABLE_JIT)


def _sources(folder: Any) -> Iterator[tuple[str, Any]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            yield from ((f"{entry.name}/{name}", file) for name, file in _sources(entry))
        elif entry.name.endswith(".py"):
            yield entry.name, entry


def _hash_sources() -> str:
    digest = hashlib.sha256()
    for name, file in _sources(resources.files(__package__)):
        content = file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


_IMPORTED_SOURCES = _hash_sources()


def source_hash() -> str:
    """A hash of every Python source of the package: the cache's key, and the code version of run folders.

    As the sources were when the package was imported: those are the ones that run.
    """
    return _IMPORTED_SOURCES


def _candidate_folders() -> Iterator[Path]:
    if chosen := os.environ.get("DOMINO_ENV_CACHE_DIR"):
        yield Path(chosen)
    if sys.platform == "win32":
        if local := os.environ.get("LOCALAPPDATA"):
            yield Path(local) / "domino_env" / "cache"
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        yield Path(xdg) / "domino_env"
    elif (home := os.path.expanduser("~")) != "~":
        yield Path(home) / ".cache" / "domino_env"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    with suppress(OSError):  # there may be no directory for temporary files either
        yield Path(tempfile.gettempdir()) / f"domino_env-{user}"


def _usable(folder: Path) -> bool:
    """Whether files can be written to `folder` and nobody else may put any there (they hold code)."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if not hasattr(os, "getuid"):
            return True
        status = folder.stat()
        return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    except OSError:
        return False


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """The folder that this version of the package keeps compiled functions in; None if there is none."""
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    version = f"{source_hash()}-{python}-{platform.machine()}-numba{numba.__version__}"
    for folder in _candidate_folders():
        if _usable(folder) and _usable(folder / version):
            return folder / version
    return None


class _PackageCache(FunctionCache):  # type: ignore[misc]
    """One file for each (function, signature, processor, compiler setting); see the module's docstring."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(cache_folder())

    def flush(self) -> None:
        """Nothing to do: another source hash is another folder."""

    def _file(self, signature: Any, codegen: Any) -> Path | None:
        folder = cache_folder()
        if folder is None:
            return None
        settings = (config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT)
        key = hashlib.sha256(repr((signature, codegen.magic_tuple(), settings)).encode()).hexdigest()[:20]
        return folder / f"{self._name}-{key}.bin"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        file = self._file(sig, target_context.codegen())
        if not self._enabled or file is None:
            return None
        try:
            data = file.read_bytes()
            if hashlib.sha256(data[32:]).digest() != data[:32]:
                return None
            return numba.core.compiler.CompileResult._rebuild(target_context, *pickle.loads(data[32:]))
        except Exception:  # whatever is wrong with a cached file, compiling again is the answer
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        file = self._file(sig, data.codegen)
        if not self._enabled or file is None or any(not lifted.can_cache for lifted in data.lifted):
            return
        payload = pickle.dumps(data._reduce())
        with suppress(OSError):  # a full disk or a folder made read-only: the cache is a convenience
            # What was imported before an edit must not be kept as what the edited sources compile to.
            if _hash_sources() == source_hash():
                _write_whole(file, hashlib.sha256(payload).digest() + payload)


def _write_whole(file: Path, content: bytes) -> None:
    """Write a file so that other processes see all of it or nothing."""
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        try:
            part.write(content)
            part.close()
            os.replace(part.name, file)
        except OSError:
            os.unlink(part.name)
            raise


def jit(function: F) -> F:
    """Compile `function` with numba on first call, without the GIL, cached as the module's docstring says."""
    return _compiled(function, inline="never")


def jit_inline(function: F) -> F:
    """The same for a function to be copied into its callers, for one that passes arrays on where it counts.

    numba counts the references to each array that a call is given, atomically: two counts take as
    long as a dozen stores.
    """
    return _compiled(function, inline="always")


def _compiled(function: F, inline: str) -> F:
    dispatcher = numba.njit(nogil=True, error_model="numpy", inline=inline)(function)
    if not JIT_DISABLED:
        dispatcher._cache = _PackageCache(function)
    return dispatcher  # type: ignore[no-any-return]


if JIT_DISABLED:

    def popcount(word: Any) -> int:
        """The number of one bits of a uint64."""
        return int(word).bit_count()

    def lowest_bit(word: Any) -> int:
        """The position of the lowest one bit of a uint64; 64 if there is none."""
        word = int(word)
        return (word & -word).bit_length() - 1 if word else 64

else:

    @intrinsic
    def popcount(typing_context, word):  # type: ignore[no-untyped-def]
        """The number of one bits of a uint64."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.ctpop(args[0])

        return types.int64(types.uint64), codegen

    @intrinsic
    def lowest_bit(typing_context, word):  # type: ignore[no-untyped-def]
        """The position of the lowest one bit of a uint64; 64 if there is none."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.cttz(args[0], context.get_constant(types.boolean, False))

        return types.int64(types.uint64), codegen
