# `make demo` and `make test` do all the set-up, in .venv. The peer libraries that karat is compared with are optional:
# each has its own environment in .oracles. So are the frameworks that karat works with, in .frameworks.
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
ORACLES := autorag azure continuous-eval evidently haystack llamaindex mlflow nauc phoenix ragas ranx sklearn torch trulens
FRAMEWORKS := futureagi futureagi_1_0 haystack langchain langfuse llamaindex mlflow phoenix stores tracking
SANITIZED := build/sanitized
LOCK    := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate --upgrade

.PHONY: demo test test-without-kernel sanitize client fuzz chromium axe check fix docs wheel bench trec_eval spark oracles $(ORACLES:%=oracle-%) \
        frameworks $(FRAMEWORKS:%=framework-%) lock clean

demo: $(VENV)/runtime.stamp
	@$(BIN)/karat demo

# Skipped tests are listed at the end, each with the command that installs what it needs.
# The folders that the coverage is measured for are in pyproject.toml.
test: $(VENV)/dev.stamp chromium
	@$(MAKE) --silent axe 2> /dev/null || echo "axe-core could not be installed: its tests are skipped."
	@$(BIN)/python -m slipcover --json --out .coverage.json -m pytest -rs -n 2 --dist loadfile --no-loadscope-reorder
	@$(BIN)/python -m slipcover --fail-under 98 --out .coverage.json --merge .coverage.json

# The same without the compiled kernel, and without the coverage: the Python twins of its functions run.
test-without-kernel: $(VENV)/dev.stamp chromium
	@KARAT_KERNEL=0 $(BIN)/python -m pytest -rs -n 2 --dist loadfile --no-loadscope-reorder

# The tests of the kernel, and of what calls it, with a kernel that gcc's sanitizers watch, in a copy of the package. They
# see Python's objects, too, if these are made by malloc. Python itself leaks when it ends: tests/kernel/test_memory.py
# looks for leaks instead.
sanitize: $(VENV)/dev.stamp
	@rm -rf $(SANITIZED)
	@KARAT_BUILD_KERNEL=1 CC=gcc CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1" \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(SANITIZED) .
	@export PYTHONPATH=$(SANITIZED) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16; \
	  export LD_PRELOAD="$(foreach name,asan ubsan stdc++,$(shell gcc -print-file-name=lib$(name).so))"; \
	  $(BIN)/python -c 'from karat._kernel import native; assert "$(SANITIZED)" in native.__file__' && \
	  $(BIN)/python -m pytest -rs tests/kernel tests/samples/test_order.py tests/samples/test_scores.py \
	    tests/samples/test_odd_input.py tests/judges/test_contains.py tests/judges/test_spans.py tests/test_edge_cases.py \
	    tests/test_surrogates.py

# The TypeScript client: its types are those of the server, it builds, and its tests pass against a real `karat serve`.
client: $(VENV)/dev.stamp chromium
	@command -v npm > /dev/null || { echo "The TypeScript client needs Node 20 or newer (on Debian: apt install nodejs npm)."; exit 1; }
	@$(BIN)/python docs/typescript_types.py
	@npm ci --silent --no-audit --no-fund --ignore-scripts --prefix clients/typescript
	@npm run --silent build --prefix clients/typescript
	@KARAT_PYTHON=$(abspath $(BIN)/python) npm test --silent --prefix clients/typescript
	@$(BIN)/python -m pytest -rs -q tests/test_typescript.py

# Minutes of random cases for every promise of docs/reliability.md; then its figures. `make fuzz SEED=7` repeats a run.
fuzz: $(VENV)/dev.stamp
	@PYTHONPATH=tests $(BIN)/python -m fuzz --write $(if $(SEED),--seed $(SEED))
	@$(BIN)/python docs/generate.py

# axe-core looks for what a screen reader or a keyboard cannot reach, on every page of `karat view` and of the report.
axe: tests/view/node_modules/axe-core/axe.min.js

tests/view/node_modules/axe-core/axe.min.js: tests/view/package-lock.json
	@command -v npm > /dev/null || { echo "axe-core needs npm (on Debian: apt install nodejs npm)."; exit 1; }
	@npm ci --silent --no-audit --no-fund --ignore-scripts --prefix tests/view
	@touch $@

# The HTML report and the viewer are tested in a browser. Root installs one if there is none; otherwise those tests are skipped.
chromium:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "Installing chromium for the tests in a browser …"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core; } \
	    > /dev/null 2>&1 || echo "chromium could not be installed: the browser tests are skipped."; fi

check: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python docs/generate.py --check

fix: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The generated parts of the docs, and their pictures if there is a browser.
docs: $(VENV)/dev.stamp
	@$(BIN)/python docs/generate.py
	@$(BIN)/python tests/support/screenshots.py

