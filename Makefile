# The project's commands; `make` alone lists them. A machine needs only make and Python 3.11 or newer.
# Everything is installed below .venv and .venvs, from the hashed files in requirements/, and only when those changed.

# The interpreter that the environments are made with.
PYTHON ?= python3
# The folder that `make serve` works in.
SUPERPI_WORKSPACE ?= $(CURDIR)
# What to hand on to superpi, pytest or uv: make serve ARGS="--port 9000", make test ARGS=tests/auth.
ARGS ?=

# uv installs in two seconds what takes pip twenty. Where none is on PATH, pip brings the pinned one; where uv fails, behind
# a mirror that only pip is configured for, say, pip does the work.
UV := $(or $(shell command -v uv 2>/dev/null),.venvs/uv/bin/uv)
PIP := .venv/bin/python -m pip --disable-pip-version-check --python
install = $(UV) pip install --quiet --compile-bytecode --python $(1)/bin/python $(2) \
	|| { echo "uv could not; trying pip ..." >&2; $(PIP) $(1)/bin/python install --quiet $(2); }

RUN := .venv/.run
DEV := .venv/.dev
CLIENTS := .venvs/client-python-2/.ready .venvs/client-python-1/.ready
lock = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock" $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help install serve test check format lock clean

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(RUN) ## Put the superpi command into .venv/bin
	@echo "Ready: $(CURDIR)/.venv/bin/superpi"

serve: $(RUN) ## Serve this folder, or SUPERPI_WORKSPACE, over HTTP on loopback
	@SUPERPI_WORKSPACE="$(SUPERPI_WORKSPACE)" .venv/bin/superpi serve $(ARGS)

test: $(DEV) $(CLIENTS) .venvs/run/.ready ## Run every test
	@.venv/bin/python -m pytest -n logical --maxprocesses 4 $(ARGS)

check: $(DEV) ## Lint, format, types, import contracts and size caps, without changing a file
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -P tests/checks/sizes.py

format: $(DEV) ## Sort imports, mend what the linter can, format
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

lock: | $(UV) ## Compile requirements/*.txt anew; ARGS=--upgrade takes newer versions
	$(lock) pyproject.toml -o requirements/run.txt
	$(lock) requirements/build.in -c requirements/run.txt -o requirements/build.txt
	$(lock) pyproject.toml --group dev -c requirements/run.txt -c requirements/build.txt -o requirements/dev.txt
	$(lock) requirements/client-python-2.in -o requirements/client-python-2.txt
	$(lock) requirements/client-python-1.in -o requirements/client-python-1.txt
	$(lock) requirements/uv.in -o requirements/uv.txt

clean: ## Remove the environments and every cache; no workspace, no data
	rm -rf .venv .venvs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Super-Pi needs Python 3.11 or newer, and $(PYTHON) is not. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Making .venv with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv --clear .venv

.venvs/uv/bin/uv: requirements/uv.txt | .venv/bin/python
	@.venv/bin/python -m venv --clear --without-pip .venvs/uv
	@$(PIP) .venvs/uv/bin/python install --quiet --no-deps --require-hashes -r $<
	@touch $@

# The command alone: what it depends on, what builds it, and itself, linked to this folder.
$(RUN): pyproject.toml requirements/run.txt requirements/build.txt | .venv/bin/python $(UV)
	@echo "Installing what the server needs ..."
	@$(call install,.venv,--no-deps --require-hashes -r requirements/run.txt -r requirements/build.txt)
	@$(call install,.venv,--no-deps --no-build-isolation --editable .)
	@touch $@

$(DEV): $(RUN) requirements/dev.txt
	@echo "Installing what the tests and checks need ..."
	@$(call install,.venv,--no-deps --require-hashes -r requirements/dev.txt)
	@touch $@

# Environments apart from .venv: the official SDK owns the import name mcp too, and the wheel is tried without the tools.
# Not `.envs`: the server's own rules deny `.env*` to commands.
.venvs/%/.ready: requirements/%.txt | $(RUN)
	@echo "Installing .venvs/$* ..."
	@.venv/bin/python -m venv --clear --without-pip .venvs/$*
	@$(call install,.venvs/$*,--no-deps --require-hashes -r $<)
	@touch $@
