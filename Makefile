# What a contributor and CI run. Needs make, git and Python 3.11 or newer; everything else goes into $(VENV).
# Another Python: make PYTHON=python3.12 …   Arguments for pytest: make test ARGS="tests/core -k names"

VENV ?= .venv
BIN := $(abspath $(VENV))/bin
ARGS ?=
HERMES_VENV ?= build/hermes
HERMES_VERSION ?= 0.19.*

export PYTHON
# Tests and the demo start programs of their own: those must not take this make's job slots for theirs.
unexport MAKEFLAGS MFLAGS MAKELEVEL

.PHONY: help demo test test-agents test-hermes test-package coverage fuzz soak check format bench pictures docs clean

help:
	@echo "make demo     the README's quickstart, in a temporary workspace"
	@echo "make test     the tests"
	@echo "make test-agents   the presets against the real agent programs, which it installs; ARGS=claude for one"
	@echo "make test-hermes   the plugin in the real Hermes Agent, which it installs; HERMES_VERSION is obeyed"
	@echo "make test-package   wheel and sdist outside the tree, on every Python found; ARGS=--lowest for the lowest dependencies"
	@echo "make coverage   the tests, measured with all their processes: every branch of core and store, 90 % elsewhere"
	@echo "make fuzz     hostile bytes for each parser, FUZZ_SECONDS (20) for each; ARGS=registry for one, FUZZ_SEED is obeyed"
	@echo "make soak     three runners for five minutes under everything; SOAK_SECONDS, SOAK_RUNS and SOAK_SEED are obeyed;"
	@echo "              then each example's calls in 1,000 orders; REPLAY_ORDERS and REPLAY_SEED are obeyed;"
	@echo "              then a million operations beside a model, some hours; MODEL_OPERATIONS and MODEL_SEED are obeyed;"
	@echo "              then ten thousand runs of two owners; TWO_OWNERS_PLAYS and TWO_OWNERS_SEED are obeyed"
	@echo "make check    format, lint, types, import rules, sizes"
	@echo "make format   what check can mend by itself"
	@echo "make bench    speed and memory against peers, never judged; ARGS=--quick for a look"
	@echo "make pictures   the dashboard as README and docs show it, into docs/pictures; needs a Chromium"
	@echo "make docs     the documentation, into build/docs"
	@echo "make clean    removes what these made, $(VENV) too; leaves .hermes alone"

demo:
	@sh scripts/environment.sh $(VENV)
	@PATH="$(BIN):$$PATH" bash examples/demo.sh

test:
	@sh scripts/environment.sh $(VENV) dev
	@$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

test-agents:
	@sh scripts/environment.sh $(VENV)
	@$(BIN)/python scripts/test_agents.py $(ARGS)

test-hermes:
	@sh scripts/hermes_environment.sh $(HERMES_VENV) "$(HERMES_VERSION)"
	@$(HERMES_VENV)/bin/python -m pytest tests/hermes -n auto $(ARGS)

test-package:
	@"$$(sh scripts/find-python.sh)" scripts/test_package.py $(ARGS)

coverage:
	@sh scripts/environment.sh $(VENV) dev
	@rm -rf build/coverage && mkdir -p build/coverage
	@# What fails here and not in make test fails by being measured: that is for make test to say.
	@$(BIN)/coverage run -m pytest -n auto --dist loadgroup -m "not untraced" $(ARGS) || echo "measured all the same"
	@$(BIN)/coverage combine -q
	@$(BIN)/python scripts/covered.py

fuzz:
	@sh scripts/environment.sh $(VENV) dev
	@# Where there is no wheel of it, the targets are run without; the program says so.
	@$(BIN)/python -c "import atheris" 2>/dev/null || $(BIN)/python -m pip install -q --only-binary=atheris -e ".[fuzz]" || true
	@PYTHONPATH=. $(BIN)/python -m tests.fuzz $(ARGS)

# On the disk: make test is in memory, where there is enough of it (tests/memory.py).
soak: export PYTEST_DEBUG_TEMPROOT ?= $(or $(TMPDIR),/tmp)
soak:
	@sh scripts/environment.sh $(VENV) dev
	@SOAK_SECONDS=$${SOAK_SECONDS:-300} SOAK_RUNS=$${SOAK_RUNS:-200} \
		$(BIN)/python -m pytest tests/soak -s -o faulthandler_timeout=1800 $(ARGS)
	@FAILING_CALLS_APART=1 KILLS_APART=1 CUTS_APART=1 KILL_SEEDS=10 $(BIN)/python -m pytest \
		$(addprefix tests/contract/,test_failing_calls.py test_bursts_killed.py test_power_cuts.py) \
		tests/runner/test_crashes.py tests/runner/test_orphans.py tests/acceptance/test_kills.py \
		-o faulthandler_timeout=1800 $(ARGS)
	@REPLAY_ORDERS=$${REPLAY_ORDERS:-1000} $(BIN)/python -m pytest tests/guarantees/test_replay.py -s $(ARGS)
	@MODEL_OPERATIONS=$${MODEL_OPERATIONS:-1000000} \
		$(BIN)/python -m pytest tests/model -s -o faulthandler_timeout=86400 $(ARGS)
	@TWO_OWNERS_PLAYS=$${TWO_OWNERS_PLAYS:-10000} \
		$(BIN)/python -m pytest tests/guarantees/test_two_owners.py -s -o faulthandler_timeout=86400 $(ARGS)
	@FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-5000} \
		$(BIN)/python -m pytest tests/fuzz -o faulthandler_timeout=14400 $(ARGS)

check:
	@sh scripts/environment.sh $(VENV) dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict src $(wildcard tests/typing/*.py)
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/sizes.py src examples scripts bench
	$(BIN)/python -m compileall -q src tests examples
	@# Against the empty tree: in a clean clone a plain "git diff --check" has nothing to look at.
	git diff --check $$(git hash-object -t tree /dev/null)

format:
	@sh scripts/environment.sh $(VENV) dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench:
	@sh scripts/environment.sh $(VENV)
	@$(BIN)/python -m bench $(ARGS)

pictures:
	@sh scripts/environment.sh $(VENV) dev
	@PICTURES=docs/pictures $(BIN)/python -m pytest tests/web/real/test_pictures.py -q
	@echo "Look at them before they are committed: docs/pictures"

docs:
	@sh scripts/environment.sh $(VENV) docs
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs build/docs
	@echo "The documentation is in build/docs/index.html."

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests examples scripts bench docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
