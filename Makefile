# Two commands do all the set-up: `make demo` and `make test`. Everything lives in .venv, but for the
# hundred packages of ragas, which the benchmarks alone need and which have an environment of their own.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RAGAS  := .venv-ragas

.PHONY: demo test check fix docs bench ragas lock clean

demo: $(VENV)/runtime.stamp
	@$(BIN)/karat demo

test: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest

check: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python docs/generate.py --check

fix: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/dev.stamp
	@$(BIN)/python docs/generate.py

bench: $(VENV)/bench.stamp $(RAGAS)/ragas.stamp
	@$(BIN)/python -m benchmarks

# The tests beside ragas run if it is there.
ragas: $(RAGAS)/ragas.stamp

# What the lock files pin, written anew from pyproject.toml.
lock: $(VENV)/runtime.stamp
	@$(BIN)/python -m pip install --quiet uv
	@for group in runtime dev bench ragas; do \
	  [ $$group = runtime ] && wanted=pyproject.toml || wanted="pyproject.toml --group $$group"; \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url \
	    --no-annotate --upgrade $$wanted -o requirements/$$group.lock; done

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("karat needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 demo")'
	@$(PYTHON) -m venv $(VENV) || { echo "karat needs the venv module of $(PYTHON) (on Debian: apt install python3-venv)."; rm -rf $(VENV); exit 1; }
	@touch $@

$(VENV)/runtime.stamp: $(VENV)/python.stamp pyproject.toml requirements/runtime.lock
	@echo "Installing karat into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/runtime.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/runtime.stamp requirements/dev.lock
	@echo "Installing what the tests need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.lock
	@touch $@

$(VENV)/bench.stamp: $(VENV)/runtime.stamp requirements/bench.lock
	@echo "Installing what the benchmarks need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.lock
	@touch $@

# karat too, so that both are timed in one process.
$(RAGAS)/ragas.stamp: $(VENV)/python.stamp pyproject.toml requirements/ragas.lock
	@echo "Installing ragas into $(RAGAS) …"
	@$(BIN)/python -m venv $(RAGAS)
	@$(RAGAS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/ragas.lock
	@$(RAGAS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

clean:
	rm -rf $(VENV) $(RAGAS) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
