# Targets for people: demo, test, check, conformance, format, clean. Everything lives in .venv; nothing else is left behind.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 3

# Byte code goes beside the environment, so that the source tree stays as it was cloned.
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache
export STEADMESH_AUTOSTART := 0

.PHONY: demo test check format lint types contracts unit conformance clean

demo: $(VENV)/.installed  ## set everything up and show the main job
	@# Seats' programs get an environment of their own, without the prefix above: sweep after them.
	@$(BIN)/python -m steadmesh.operator.demo; status=$$?; \
	  find src -name __pycache__ -prune -exec rm -rf {} +; exit $$status

test: $(VENV)/.installed-dev  ## set everything up and run the tests
	$(BIN)/python -m pytest -n $(WORKERS)

check: lint types contracts test  ## what a change must pass

conformance: $(VENV)/.installed-dev $(VENV)/conformance/.installed  ## judge MCP with the programs of others
	@$(BIN)/python -m tests.conformance

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "steadmesh needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing steadmesh and what it needs"
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what the tests need"
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

$(VENV)/conformance/.installed: tests/conformance/package.json tests/conformance/package-lock.json
	@command -v npm >/dev/null || { echo "make conformance needs npm"; exit 1; }
	@echo "installing the programs that judge MCP"
	@mkdir -p $(@D) && cp $^ $(@D)
	@cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache
