"""What kbd does without a configuration: one base and one folder of logs, made from templates."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

from kbd.config.paths import resolve_base, resolve_source
from kbd.config.sections import BaseConfig, Config, SourceConfig
from kbd.errors import FileUnwritable

LESSONS = "knowledge/lessons.md"


def default_config(folder: Path) -> Config:
    """Return the built-in configuration: base `knowledge/*.md` and text source `logs/` in `folder`."""
    root = folder.absolute()
    base = BaseConfig(name="lessons", files=("knowledge/*.md",))
    source = SourceConfig(name="logs", path="logs", format="text")
    return Config(bases=(resolve_base(base, root),), sources=(resolve_source(source, root),), root=root)


def write_templates(folder: Path, today: date) -> list[Path]:
    """Make what the built-in configuration reads, and return what was made.

    Idempotent. Nothing that is there is changed, and no example is put beside knowledge that is there already. The
    example entries are dated `today`: undated ones would count as infinitely old.

    Raises:
        FileUnwritable: a folder or the file cannot be made.
    """
    knowledge, logs = folder / "knowledge", folder / "logs"
    made = [path for path in (knowledge, logs) if not os.path.lexists(path)]
    try:
        for path in made:
            path.mkdir(parents=True)
        if knowledge in made:
            made[made.index(knowledge)] = folder / LESSONS
            with open(folder / LESSONS, "xb") as file:
                template = Path(__file__).with_name("lessons.template").read_bytes()
                file.write(template.replace(b"YYYY-MM-DD", today.isoformat().encode()))
    except OSError as error:
        raise FileUnwritable(f"cannot be made ({error.strerror})", where=str(error.filename or folder)) from error
    return made
