# Every target creates .venv if needed and skips steps that are up to date.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
# On all cores, of which pip uses one. Without bytecode, where it is not written on import, each process compiles torch.
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
PACKAGING := pyproject.toml constraints.txt

.PHONY: help reproduce reproduce-full test tests fuzz test-kill test-export test-engines test-wheel test-browser lint bench dist docs clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/core: $(PACKAGING)
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	@$(COMPILE)
	@touch $@

.venv/dev .venv/bench .venv/dist .venv/docs .venv/tune: .venv/%: .venv/core
	$(PIP) -e '.[$*]'
	@$(COMPILE)
	@touch $@

.venv/browser .venv/engines .venv/lightning: .venv/%: .venv/dev
	$(PIP) -e '.[$*]'
	@touch $@

reproduce: .venv/core ## Run the paper's experiments in minutes on data that ships, and write report/index.html.
	$(BIN)/abelnet reproduce

reproduce-full: .venv/tune ## Run them in full, about an hour; with VECTORS=FILE BATS=FOLDER also the analogies of the paper.
	$(BIN)/abelnet synthetic --out results/synthetic
	$(if $(VECTORS)$(BATS),$(BIN)/abelnet analogies run $(if $(VECTORS),--vectors "$(VECTORS)") $(if $(BATS),--bats "$(BATS)") --out results/analogies)

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

test-export: .venv/lightning ## Export every bijection with every law and every set model, run all checks of scikit-learn, and train in Lightning: about an hour.
	ABELNET_EXPORT=all OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal tests/integrations/test_onnx.py tests/nn/test_sets.py tests/discovery/test_estimator.py tests/integrations/test_lightning.py

test-engines: .venv/engines ## Run every law as SQL on five engines, a Dask cluster, torchrun, and a search on PostgreSQL.
	ABELNET_ENGINES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -s -rs tests/sql tests/engines/test_dask.py tests/engines/test_cluster.py tests/training/test_ranks.py tests/training/test_storage.py

test-wheel: dist ## Install the wheel with core dependencies only into a fresh environment, and run every command.
	rm -rf build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	build/wheel/bin/python tools/try_wheel.py

AXE := axe-core-4.14.0
build/$(AXE).min.js:
	@mkdir -p build
	npm pack --silent --pack-destination build $(subst axe-core-,axe-core@,$(AXE))
	tar -xzOf build/$(AXE).tgz package/axe.min.js > $@

# Without a network but for the machine itself, where the system allows that.
OFFLINE = $(shell unshare -rn true 2>/dev/null && echo "unshare -rn sh -c 'ip link set lo up && exec \"\$$@\"' offline")

test-browser: .venv/browser build/$(AXE).min.js ## Use the page in Chromium: Debian's chromium and chromium-driver.
	ABELNET_BROWSER=$(CURDIR)/build/$(AXE).min.js OMP_NUM_THREADS=1 $(OFFLINE) $(BIN)/python -m pytest -q -s tests/browser

bench: .venv/bench ## Run all benchmarks, one after another.
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script; done

dist: .venv/dist ## Build the wheel and the source distribution into dist.
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

docs: .venv/docs ## Build the documentation into docs/_build.
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

clean: ## Remove the environment and all build artifacts.
	rm -rf .venv docs/_build dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
