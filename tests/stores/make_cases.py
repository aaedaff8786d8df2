"""Lays the cases of agents that keep their transcripts in SQLite: `python tests/stores/make_cases.py` writes them anew.

The databases are kept as they come out, as SQLite's bytes differ from version to version.
"""

import codex_cases
import goose_cases
import hermes_cases
import opencode_cases

if __name__ == "__main__":
    for agent in (opencode_cases, goose_cases, hermes_cases, codex_cases):
        agent.lay()
