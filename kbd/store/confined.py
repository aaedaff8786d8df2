"""Paths that a caller names: resolved first, with `~`, `..` and symbolic links, and then held to their root."""

from __future__ import annotations

import os

from kbd.errors import Refused


def confined(path: str, root: str, what: str) -> str:
    """Return the real path of what a caller names, relative to `root` if it is not absolute.

    Args:
        path: as given; need not exist.
        root: the folder that it must lie in.
        what: names it in the message, such as `the log`.

    Raises:
        Refused: it lies outside of the root, or is no path at all.
    """
    if not path.strip() or "\0" in path:
        raise Refused(f"{what} needs a path", hint="name a file")
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, os.path.expanduser(path)))
    if os.path.commonpath([real, real_root]) != real_root:
        hint = f"name a file in {real_root}, or work in the folder above it"
        raise Refused(f"{what} lies outside of its root", where=path, hint=hint)
    return real
