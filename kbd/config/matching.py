"""What the configuration means for matching; apart from the other policies, since it brings the matcher with it."""

from __future__ import annotations

import msgspec

from kbd.config.policies import entry_types
from kbd.config.sections import Config
from kbd.core.cite import MatchPolicy


def match_policy(config: Config) -> MatchPolicy:
    """Return what counts as a citation."""
    return MatchPolicy(**msgspec.structs.asdict(config.match), types=entry_types(config))
