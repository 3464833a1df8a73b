# Every target does all of its own set-up; what is already there is left alone.
#
#   make demo    the main job: sets up a small environment and runs the demo
#   make test    everything that is checked: style, types, imports, tests
#   make lint    style and imports only        make types   types only
#   make bench   the benchmarks                make bench-sheets   those of the Sheets ledger
#   make simulate    whole systems on told time (SEEDS=10000, STORE=memory|sqlite), or real processes (STORE=postgres|sheets)
#   make simulate-broken    the same on an engine that is broken on purpose, in each way that is known
#   make package builds the wheels into dist/, installs them into an empty environment and runs them there
#   make outgrow     poolers, fail-overs and large ledgers on real servers: minutes, and some of it needs root
#   make test-versions   the tests with the newest and the oldest allowed versions of every dependency
#   make release VERSION=0.2.0   says what a release would do; ARGS=--publish does it
#   make docs    the documentation site, in build/docs/site
#   make pages   the pages and pictures that are made from the code and the running product
#   make clean   removes all that these commands made

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
# Test workers: one more than processors, for many tests wait for processes, leases and browsers.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1 + os.cpu_count())')
ARGS    ?=

# The environment must be compiled once: without bytecode every import is several times slower.
unexport PYTHONDONTWRITEBYTECODE
# A different environment that is active in the calling shell must not take part.
unexport VIRTUAL_ENV
unexport PYTHONHOME
unexport PYTHONPATH
export UV_PYTHON_DOWNLOADS := never
# Trust what the machine trusts: uv's own list knows no company proxy.
export UV_SYSTEM_CERTS := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test outgrow lint format types package test-versions release docs pages bench bench-sheets simulate simulate-broken browser constraints clean

help:
	@sed -n 's/^#   //p' Makefile

# Installs into the environment with the pinned versions. Where uv is missing or fails, plain pip does it too: it reads
# settings that uv does not, such as a certificate or a mirror, and is only slower.
define install
	@{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode \
		--constraint constraints.txt --build-constraint constraints.txt $(1); } \
	|| { echo "Installing with pip, which takes about a minute longer than uv."; \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt $(1); }
endef

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Quire needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1): try make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making the environment in $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null \
		&& $(PYTHON) -m venv --clear $(VENV); }
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt uv || echo "uv cannot be had here."
	@touch $@

$(VENV)/core: $(VENV)/made pyproject.toml constraints.txt
	@echo "Installing Quire"
	$(call install,--editable .)
	@touch $@

$(VENV)/dev: $(VENV)/made pyproject.toml packages/hectograph/pyproject.toml constraints.txt
	@echo "Installing Quire with everything that the tests need"
	$(call install,--editable packages/hectograph --editable '.[dev]')
	@touch $(VENV)/core $@

# google-adk holds back libraries that the rest uses: its services have an environment and pins of their own.
ADK := packages/quire-adk
$(VENV)-adk/made: $(VENV)/made pyproject.toml packages/hectograph/pyproject.toml $(ADK)/pyproject.toml $(ADK)/constraints.txt
	@echo "Installing the services for Google ADK with what their tests need"
	@$(PYTHON) -m venv --clear $(VENV)-adk
	@{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(VENV)-adk/bin/python --compile-bytecode \
		--constraint $(ADK)/constraints.txt --build-constraint constraints.txt $(ADK_NEEDS); } \
	|| $(VENV)-adk/bin/python -m pip install --quiet --constraint $(ADK)/constraints.txt $(ADK_NEEDS)
	@touch $@

ADK_NEEDS = --editable packages/hectograph --editable . --editable $(ADK) pytest pytest-timeout

demo: $(VENV)/core
	@$(BIN)/quire demo $(ARGS)

test: $(VENV)/dev $(VENV)-adk/made browser lint types
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)
	@$(VENV)-adk/bin/pytest -q $(ADK)

