# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin

unexport PYTHONDONTWRITEBYTECODE # tests start Python a hundred times, and all of them compile what none may keep

.PHONY: help demo test check few coverage versions lint format types bench docs java dist lock clean
.DEFAULT_GOAL := help

help: ## list the targets; times are for two cores, after the set-up of a few minutes that the first target does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready ## diagnose a recorded cluster, then plan and audit it on local Spark: tables, Parquet and a picture (about a minute)
	$(BIN)/evenlag demo --fleet

test: .venv/.ready ## check style and types and run the tests, with Spark and a real broker; all=1 adds long ones and more cases (forty minutes)
	@all=$(all) sh scripts/test.sh

check: .venv/.ready ## check style and types and run each quick test on a few of its cases (about a minute)
	@$(MAKE) --no-print-directory --jobs=2 lint few

few: .venv/.ready # each quick test on a few of its cases
	$(BIN)/python -m pytest -m "not slow and not spark and not broker and not cluster" --share 30 --numprocesses auto --maxprocesses 4

coverage: .venv/.ready ## run the quick tests and print by room how many lines they reach; share=30 runs fewer cases (minutes)
	@mkdir -p .cache
	@$(BIN)/pip install --quiet --disable-pip-version-check 'coverage>=7.6,<8'
	$(BIN)/python -m coverage run -m pytest -q -m "not slow and not spark and not broker and not cluster" --share $(or $(share),1)
	@$(BIN)/python -m coverage json --quiet
	@$(BIN)/python scripts/coverage_by_room.py .cache/coverage.json

versions: .venv/.ready ## run tests on another PySpark, kafka-python or broker: make versions pyspark=4.3.0, kafka=newest, broker=4.4.0 (minutes)
	@sh scripts/versions.sh $(if $(broker),broker $(broker),$(if $(kafka),kafka-python $(kafka),pyspark $(pyspark))) $(tests)

lint: .venv/.ready types ## check style and types (seconds; a minute the first time)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.ready ## check types alone (seconds; a minute the first time)
	$(BIN)/mypy -p evenlag -p benchmarks

format: .venv/.ready ## format the code (a second)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.ready ## compare with other solvers; a table goes to docs/benchmarks/NAME.md (minutes each, hours for all)
	$(BIN)/python -m benchmarks $(tables)

docs: .venv/.ready ## build the documentation site into site/ (about half a minute)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

java: .venv/.ready ## build the assignor for Java consumers into java/target/ (seconds; a minute the first time)
	@sh scripts/java.sh

dist: .venv/.ready ## build the source distribution and the wheel into dist/ and check both (about a minute)
	@sh scripts/dist.sh

lock: .venv/.ready ## choose the newest versions of all that the targets install (about a minute)
	@sh scripts/lock.sh

clean: ## remove everything that the targets made
	rm -rf .venv .cache java/target .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out site *.egg-info evenlag/search/improve/_kernel.* evenlag/search/exact/_partition.* evenlag/search/exact/_tables.*

.venv/.ready: pyproject.toml requirements/dev.txt scripts/setup.sh
	@PYTHON='$(PYTHON)' sh scripts/setup.sh
