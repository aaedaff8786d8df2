"""How a graph of a million operations performs: `python bench/graph.py` writes `bench/record/graph.json`.

Answers are checked before anything is timed. The naive way beside it is that of the public `ontology` skill, written
anew from its description: every command replays the whole log with `json.loads`, and a create appends without a check.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbd.core.operations import Operation
from kbd.core.schema_default import DEFAULT_SCHEMA
from kbd.service.graph.changing import Request, change
from kbd.service.graph.reading import Place, opened
from kbd.service.graph.schemas import load_schema

OPERATIONS = 1_000_000
RECORD = Path(__file__).resolve().parent / "record" / "graph.json"
STAMP = "2026-01-31T09:30:00.000000+00:00"


def write_log(path: Path, operations: int) -> tuple[int, int]:
    """Write a log of creates, updates and relations in equal parts; return the numbers of entities and relations."""
    people, entities, relations = 1000, 0, 0
    with path.open("w") as out:
        for number in range(people):
            out.write(_line("create", entity=_entity(f"pers_{number}", "Person", {"name": f"Person {number}"})))
        entities = people
        for number in range(operations - people):
            task = number // 3
            match number % 3:
                case 0:
                    properties = {
                        "title": f"Task number {task} of many",
                        "status": "open",
                        "assignee": f"pers_{task % people}",
                    }
                    out.write(_line("create", entity=_entity(f"task_{task:08x}", "Task", properties)))
                    entities += 1
                case 1:
                    out.write(_line("update", id=f"task_{task:08x}", properties={"status": "done"}))
                case _:
                    relations += 1
                    ends = {"from": f"task_{task:08x}", "rel": "assigned_to", "to": f"pers_{task % people}"}
                    out.write(_line("relate", **ends, properties={}))
    return entities, relations


def _line(op: str, **fields: Any) -> str:
    return json.dumps({"op": op, **fields, "timestamp": STAMP}) + "\n"


def _entity(ident: str, type_: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"id": ident, "type": type_, "properties": properties, "created": STAMP, "updated": STAMP}


def naive_replay(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Replay a log as the skill does, without `unrelate`, which rebuilds its list each time and is not in this log."""
    entities: dict[str, Any] = {}
    relations: list[dict[str, Any]] = []
    with path.open() as lines:
        for line in lines:
            record = json.loads(line)
            match record["op"]:
                case "create":
                    entities[record["entity"]["id"]] = record["entity"]
                case "update":
                    entities[record["id"]]["properties"].update(record["properties"])
                case "relate":
                    relations.append(record)
    return entities, relations


def cpu_seconds() -> float:
    """Return the processor time of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(call: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Return median and worst of some rounds, and their processor time, children's included, in milliseconds."""
    times, cpu_times = [], []
    for _ in range(rounds):
        start, cpu_start = time.perf_counter(), cpu_seconds()
        call()
        times.append((time.perf_counter() - start) * 1000)
        cpu_times.append((cpu_seconds() - cpu_start) * 1000)
    return {
        "median_ms": round(statistics.median(times), 3),
        "worst_ms": round(max(times), 3),
        "cpu_median_ms": round(statistics.median(cpu_times), 3),
        "rounds": rounds,
    }


def main() -> int:
    """Measure, print and record."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        log, schema_path = folder / "graph.jsonl", folder / "schema.yaml"
        schema_path.write_text(DEFAULT_SCHEMA)
        wanted = write_log(log, OPERATIONS)
        results = measure(Place(str(log), str(schema_path), folder / "state"), wanted)
        results["log_mib"] = round(log.stat().st_size / 2**20, 1)
    record = {
        "environment": {
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        },
        "day": datetime.now(UTC).date().isoformat(),
        "operations": OPERATIONS,
        "results": results,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 0


def measure(place: Place, wanted: tuple[int, int]) -> dict[str, Any]:
    """Return the results of kbd and of the naive way, once both give the right answers."""
    schema = load_schema(place.schema)

    def read() -> str:
        with opened(place, schema) as graph:
            entity = graph.view.entity("task_00000005")
            assert entity is not None
            return str(entity.properties["status"])

    def read_cold() -> None:
        shutil.rmtree(place.state_dir, ignore_errors=True)
        read()

    cold = timed(read_cold, 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    with opened(place, schema) as graph:
        found = sum(1 for _ in graph.own.entities()), sum(1 for _ in graph.own.edges())
    assert found == wanted, (found, wanted)
    assert read() == "done"
    warm = timed(read, 50)
    number = iter(range(10**9))

    def append() -> None:
        properties = {"title": "A new task", "assignee": "pers_7"}
        made = Operation("create", f"new_{next(number)}", "Task", properties, at=STAMP)
        assert len(change(place, schema, Request(lambda _: [made], "p")).operations) == 1

    appended = timed(append, 200)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [
        sys.executable,
        "-m",
        "kbd",
        "--state-dir",
        str(place.state_dir),
        "graph",
        "get",
        "--id",
        "task_00000005",
    ]
    command += ["--graph", "graph.jsonl", "--schema", "schema.yaml"]
    folder = os.path.dirname(place.log)
    whole = timed(lambda: subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True), 5)
    entities, relations = naive_replay(Path(place.log))
    assert (len(entities) - 200, len(relations)) == wanted
    return {
        "cold_replay": cold,
        "peak_rss_mib": peak,
        "warm_read": warm,
        "validated_append": appended,
        "whole_process_get": whole,
        "naive_read_or_checked_append": timed(lambda: naive_replay(Path(place.log)), 3),
    }


if __name__ == "__main__":
    sys.exit(main())
