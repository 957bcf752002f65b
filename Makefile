# The targets below are meant for direct use. They run in a virtual environment, which the first
# use creates; later uses build only what is out of date.
#
#   make demo        solve the lid-driven cavity and compare with published tables, into results/
#   make test        run the default tests       make test-quick   one case of each function
#   make test-all    also the slow tests
#   make test-asan   run C and unit tests under the address and undefined-behaviour sanitizers
#   make lint        run all style checks; long and complex functions are warnings
#   make format      correct the style where a tool can
#   make bench       measure this machine, write its records, update tables and pictures
#   make reproduce PAPER=pta2020      repeat the experiment of a paper, into results/
#   make cuda        compile the CUDA backend for one architecture; needs no GPU, installs nothing
#   make test-gpu    run the tests of the CUDA backend; without a GPU they fail
#   make bench-gpu   measure the GPU; JSON=FILE writes the values to a file
#   make record-gpu  test and measure the GPU, write its record, update the tables and figures
#   make docs        write docs/_build/html      make build      write sdist and wheel to dist/
#   make clean       remove all generated files
#
# If an installed Python has CuPy, PyTorch, JAX and pytest, GPU_PYTHON=python3 uses that Python for
# the three GPU targets and creates no environment. The CUDA backend is compiled for the GPU of this
# machine only; `make build` compiles it for all architectures. WORKERS is the number of processes
# that run the tests; with 0 they run in pytest's own process, as the debugger needs it.

export PYSOLVERS_CUDA_ARCH ?= native

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
ASAN    := .venv-asan
BIN     := $(VENV)/bin
PACKAGE := $(VENV)/package.stamp
SOURCES := pyproject.toml setup.py $(shell find $(wildcard csrc cuda) -type f)
C_FILES := $(filter-out csrc/third_party/%,$(shell find $(wildcard csrc cuda tests/c tests/programs pysolvers/include) -name '*.[ch]' -o -name '*.inc' -o -name '*.cu' -o -name '*.cuh'))

ifdef GPU_PYTHON
GPU_READY := build/gpu-package.stamp
else
GPU_PYTHON := $(BIN)/python
GPU_READY := $(PACKAGE) $(VENV)/gpu.stamp
endif

# The tests that need a device. The other tests need modules that a GPU machine may not have.
GPU_TESTS := tests/gpu tests/unit tests/physics

.PHONY: announce-demo demo test test-quick test-all test-asan cuda test-gpu lint format bench reproduce bench-gpu record-gpu docs build clean
.DELETE_ON_ERROR:
.SECONDARY:

demo: announce-demo $(PACKAGE)
	@$(BIN)/python -m pysolvers run cavity --re 1000 --n 129 --output results
	@echo
	@echo "Look at results/cavity_re1000_n129.png: the curves pass through the published points but for" \
	    "the error of the grid that is printed above. Next: $(BIN)/pysolvers run cavity --n 257, then" \
	    "$(BIN)/pysolvers run cylinder --shape 97 401 --until 100 --film results/street.gif (a minute or two)"

# The first prerequisite of the demo: make takes them in order.
announce-demo:
	@echo "This demo solves the flow in a lid-driven cavity and compares it with published tables:" \
	    "a few seconds, after about two minutes on two cores if the package is not compiled yet."

test: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

test-quick: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m quick

test-all: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m ""

# Preload libstdc++: without it the sanitizer stops at the first exception of a C++ module.
test-asan: $(ASAN)/package.stamp
	PYSOLVERS_SANITIZE=address,undefined $(ASAN)/bin/pytest tests/c --timeout 1800
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 $(ASAN)/bin/pytest tests/unit

cuda: | $(VENV)/venv.stamp
	$(BIN)/python -m pip install --quiet 'setuptools >= 77' 'numpy >= 2'
	PYSOLVERS_CUDA=1 PYSOLVERS_CUDA_ARCH=90 $(BIN)/python setup.py --quiet build_ext --build-lib build/cuda-only

test-gpu: $(GPU_READY)
	$(GPU_PYTHON) -m pytest -m "gpu and not slow" --require-backend cpu,cuda $(GPU_TESTS)

lint: $(PACKAGE) $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff check --select C901,PLR0915 --exit-zero
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_FILES)

bench: $(PACKAGE) $(VENV)/bench.stamp
	$(BIN)/python -m pysolvers bench tridiagonal --record
	$(BIN)/python -m pysolvers bench small --record
	$(BIN)/python -m pysolvers bench calls --record
	$(BIN)/python -m pysolvers bench jobs --record
	$(BIN)/python -m pysolvers bench documents

reproduce: $(PACKAGE) $(VENV)/bench.stamp
	$(BIN)/python -m pysolvers reproduce $(PAPER)

bench-gpu: $(GPU_READY)
	$(GPU_PYTHON) -m pysolvers bench gpu $(if $(JSON),--json $(JSON))

record-gpu: $(GPU_READY)
	$(GPU_PYTHON) tools/gpu_record.py
	$(GPU_PYTHON) -m pysolvers bench documents

docs: $(PACKAGE) $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

build: $(VENV)/dev.stamp
	env -u PYSOLVERS_CUDA_ARCH $(BIN)/python -m build

clean:
	rm -rf $(VENV) $(ASAN) build dist results docs/_build docs/api docs/notebooks docs/records.md *.egg-info .*_cache
	find pysolvers -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: `venv` is a new environment, `package` the package built from SOURCES and installed there,
# `gpu-package` the same for GPU_PYTHON. Every other stamp is the dependency group of that name.

$(VENV)/venv.stamp $(ASAN)/venv.stamp: %/venv.stamp:
	@$(PYTHON) -c 'import sys; found = sys.version.split()[0]; sys.version_info >= (3, 11) or sys.exit( \
	    f"pysolvers needs Python 3.11 or newer; $(PYTHON) is {found}. Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $*
	$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	touch $@

$(PACKAGE): $(SOURCES) | $(VENV)/venv.stamp
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

build/gpu-package.stamp: $(SOURCES)
	PYSOLVERS_CUDA=1 $(GPU_PYTHON) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@mkdir -p $(@D)
	touch $@

$(ASAN)/package.stamp: $(SOURCES) tools/asan.cfg | $(ASAN)/venv.stamp
	DIST_EXTRA_CONFIG=tools/asan.cfg PYSOLVERS_CUDA=0 PYSOLVERS_SANITIZE=address,undefined \
	    $(ASAN)/bin/python -m pip install --quiet --group test '.[plot]'
	touch $@

$(VENV)/%.stamp: pyproject.toml | $(VENV)/venv.stamp
	$(BIN)/python -m pip install --quiet --group $*
	touch $@
