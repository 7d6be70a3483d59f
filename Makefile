# Everything that can be done with a clone. It sets itself up: Python 3.11+, a C compiler and make are enough.
#   make test PY=python      use an environment of your own, already set up, instead of .venv
#   make test ARGS="-k conv" hand arguments on to pytest
PYTHON ?= python3
VENV   := .venv
JOBS   ?= 2
ARGS   ?=
# A test that hangs fails alone.
PYTEST := -m pytest -n $(JOBS) --dist worksteal --timeout 300 --durations 20 --durations-min 5

# Hundreds of processes load the same modules: each is compiled once.
unexport PYTHONDONTWRITEBYTECODE

# Jobs share the cores: threads of numpy's matrices would wait for each other.
export OPENBLAS_NUM_THREADS := 1

# A pass that fails is left out for users; whoever works on mccompile wants to see it.
export MCCOMPILE_STRICT := 1

# PY from outside means: everything is installed there, do not touch .venv.
ifeq ($(origin PY),undefined)
PY      := $(VENV)/bin/python
RUNTIME := $(VENV)/runtime.stamp
TESTS   := $(VENV)/test.stamp
SITE    := $(VENV)/docs.stamp
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-more test-bare test-lowest test-embedded importers lint golden zoo onnx-suite exporters fuzz \
        fuzz-init sweep stories size spills tuned bench race mutants docs wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(RUNTIME) ## compile the digits model, build it, and classify pictures in the terminal
	$(PY) examples/digits/demo.py

# Those of documentation and examples are for test-embedded.
ALL_TESTS := --ignore tests/docs/test_pages.py --ignore tests/examples

test: $(TESTS) ## run tests of everything but documentation and examples (ARGS="-k conv", JOBS=4)
	$(PY) $(PYTEST) -m "not thorough" $(ALL_TESTS) $(ARGS)

test-more: $(TESTS) ## run what `make test` leaves out: tests that go through all cases of their kind
	$(PY) $(PYTEST) -m thorough $(ALL_TESTS) $(ARGS)

# Those that look for tools, as on a machine that has none but a C compiler and make.
test-bare: $(TESTS) ## run the tests that look for compilers and emulators where there are none
	MCCOMPILE_BARE=1 $(PY) $(PYTEST) tests/toolchain tests/targets tests/cli tests/test_cli.py $(ARGS)

# What touches onnx, numpy, jinja2, click and cffi; `make test` runs everything with the newest.
LOWEST       := $(VENV)/lowest
LOWEST_TESTS := $(addprefix tests/,base check errors expr frontend golden graph quantize ops/test_all_versions.py \
                  test_backend.py test_cli.py test_driver.py)

test-lowest: $(LOWEST)/test.stamp ## run tests with the lowest versions of what mccompile needs, as pyproject.toml names them
	$(LOWEST)/bin/python tests/lowest.py --check
	$(LOWEST)/bin/python $(PYTEST) $(LOWEST_TESTS) $(ARGS)

test-embedded: $(TESTS) ## run own models on all emulated targets, examples, every block of the documentation; compare costs (ZOO=folder CASES=all)
	embedded/install.sh
	ZOO=$(ZOO) $(PY) $(PYTEST) embedded tests/docs/test_pages.py tests/examples $(ARGS)
	printf '$(PY) -m %s\n' 'embedded.table $(if $(ZOO),--zoo $(ZOO))' 'benchmarks.instructions $(if $(ZOO),--zoo $(ZOO))' \
	  'benchmarks.signals --target cortex-m4' | xargs -d '\n' -n 1 -P $(JOBS) sh -c

importers: $(TESTS) ## test what reads models of other tools, each in an environment with only its extra (ARGS="pytorch")
	$(PY) -m tests.importers.environments --jobs $(JOBS) $(ARGS)

lint: $(TESTS) ## ruff and mypy --strict
	$(PY) -m ruff check .
	$(PY) -m mypy

