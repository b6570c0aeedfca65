# Every target sets up what it needs in .venv and is quick when nothing has changed.
# All it asks of the machine is Python 3.11 or newer, a C++20 compiler and make.

PYTHON ?= python3
CXX ?= c++
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# Beyond a few compilers at once, memory runs out before time is won.
ifndef JOBS
JOBS := $(shell PYTHONPATH=src/keisei $(PYTHON) -c "from machine.cores import usable_cores; \
    print(min(8, usable_cores()))" 2>/dev/null || echo 1)
endif
# Tests wait for other processes almost as long as they compute, so there is one worker more than cores. One that is done
# takes tests from the others: the long ones lie side by side.
PYTEST := $(BIN)/python -m pytest -n $(shell expr $(JOBS) + 1) --dist worksteal

TOOLS := $(VENV)/.tools-installed
READY := $(VENV)/.keisei-installed
NATIVE := $(shell find native -type f)
# An editable install knows the packages that were there when it was made: a new one asks for it again.
PACKAGES := $(shell find src -name __init__.py)
LIGHT := $(NATIVE) $(PACKAGES)
SANITIZED := $(filter-out %bindings.cpp,$(filter %.cpp,$(NATIVE)))

export PIP_ROOT_USER_ACTION := ignore
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup train test test-all test-wandb test-wheel check format bench wheel sanitize clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## create .venv, install the pinned packages, build the native core

train: $(READY)  ## train Shogi from nothing for five minutes, or continue that run
	@$(BIN)/keisei train shogi-quickstart

test: $(READY)  ## run the tests, without the slow ones
	@$(PYTEST) -m "not slow"

test-all: $(READY)  ## run all tests
	@$(PYTEST)

test-wheel: $(READY)  ## build a wheel, install it into an empty environment, and train there
	@$(BIN)/python -m pytest tests/test_wheel.py

test-wandb: $(READY)  ## install the extra wandb, and test the callback with the real package, offline
	@$(PIP) install -c constraints.txt wandb
	@$(BIN)/python -m pytest tests/training/test_wandb_callback.py

check: $(READY)  ## lint, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict src

format: $(READY)  ## format the code and fix what the linter can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)  ## measure the games beside other libraries
	@$(BIN)/keisei bench games

wheel: $(READY)  ## build a wheel into dist/, for machines without a compiler
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

# Where the processor has AVX2, that build is played with as well.
ISAS := baseline $(if $(shell grep -om1 avx2 /proc/cpuinfo 2>/dev/null),avx2)
FLAGS_avx2 := -mavx2 -mbmi -mbmi2 -mpopcnt -mlzcnt

sanitize: $(ISAS:%=build/sanitize-%)  ## play games with the core under the address and undefined-behaviour sanitizers
	@for program in $^; do echo $$program; $$program || exit 1; done

clean:  ## remove what was built and cached; .venv stays
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	@rm -rf $(VENV)

$(TOOLS): constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	    'Keisei needs Python 3.11 or newer, and $(PYTHON) is ' + sys.version.split()[0] \
	    + '. Name another one: make PYTHON=python3.11')"
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing the build tools"
	@$(PIP) install -c constraints.txt pip setuptools
	@$(PIP) install -c constraints.txt scikit-build-core nanobind cmake ninja
	@touch $@

# When only our own sources changed, the packages of others are left alone.
$(READY): $(TOOLS) pyproject.toml constraints.txt $(LIGHT)
	@echo "$(if $(filter-out $(LIGHT),$?),installing packages and ,)building the native core"
	@$(PIP) install --no-build-isolation $(if $(filter-out $(LIGHT),$?),-c constraints.txt -e '.[dev]',--no-deps -e .)
	@touch $@

build/sanitize-%: $(NATIVE)
	@mkdir -p build
	@echo "building the $* core with sanitizers"
	@$(CXX) -std=c++20 -O1 -g -Wall -Wextra -fno-omit-frame-pointer -fsanitize=address,undefined \
	    -fno-sanitize-recover=all $(FLAGS_$*) -Inative $(SANITIZED) -o $@ -pthread
