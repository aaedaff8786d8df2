"""What the configuration means for the rules in the core, which see policies and no configuration."""

from __future__ import annotations

import msgspec

from kbd.config.sections import ENTRY_TYPES, BaseConfig, Config
from kbd.core.decay import DecayPolicy


def decay_policy(config: Config, base: BaseConfig) -> DecayPolicy:
    """Return the limits of decay in a base."""
    return DecayPolicy(**msgspec.structs.asdict(config.decay), evergreen=base.evergreen)


def entry_types(config: Config) -> frozenset[str]:
    """Return the types that an entry may have, lower case."""
    return ENTRY_TYPES | frozenset(config.types)
