# Every target creates .venv if needed and skips steps that are up to date.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
# On all cores, of which pip uses one. Without bytecode, where it is not written on import, each process compiles torch.
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
PACKAGING := pyproject.toml constraints.txt

.PHONY: help reproduce test tests fuzz test-kill test-export test-engines lint bench docs clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/core: $(PACKAGING)
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	@$(COMPILE)
	@touch $@

.venv/dev .venv/bench .venv/docs: .venv/%: .venv/core
	$(PIP) -e '.[$*]'
	@$(COMPILE)
	@touch $@

.venv/engines .venv/lightning: .venv/%: .venv/dev
	$(PIP) -e '.[$*]'
	@touch $@

reproduce: .venv/core ## Run both experiments of the paper in minutes, on bundled data.
	$(BIN)/abelnet reproduce

lint: .venv/dev ## Check style, types and import contracts.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: .venv/dev ## Run lint, all tests and docstring examples, side by side.
	@$(MAKE) --no-print-directory --jobs=2 lint tests

tests: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

fuzz: .venv/dev ## Mutate model and word-vector files 2,000 times each, learn from 500 random tables, and train 200 random banks.
	ABELNET_FUZZ=2000 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s tests/test_fuzz.py tests/test_saving.py tests/engines/test_learning.py tests/discovery/vectors/test_search.py -k "mutations or changed_file or random_tables"
	ABELNET_BANKS=200 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s tests/nn/test_bank.py -k random_banks

test-kill: .venv/dev ## Kill learn 100 times, and apply and both experiments 30 times each.
	ABELNET_KILLS=100 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s tests/test_kill.py tests/experiments/graphs/test_comparison.py tests/experiments/sets/test_comparison.py tests/experiments/synthetic/test_comparison.py tests/experiments/analogies/test_experiment.py

test-export: .venv/lightning ## Export every bijection with every law, run all checks of scikit-learn, and train in Lightning: about an hour.
	ABELNET_EXPORT=all OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal tests/integrations/test_onnx.py tests/discovery/test_estimator.py tests/integrations/test_lightning.py

test-engines: .venv/engines ## Run every law as SQL on five engines, a Dask cluster, torchrun, and a search on PostgreSQL.
	ABELNET_ENGINES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s tests/sql tests/engines/test_dask.py tests/training/test_ranks.py tests/training/test_storage.py

bench: .venv/bench ## Run all benchmarks, one after another.
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script; done

docs: .venv/docs ## Build the documentation into docs/_build.
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

clean: ## Remove the environment and all build artifacts.
	rm -rf .venv docs/_build dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
