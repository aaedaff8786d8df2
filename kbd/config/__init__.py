"""The configuration: where it lives, what its keys are, and every fault of it at once.

    sections   the keys, as frozen structs with types, ranges and defaults
    tree       YAML as text with a line for each value
    reading    tree → structs, key by key
    checks     what no single key shows
    loading    all of it for one file
    builtin    the configuration without a file
    locate     the places of the system
"""

from kbd.config.builtin import default_config, write_templates
from kbd.config.loading import load_config, parse_config
from kbd.config.locate import data_dir, find_config, state_dir, state_path, usual_config
from kbd.config.sections import (
    BaseConfig,
    Config,
    DecayConfig,
    EvidenceConfig,
    GraphConfig,
    MatchConfig,
    ScanConfig,
    SourceConfig,
    WriteConfig,
)

__all__ = [
    "BaseConfig",
    "Config",
    "DecayConfig",
    "EvidenceConfig",
    "GraphConfig",
    "MatchConfig",
    "ScanConfig",
    "SourceConfig",
    "WriteConfig",
    "data_dir",
    "default_config",
    "find_config",
    "load_config",
    "parse_config",
    "state_dir",
    "state_path",
    "usual_config",
    "write_templates",
]
