# Each target is what a person would type. It runs in a virtual environment of its own, set up on
# the first use; later uses build nothing that is up to date.
#
#   make demo        solve the lid-driven cavity and compare with published tables, into results/
#   make test        the default tests           make test-all   the slow ones too
#   make test-asan   C and unit tests under the address and undefined-behaviour sanitizers
#   make lint        every check of style        make format     mend what can be mended
#   make bench       measure this machine, write its record, renew the table of the README
#   make docs        docs/_build/html            make build      sdist and wheel, into dist/
#   make clean       remove everything made

PYTHON  ?= python3
VENV    := .venv
ASAN    := .venv-asan
BIN     := $(VENV)/bin
PACKAGE := $(VENV)/package.stamp
SOURCES := pyproject.toml setup.py $(shell find $(wildcard csrc cuda) -type f)
C_FILES := $(shell find $(wildcard csrc cuda tests/c) -name '*.[ch]' -o -name '*.inc' -o -name '*.cu' -o -name '*.cuh')

.PHONY: demo test test-all test-asan lint format bench docs build clean
.DELETE_ON_ERROR:
.SECONDARY:

demo: $(PACKAGE)
	$(BIN)/python -m pysolvers run cavity --re 1000 --n 129 --output results

test: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/pytest

test-all: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/pytest -m ""

test-asan: $(ASAN)/package.stamp
	$(ASAN)/bin/pytest tests/c
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 \
	    UBSAN_OPTIONS=halt_on_error=1 $(ASAN)/bin/pytest tests/unit

lint: $(PACKAGE) $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(C_FILES)

bench: $(PACKAGE) $(VENV)/test.stamp
	$(BIN)/python benchmarks/tridiagonal.py
	$(BIN)/python tools/readme_table.py

docs: $(PACKAGE) $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

build: $(VENV)/dev.stamp
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) $(ASAN) build dist results docs/_build docs/api *.egg-info .*_cache
	find pysolvers -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: `venv` is a fresh environment, `package` the package installed there, built from SOURCES;
# any other is the dependency group of that name.

$(VENV)/venv.stamp $(ASAN)/venv.stamp: %/venv.stamp:
	@$(PYTHON) -c 'import sys; found = sys.version.split()[0]; sys.version_info >= (3, 11) or sys.exit( \
	    f"pysolvers needs Python 3.11 or newer; $(PYTHON) is {found}. Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $*
	$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	touch $@

$(PACKAGE): $(SOURCES) | $(VENV)/venv.stamp
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

$(ASAN)/package.stamp: $(SOURCES) tools/asan.cfg | $(ASAN)/venv.stamp
	DIST_EXTRA_CONFIG=tools/asan.cfg PYSOLVERS_SANITIZE=address,undefined \
	    $(ASAN)/bin/python -m pip install --quiet --group test '.[plot]'
	touch $@

$(VENV)/%.stamp: pyproject.toml | $(VENV)/venv.stamp
	$(BIN)/python -m pip install --quiet --group $*
	touch $@
