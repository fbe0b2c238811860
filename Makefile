# The commands of the project. On a machine with Python 3.11 and nothing else, `make demo` and `make test` do the rest.
PYTHON ?= $(or $(shell command -v python3.11),python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Tests and the demonstration start many processes: the first keeps what it compiled for the others.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test lint check hooks bench peers audit docs clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## make .venv from constraints.txt, with everything

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "make: $(PYTHON) not found; install Python 3.11 or say make PYTHON=/path/to/python" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip setuptools wheel hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[dev,all]'
	@touch $(STAMP)

demo: install ## several parties, exact and private methods side by side: a table and demo/report.html
	$(BIN)/tacit demo --out demo

# Pages are tested in a real browser. Where it cannot be installed, those tests skip and say so.
BROWSER := $(VENV)/.browser
$(BROWSER): $(STAMP)
	@command -v chromium >/dev/null 2>&1 || { echo "make: installing chromium for the tests of the pages"; \
	  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null; } \
	  || echo "make: chromium is not here and cannot be installed; install it to test the pages too" >&2
	@touch $(BROWSER)

test: lint $(BROWSER) ## format, lint, types and the whole suite, with its coverage and its slowest tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations=20 --cov

lint: install ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests

check: lint ## format, lint, types and the fast tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not slow' -q

hooks: install ## format, lint and types before every commit from now on
	$(BIN)/pre-commit install

bench: install ## every benchmark, each printing its own ratios
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[bench]'
	for script in $(filter-out benchmarks/audit.py benchmarks/one_step.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

peers: ## an environment for peers that need other versions than ours
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement benchmarks/peers/requirements.txt

audit: install ## try to refute every method's promise; writes docs/audit.md
	$(BIN)/python benchmarks/audit.py --out docs

docs: install ## write the generated pages of docs/ from the docstrings, and build the site into site/
	$(BIN)/python docs/build.py
	$(BIN)/python docs/make_site.py

clean: ## remove the environment and everything made
	rm -rf $(VENV) demo build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
