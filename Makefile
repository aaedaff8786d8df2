# What a fresh clone needs: `make run` and `make test` do all set-up themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: run test bench bench-ingest torture fuzz clean

run: $(VENV)/.installed
	$(BIN)/kbd run

test: $(VENV)/.installed-test
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

bench: $(VENV)/.installed-test
	$(BIN)/pytest -o addopts="-q --strict-markers" bench --benchmark-only
	$(BIN)/python -m bench.ingest --mb 20 --runs 3

bench-ingest: $(VENV)/.installed-test
	$(BIN)/python -m bench.ingest --mb 1000 --runs 3 --entries 179 1000 10000 --monster 1000 --record

torture: $(VENV)/.installed-test
	$(BIN)/pytest -n 0 -m torture

fuzz: $(VENV)/.installed-test
	$(BIN)/pip install -q -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz.campaign --seconds 60

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks

$(VENV)/.python: Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kbd needs Python 3.11 or newer; $(PYTHON) says: $$($(PYTHON) -V 2>&1 | head -n 1); try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "$(PYTHON) has no venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml
	$(BIN)/pip install -q -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.python pyproject.toml
	$(BIN)/pip install -q -e '.[test]'
	@touch $@ $(VENV)/.installed
