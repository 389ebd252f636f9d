# Each target sets itself up in .venv. Settings:
#   PYTHON=...              the interpreter to make .venv from (3.11 or newer; found where not given)
#   SMITH_SYSTEM_SITE=1     use the torch and triton of that interpreter, as on a ROCm machine; none is installed
#   PIP_ARGS=...            more arguments for pip, such as an index or folder with the CPU build of torch
#   JOBS=2                  test processes
#   T=...                   more arguments for pytest, such as T='tests/git -k trees'

VENV := .venv
BIN := $(VENV)/bin
PIP_ARGS ?=
JOBS ?= 2
T ?=
TORCH := torch==2.13.0

PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)
# The first interpreter that is new enough: usual names, then those that pyenv keeps.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 $(wildcard $(PYENV)/versions/3.1*/bin/python3); do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

ifeq ($(SMITH_SYSTEM_SITE),1)
STAMP := $(VENV)/.installed-system
SYSTEM := true
VENV_ARGS := --system-site-packages
INSTALL := -e '.[dev]'
# What belongs to an installed torch stays as it is; the rest is as tested.
NOT_PINNED := ^(torch|triton|numpy|scipy|sympy|mpmath|networkx|fsspec|filelock|jinja2|markupsafe|typing_extensions)==
else
STAMP := $(VENV)/.installed
SYSTEM := false
VENV_ARGS :=
INSTALL := '$(TORCH)' -e '.[kernels,dev]'
NOT_PINNED := ^$$
endif

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-real test-chaos redteam fuzz lint bench bench-aa bench-fairness bench-freezing bench-gateway bench-knowledge bench-ledger bench-mining bench-report clean bench-validation
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | sort | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: $(STAMP) ## install smith and its tools into .venv
	@:

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv was found; name one: make PYTHON=..." >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version) (minutes the first time)"
	@rm -f $(VENV)/.installed $(VENV)/.installed-system
	@grep -qx 'include-system-site-packages = $(SYSTEM)' $(VENV)/pyvenv.cfg 2>/dev/null \
	  && $(BIN)/python -m pip --version >/dev/null 2>&1 \
	  || $(PYTHON) -m venv --clear $(VENV_ARGS) $(VENV)
	@grep -viE '$(NOT_PINNED)' constraints.txt > $(VENV)/constraints.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check $(PIP_ARGS) -c $(VENV)/constraints.txt $(INSTALL)
	@touch $@

# Spread over processes by file, so that a module's fixtures are made once; plain pytest where xdist is missing.
PYTEST = $(BIN)/python -m pytest $$($(BIN)/python -c 'import xdist' 2>/dev/null && printf -- '-n %s --dist loadfile --no-loadscope-reorder' $(JOBS))

demo: $(STAMP) ## the whole way on a small upstream, on any CPU, in a few minutes
	@$(BIN)/smith demo

test: $(STAMP) ## all tests but the minutes-long ones
	@$(PYTEST) -m 'not slow and not real' $(T)

test-all: $(STAMP) ## all tests, the minutes-long ones too
	@$(PYTEST) -m 'not real' $(T)

test-real: $(STAMP) ## tests on clones of real upstreams, named by SMITH_REAL_MIRRORS
	@test -n "$(SMITH_REAL_MIRRORS)" || { echo "make: SMITH_REAL_MIRRORS does not name a folder of clones" >&2; exit 1; }
	@$(PYTEST) --dist load -m real $(T)

test-chaos: $(STAMP) ## five minutes of writers killed at random points on one ledger
	@$(BIN)/python -m pytest -s -m slow tests/ledger $(T)

redteam: $(STAMP) ## every known reward hack and honest work on the panel PANEL=sample; an hour and more (TASKS="a b" for some)
	@$(BIN)/smith redteam $(if $(TASKS),$(TASKS),--panel $(or $(PANEL),sample)) --jobs $(JOBS)

fuzz: $(STAMP) ## patches, frames and overlay, thousands of examples each; frames by coverage where atheris is installed
	@$(BIN)/python -m pytest -q --hypothesis-profile=fuzz tests/fuzz $(T)
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then \
	  $(BIN)/python tests/fuzz/fuzz_frames.py -max_total_time=$(or $(SECONDS),120); \
	else echo "fuzz: atheris is not installed (pip install smith[fuzz]): hypothesis alone"; fi

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy

bench-mining: $(STAMP) ## mining of CLONE against plain git, and against the list YARDSTICK; without CLONE: growth
	@$(BIN)/python benchmarks/mining.py $(CLONE) $(if $(YARDSTICK),--yardstick $(YARDSTICK))

bench-fairness: $(STAMP) ## names that hidden tests need and instructions lack: CASES (JSON lines) of CLONES (a folder)
	@test -n "$(CASES)" -a -n "$(CLONES)" || { echo "make: give CASES=FILE and CLONES=DIR" >&2; exit 1; }
	@$(BIN)/python benchmarks/fairness.py $(CASES) $(CLONES)

bench-report: $(STAMP) ## reading and rendering a drawn run (TASKS=200 ATTEMPTS=5)
	@$(BIN)/python benchmarks/report.py $(if $(TASKS),--tasks $(TASKS)) $(if $(ATTEMPTS),--attempts $(ATTEMPTS))

bench-freezing: $(STAMP) ## freezing the newest candidates of CLONE (NAME=owner/name, COUNT=20): time and size
	@test -n "$(CLONE)" || { echo "make: CLONE does not name a repository" >&2; exit 1; }
	@$(BIN)/python benchmarks/freezing.py $(CLONE) $(if $(NAME),--name $(NAME)) $(if $(COUNT),--count $(COUNT))

bench-validation: $(STAMP) ## a validation of SECONDS=60 of tests on each side, against pytest by hand; JOBS=2 against one
	@$(BIN)/python benchmarks/validation.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(REPEATS),--repeats $(REPEATS))
	@$(BIN)/python benchmarks/side_by_side.py --jobs $(JOBS)

bench-aa: $(STAMP) ## a start timed against itself, TRIALS=100 times: how often the answer is `same` (PR=24, FOREIGN=0.1)
	@$(BIN)/python benchmarks/same.py $(if $(TRIALS),--trials $(TRIALS)) $(if $(PR),--pr $(PR)) $(if $(FOREIGN),--foreign $(FOREIGN)) \
		$(if $(LIMIT),--limit $(LIMIT))

bench-knowledge: $(STAMP) ## checking and searching a knowledge base that is made up (CARDS=10000)
	@$(BIN)/python benchmarks/knowledge.py $(if $(CARDS),--cards $(CARDS))

bench-ledger: $(STAMP) ## what a paid call costs in the ledger, against bare SQLite
	@$(BIN)/python benchmarks/ledger.py

bench-gateway: $(STAMP) ## what the gateway adds to a call and to the first byte of a stream
	@$(BIN)/python benchmarks/gateway.py

bench: $(STAMP) ## time what must be fast
	@test -f benchmarks/run.py || { echo "make: there is no benchmarks/run.py" >&2; exit 1; }
	@$(BIN)/python benchmarks/run.py

clean: ## remove caches and build products; .venv and .smith stay
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find smith tests -name __pycache__ -type d -prune -exec rm -rf {} +
