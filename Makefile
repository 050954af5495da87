# Every target makes .venv by itself and skips what is already done.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
PACKAGING := pyproject.toml constraints.txt

.PHONY: help reproduce test lint bench docs clean

help: ## Show the targets.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/core: $(PACKAGING)
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	@touch $@

.venv/dev .venv/bench .venv/docs: .venv/%: .venv/core
	$(PIP) -e '.[$*]'
	@touch $@

reproduce: .venv/core ## Learn operations from synthetic multisets; print their laws and their errors.
	$(BIN)/abelnet reproduce

lint: .venv/dev ## Check style, types and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## Check style and types, then run all tests and docstring examples.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

bench: .venv/bench ## Run every benchmark, one after another.
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script; done

docs: .venv/docs ## Build the documentation into docs/_build.
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

clean: ## Remove the environment and all that was built.
	rm -rf .venv docs/_build dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
