"""Helpers of all public functions: errors of the package, and sizes as numbers or text."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from nearfar.errors import from_native
from nearfar.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Raise errors of the native core as the package's own."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from nearfar._native import NativeError

        try:
            return function(*args, **kwargs)
        except NativeError as error:
            raise from_native(error) from None

    return call


def size_in_bytes(size: int | str | None) -> int | None:
    """Return a size in bytes, from a number or from text such as ``256MiB``."""
    return parse_size(size) if isinstance(size, str) else size