golden: $(TESTS) ## rewrite the expected C of tests/golden, to be reviewed with git diff
	$(PY) -m pytest tests/golden --update-golden $(ARGS)

zoo: $(TESTS) ## check every model of a folder against a reference (ZOO=folder ARGS="--target cortex-m4")
	@test -n "$(ZOO)" || { echo "make zoo: say where the models are: make zoo ZOO=path/to/models" >&2; exit 2; }
	$(PY) tests/zoo.py --zoo $(ZOO) --jobs $(JOBS) $(ARGS)

onnx-suite: $(TESTS) ## run ONNX's own backend tests (ARGS="--only conv")
	$(PY) tests/onnx_suite.py --jobs $(JOBS) $(ARGS)

exporters: $(TESTS) ## compile models as exporters spell them, next to canonical ones (ARGS="-k attention")
	$(PY) -m tests.exporters --jobs $(JOBS) $(ARGS)

fuzz: $(TESTS) ## compile random programs and compare them with references (SECONDS=600 SEED=1 ARGS="--targets generic")
	$(PY) -m tests.fuzz --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) --jobs $(JOBS) $(ARGS)
	$(if $(findstring --subject ,$(ARGS)),,printf '%s\n' training languages claims | \
	  xargs -I{} -P $(JOBS) $(PY) -m tests.fuzz.{} --seconds $$(( $(or $(SECONDS),600) / 6 )) --seed $(or $(SEED),1))

sweep: $(TESTS) ## compile everyday blocks at everyday sizes for every target (SECONDS=600 ARGS="--targets generic")
	$(PY) -m tests.sweep --seconds $(or $(SECONDS),600) $(ARGS)

stories: $(TESTS) ## random sequences of commands beside references (SECONDS=600 SEED=1)
	$(PY) -m tests.stories --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(ARGS)

fuzz-init: $(TESTS) ## offer broken blobs to the init of compiled models, with libFuzzer (SECONDS=600 ARGS="--only trees")
	$(PY) -m tests.fuzz.blobs --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(ARGS)

size: $(RUNTIME) ## code, arena and weight bytes of the project's own models
	$(PY) -m benchmarks.size

spills: $(TESTS) ## hot loops of vectors that keep sums on the stack, beside those that are recorded (ARGS="--update")
	$(PY) -m benchmarks.spills --jobs $(JOBS) $(ARGS)

tuned: $(TESTS) ## measure anew what comes with mccompile as --tuned default, under emulation (ARGS="--target cortex-m4")
	$(PY) -m benchmarks.tuned --jobs $(JOBS) $(ARGS)

bench: $(TESTS) ## time the project's own models against onnxruntime, and MODELS="a.onnx b.onnx" against all peers
	$(PY) -m benchmarks.bench
	$(if $(MODELS),$(PY) -m benchmarks.networks $(MODELS))

race: $(TESTS) ## draw small models and race each against the peers, print what is slower (SECONDS=600 SEED=1)
	$(PY) -m benchmarks.race --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(ARGS)

mutants: $(TESTS) ## change one place of the code at a time: do the tests notice? (ARGS="--only memory --count 50")
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	$(PY) -m tests.mutants --jobs $(JOBS) $(ARGS)

# --quiet would hide the warnings that --strict counts.
docs: $(SITE) ## build the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

wheel: $(TESTS) ## build the wheel into dist/
	$(PY) -m build --wheel

clean: ## remove what make made (and .venv)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two stamps, because the demo needs only the five runtime dependencies.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "mccompile needs Python 3.11 or newer; '$(PYTHON)' is not. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python's venv module is missing or incomplete (Debian: apt-get install python3-venv)" >&2; exit 1; }

$(LOWEST)/test.stamp: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/lowest.txt \
	  --editable . hypothesis onnxruntime pytest pytest-timeout pytest-xdist
	@touch $@

$(VENV)/runtime.stamp: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/runtime.stamp
