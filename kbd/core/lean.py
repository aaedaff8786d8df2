"""Values of which each record of a transcript gives several: frozen for the type checker, cheap to make.

At run time a frozen dataclass sets each field by name through `object.__setattr__`, which for the values of a record
took a twelfth of all reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as lean
else:
    from dataclasses import dataclass

    def lean(**given: Any) -> Any:
        """Make a dataclass as `dataclass(frozen=True, …)` does, equal, hashed and slotted alike, but not frozen."""
        return dataclass(**given | {"frozen": False, "unsafe_hash": True})


__all__ = ["lean"]
