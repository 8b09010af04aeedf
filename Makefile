# make demo    a translator from nothing: sets up .venv, trains on the built-in corpus, scores, translates, draws
# make test    what continuous integration runs: sets up what tests need, then lint, types, tests
# make check   lint and types only        make bench   timings, side by side with peers (an idle machine, two hours)
# make soak    200 trainings killed and resumed, 10,000 damaged files read, 50 launches of several processes killed, every
#              family by 1, 2 and 4 processes (40 minutes): KILLS=… MUTANTS=… RANK_KILLS=… SEED=…

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check setup browser bench soak clean

demo: .venv/.installed
	$(BIN)/regard demo

test: setup browser check
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: .venv/.installed-dev

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

.venv/.installed-dev: .venv/.installed
	$(PIP) --editable '.[dev]'
	@touch $@

# The page's tests need a Chromium: Debian's where this runs as root, else the one $$CHROMIUM names.
browser:
	@if [ -z "$$CHROMIUM" ] && ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	fi

bench: setup
	@for file in training time_to_score decoding engine language vision cost memory startup attention probes taps page processes scaling waiting; do $(BIN)/python -m benchmarks.$$file || exit 1; done

KILLS ?= 200
RANK_KILLS ?= 50
MUTANTS ?= 10000
SEED ?= 1
soak: setup
	$(BIN)/python -m tests.soak.kills --kills $(KILLS) --seed $(SEED)
	$(BIN)/python -m tests.soak.fuzz --mutants $(MUTANTS) --seed $(SEED)
	$(BIN)/python -m tests.soak.rank_kills --kills $(RANK_KILLS) --seed $(SEED)
	$(BIN)/python -m tests.soak.rank_equality

clean:
	rm -rf build .venv .mypy_cache .pytest_cache .ruff_cache