outgrow: $(VENV)/dev
	@QUIRE_OUTGROW=1 $(BIN)/pytest -q tests/outgrow $(ARGS)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/dev
	$(BIN)/mypy

# What is built is also tried: each wheel by itself, in an environment with nothing but what it asks for.
package: $(VENV)/dev
	@rm -rf dist build/package
	@for project in . packages/hectograph; do (cd $$project && "$(CURDIR)/$(BIN)/python" -m hatchling build -t wheel -d "$(CURDIR)/dist" >/dev/null) || exit 1; done
	@for name in quire hectograph; do \
		$(PYTHON) -m venv build/package/$$name || exit 1; \
		{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python build/package/$$name/bin/python dist/$$name-*.whl; } \
		|| build/package/$$name/bin/python -m pip install --quiet dist/$$name-*.whl || exit 1; \
	done
	@build/package/quire/bin/quire demo --dir build/package/demo --articles 4 >/dev/null
	@build/package/hectograph/bin/hectograph --help >/dev/null
	@rm -rf build/package
	@echo "These install and run in an empty environment:" && ls -1 dist/*.whl

test-versions: $(VENV)/dev
	@$(BIN)/python tools/versions.py $(ARGS)

release: $(VENV)/dev
	@$(BIN)/python tools/release.py $(VERSION) $(ARGS)

# The site has an environment of its own: what builds it is nothing that Quire needs.
$(VENV)-docs/made: $(VENV)/made docs/tools/documentation.txt
	@$(PYTHON) -m venv --clear $(VENV)-docs
	@{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(VENV)-docs/bin/python --requirement docs/tools/documentation.txt; } \
	|| $(VENV)-docs/bin/python -m pip install --quiet --requirement docs/tools/documentation.txt
	@touch $@

docs: $(VENV)-docs/made
	@$(VENV)-docs/bin/python docs/tools/documentation.py

pages: $(VENV)/dev browser
	@$(BIN)/python docs/tools/cli.py > docs/cli.md
	@$(BIN)/python docs/tools/errors.py > docs/errors.md
	@$(BIN)/python docs/tools/configuration.py
	@$(BIN)/python docs/tools/reference.py
	@$(BIN)/python docs/tools/llms.py
	@$(BIN)/python docs/tools/pictures.py

bench: $(VENV)/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" bench/run $(ARGS)

bench-sheets: $(VENV)/dev
	$(BIN)/python bench/sheets.py $(ARGS)

simulate: $(VENV)/dev
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),10000) --store $(or $(STORE),memory) $(ARGS)

simulate-broken: $(VENV)/dev
	$(BIN)/python -m tests.simulation --broken --seeds $(or $(SEEDS),2000) $(ARGS)

# The dashboard is tested in a real browser, which is a package of the system and not of Python.
browser:
	@if command -v chromium-headless-shell >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing Chromium for the browser tests" \
		&& apt-get update -qq && for package in chromium-headless-shell chromium; do DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends $$package >/dev/null 2>&1 && break; done; then :; \
	elif command -v chromium >/dev/null; then :; \
	else echo "There is no Chromium and it cannot be installed here: the browser tests skip, and fail in CI."; fi

# Resolves every dependency anew, for every platform, and writes the pins.
constraints: $(VENV)/made
	@{ echo "# Pins for every dependency, direct or not. Written by: make constraints"; \
	echo uv | $(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-annotate --no-header \
		--extra dev pyproject.toml - | grep -v packages/; } > constraints.new
	@mv constraints.new constraints.txt
	@{ echo "# Pins for the services for Google ADK. Written by: make constraints"; \
	printf '%s\n' pytest pytest-timeout | $(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 \
		--no-annotate --no-header $(ADK)/pyproject.toml - | grep -v "packages/\|-e \."; } > constraints.new
	@mv constraints.new $(ADK)/constraints.txt

clean:
	rm -rf $(VENV) $(VENV)-adk $(VENV)-docs build dist test-results .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests packages -name __pycache__ -type d -prune -exec rm -rf {} +
