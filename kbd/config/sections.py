"""The keys of the configuration as frozen values: types, ranges and defaults.

Every struct below `Document` is one mapping of `config.yaml`, every field one key. The reader in
`kbd.config.reading` knows nothing else of the configuration, so a new key is one line here and one in
`config.example.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kbd.core.model import Problem

AGENTS = frozenset(
    {
        "aider",
        "antigravity",
        "claude-code",
        "cline",
        "codex",
        "continue",
        "copilot-cli",
        "cursor",
        "gemini-cli",
        "goose",
        "hermes",
        "kimi",
        "openclaw",
        "opencode",
        "pi",
        "qwen-code",
        "roo",
    }
)
ENTRY_TYPES = frozenset({"guideline", "pitfall", "decision", "model", "process"})

# Control characters and lone surrogates could not be printed on one line, or not be used in a path.
Text = Annotated[
    str,
    Meta(pattern="^[^\x00-\x1f\x7f\ud800-\udfff]+\\Z", max_length=4096, extra={"expects": "text on one line"}),
]
TypeName = Annotated[
    str,
    Meta(pattern=r"^[^\s\[\]\x00-\x1f]{2,40}\Z", extra={"expects": "one word of 2 to 40 characters"}),
]
# The marker stands between bullet and title, so it must not be able to end either.
Marker = Annotated[
    str,
    Meta(pattern=r"^[^\s\[\]*<>`_~:\x00-\x1f-]{0,8}\Z", extra={"expects": "up to 8 characters, no spaces or markup"}),
]
TimeOfDay = Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d\Z", extra={"expects": "a time such as 03:30"})]
Days = Annotated[int, Meta(ge=1, le=36_500)]
DaysOrNone = Annotated[int, Meta(ge=0, le=36_500)]
Delay = Annotated[int, Meta(ge=0, le=86_400)]
Interval = Annotated[int, Meta(ge=1, le=86_400)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class GraphConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The typed graph of a base: its event log and its schema."""

    log: Text = "ontology/graph.jsonl"
    schema: Text = "ontology/schema.yaml"


class BaseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One knowledge base. Once loaded, `files`, `relations`, `projects` and `graph` are absolute.

    Attributes:
        relations: "" only before loading; then the path given, or `.knowledge-graph.yaml` in the folder of the
            first pattern.
        projects: only sessions inside these folders count for the base; empty: all.
        evergreen: section headings or types that never fade.
    """

    name: Text
    files: tuple[Text, ...]
    relations: str = ""
    projects: tuple[Text, ...] = ()
    evergreen: tuple[Text, ...] = ()
    graph: GraphConfig | None = None


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One source: an agent (with `root`, or its default roots) or a folder (`path`) in a `format`.

    Attributes:
        name: "" only before loading; then unique.
        exclude: globs of cwd or path that are never read, `~` expanded.
    """

    name: str = ""
    agent: str | None = None
    root: Text | None = None
    path: Text | None = None
    format: Literal["text", "chat-jsonl", "otel-genai"] | None = None
    exclude: tuple[Text, ...] = ()

    @property
    def folder(self) -> str | None:
        """The one folder to read; None: the agent's default roots."""
        return self.root or self.path


class MatchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a citation."""

    count_tool_input: bool = True
    count_thinking: bool = False
    listing_min: Count = 10
    listing_fraction: Fraction = 0.2


class DecayConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How entries fade."""

    at: TimeOfDay = "03:30"
    grace_days: DaysOrNone = 30
    dormant_days: Days = 90
    archive_days: Days = 180
    durable_refs: Count = 10
    durable_factor: Annotated[int, Meta(ge=1, le=100)] = 2
    change_fraction: Fraction = 0.2
    change_min: Count = 5
    dwell_days: DaysOrNone = 30
    blind_days: Days = 14
    clock: Literal["calendar", "active"] = "calendar"
    marker: Marker = "⚠️"


class WriteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When and where counters are written."""

    counters: Literal["inline", "sidecar"] = "inline"
    every_seconds: Delay = 30
    git_every_seconds: Delay = 900
    quiet_seconds: Delay = 5
    max_wait_seconds: Delay = 300
    shared: bool = False


class ScanConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How sources are read."""

    every_seconds: Interval = 60
    max_record_mib: Annotated[int, Meta(ge=1, le=1024)] = 8
    history_days: Days = 400


class EvidenceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the words around a citation is kept, and how long."""

    snippet_chars: Annotated[int, Meta(ge=0, le=1000)] = 160
    keep_days: Days = 400


def default_stages() -> dict[str, tuple[str, ...]]:
    """Return stage → the types of entries it asks for."""
    return {
        "plan": ("decision", "model"),
        "build": ("guideline", "pitfall", "process"),
        "review": ("pitfall", "guideline"),
    }


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of `config.yaml`. Defaults hold key by key, also inside `stages`."""

    bases: tuple[BaseConfig, ...]
    sources: tuple[SourceConfig, ...] = ()
    match: MatchConfig = MatchConfig()
    decay: DecayConfig = DecayConfig()
    write: WriteConfig = WriteConfig()
    scan: ScanConfig = ScanConfig()
    evidence: EvidenceConfig = EvidenceConfig()
    types: dict[TypeName, tuple[Text, ...]] = msgspec.field(default_factory=dict)
    stages: dict[TypeName, tuple[TypeName, ...]] = msgspec.field(default_factory=default_stages)


class Config(Document, frozen=True, kw_only=True):
    """A checked configuration with absolute paths.

    Attributes:
        root: the folder that relative paths were taken against.
        path: the file it came from; None for the built-in defaults.
        digest: names file and content, so that the daemon and a command can tell whether they read the same.
        problems: what was accepted but has no effect, such as an agent that is not supported yet.
    """

    root: Path
    path: Path | None = None
    digest: str = "built-in"
    problems: tuple[Problem, ...] = ()
