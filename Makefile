# Everything a fresh machine with Python 3.11+, git and make needs. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell find skymesh -name '*_kernels.py') $(addprefix skymesh/algorithms/,kernel.py frames.py simd.py standing_arrays.py) skymesh/cluster/warm.py

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup run test check lint types bench sweep plots docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.kernels  ## virtual environment, packages, compiled kernels

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skymesh needs Python 3.11 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.kernels: $(VENV)/.installed $(KERNELS)
	$(BIN)/python -m skymesh.cluster.warm
	@touch $@

run: setup  ## a live board over generated streams; ends by itself
	$(BIN)/skymesh demo

check: setup lint types  ## lint, format, types, unit tests (under three minutes)
	SKYMESH_CASES=2000 $(BIN)/pytest -n 2 --dist worksteal

test: setup lint types  ## everything: checks, all tests, 20,000 generated cases
	SKYMESH_CASES=20000 $(BIN)/pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: setup
	$(BIN)/mypy

# Only the benchmarks and the pictures need DuckDB and matplotlib.
$(VENV)/.bench: $(VENV)/.installed
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --editable '.[bench]'
	@touch $@

bench: setup $(VENV)/.bench  ## the benchmarks, with tables and JSON in out/
	$(BIN)/python -m benchmarks

sweep: setup $(VENV)/.bench  ## cost and space over the ranges of the grid paper, for `make plots`
	$(BIN)/python -m benchmarks.sweep

plots: setup $(VENV)/.bench  ## the pictures in docs/plots/, from the last sweep
	$(BIN)/python -m benchmarks.plots

docs: setup  ## the pictures and the schema that the documentation shows
	$(BIN)/skymesh schema > configs/skymesh.schema.json
	$(BIN)/skymesh demo --seconds 12 --svg docs/demo.svg

clean:  ## remove what the other targets made
	rm -rf $(VENV) out .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
