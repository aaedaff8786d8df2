"""The short handle by which an agent can name an entry."""

from __future__ import annotations

import hashlib

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_DIGEST_BITS = 256


def handle(norm: str, length: int = 6) -> str:
    """Return `k-` and `length` characters for a normalised title.

    They are the first `5 * length` bits of the SHA-256 of the title in UTF-8, five bits a character, most
    significant first. A longer handle begins with the shorter one.
    """
    # surrogatepass: titles from files with invalid UTF-8 hold lone surrogates.
    digest = int.from_bytes(hashlib.sha256(norm.encode("utf-8", "surrogatepass")).digest(), "big")
    shifts = range(_DIGEST_BITS - 5, _DIGEST_BITS - 5 * length - 1, -5)
    return "k-" + "".join(_ALPHABET[digest >> shift & 31] for shift in shifts)