# sdist and wheel in dist/; both are then installed in fresh environments and tried outside of this folder, the sdist as
# where there is no compiler.
wheel: $(VENV)/dev.stamp
	@rm -rf dist
	@KARAT_BUILD_KERNEL=1 $(BIN)/uv build --quiet --python $(BIN)/python --out-dir dist
	@$(BIN)/python .ci/check_wheel.py dist
	@ls dist/*

bench: $(VENV)/bench.stamp oracle-ragas trec_eval
	@$(BIN)/python -m benchmarks

# The C program, fully optimised, if its source (github.com/usnistgov/trec_eval) is in .oracles/trec_eval.
trec_eval:
	@if [ -f .oracles/trec_eval/trec_eval.c ]; then \
	  version=$$(sed -n 's/^VERSIONID *= *//p' .oracles/trec_eval/Makefile); \
	  $(MAKE) --silent -C .oracles/trec_eval trec_eval CFLAGS="-O3 -w -I. -DVERSIONID='\"$$version\"'"; \
	else echo "trec_eval is left out: its source (github.com/usnistgov/trec_eval) is not in .oracles/trec_eval."; fi

# Spark and a Java, 600 MB: `make test` then includes the tests on a cluster.
spark: $(VENV)/spark.stamp

# Every peer library: 10 GB, of which torch is 6. `make test` compares with those that are installed.
oracles: $(ORACLES:%=oracle-%)
	@$(BIN)/python -m pytest -rs tests/oracles

$(ORACLES:%=oracle-%): oracle-%: .oracles/%/ready.stamp

# Every framework that karat reads objects of or works inside of. `make test` runs the tests of those that are installed.
frameworks: $(FRAMEWORKS:%=framework-%)
	@$(BIN)/python -m pytest -rs -n 2 tests/frameworks

$(FRAMEWORKS:%=framework-%): framework-%: .frameworks/%/ready.stamp

# Pin the dependencies of pyproject.toml again.
lock: $(VENV)/dev.stamp
	@$(LOCK) pyproject.toml -o requirements/runtime.lock
	@$(LOCK) pyproject.toml --extra web -o requirements/web.lock
	@for group in dev bench spark oracles/ragas; do \
	  $(LOCK) pyproject.toml --group $${group##*/} -o requirements/$$group.lock || exit; done
	@for group in $(filter-out ragas,$(ORACLES)); do \
	  $(LOCK) --group $$group -o requirements/oracles/$$group.lock || exit; done
	@for name in $(FRAMEWORKS); do \
	  $(LOCK) pyproject.toml --group with-$$name -o requirements/frameworks/$$name.lock || exit; done

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("karat needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 demo")'
	@$(PYTHON) -m venv $(VENV) || { echo "karat needs the venv module of $(PYTHON) (on Debian: apt install python3-venv)."; rm -rf $(VENV); exit 1; }
	@touch $@

# With the extra web, so that `karat view` works after `make demo`.
$(VENV)/runtime.stamp: $(VENV)/python.stamp pyproject.toml requirements/web.lock hatch_build.py src/karat/_kernel/native.c
	@echo "Installing karat into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/web.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/runtime.stamp requirements/dev.lock
	@echo "Installing the tools for tests and checks …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.lock
	@touch $@

$(VENV)/bench.stamp: $(VENV)/runtime.stamp requirements/bench.lock
	@echo "Installing the peers of the benchmarks …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.lock
	@touch $@

$(VENV)/spark.stamp: $(VENV)/dev.stamp requirements/spark.lock
	@echo "Installing Spark …"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements/spark.lock
	@touch $@

# karat is installed next to ragas, so that the benchmarks time both in one process.
.oracles/%/ready.stamp: requirements/oracles/%.lock | $(VENV)/dev.stamp
	@echo "Installing $* into .oracles …"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .oracles/$*
	@$(BIN)/uv pip sync --quiet --python .oracles/$* $<
	@$(if $(filter ragas,$*),$(BIN)/uv pip install --quiet --python .oracles/$* --no-deps -e .)
	@touch $@

# karat and pytest are installed next to the framework: its tests run there.
.frameworks/%/ready.stamp: requirements/frameworks/%.lock | $(VENV)/dev.stamp
	@echo "Installing $* into .frameworks …"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .frameworks/$*
	@$(BIN)/uv pip sync --quiet --python .frameworks/$* $<
	@$(BIN)/uv pip install --quiet --python .frameworks/$* --no-deps -e .
	@touch $@

clean:
	rm -rf $(VENV) .oracles .frameworks .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* build dist clients/typescript/node_modules clients/typescript/dist tests/view/node_modules
