# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin

unexport PYTHONDONTWRITEBYTECODE # tests start Python a hundred times, and all of them compile what none may keep

.PHONY: help demo test check versions lint format types bench docs lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready ## plan and audit a recorded cluster on local Spark: tables, Parquet and a picture
	$(BIN)/evenlag demo

test: .venv/.ready ## check style and types and run every test: unit, property, Spark, a real broker, the README
	@sh scripts/test.sh

check: .venv/.ready lint ## check style and types and run the quick tests: no Spark, no broker, no long properties
	$(BIN)/python -m pytest -m "not slow and not spark and not broker" --numprocesses auto --maxprocesses 4

versions: .venv/.ready ## run tests on another PySpark or kafka-python: make versions pyspark=4.3.0, kafka=newest
	@sh scripts/versions.sh $(if $(kafka),kafka-python $(kafka),pyspark $(pyspark)) $(tests)

lint: .venv/.ready types ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.ready ## check types alone
	$(BIN)/mypy -p evenlag -p benchmarks

format: .venv/.ready ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.ready ## measure and compare with other solvers; each table goes to docs/benchmarks/NAME.md
	$(BIN)/python -m benchmarks $(tables)

docs: .venv/.docs ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: .venv/.ready ## resolve constraints.txt anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 pyproject.toml --extra all --extra connect --extra dev --extra docs \
	  --no-annotate --no-header --quiet --upgrade --output-file constraints.txt
	@printf '%s\n%s\n' '# Versions of a reproducible set-up; `make lock` writes this file anew.' "$$(cat constraints.txt)" > constraints.txt

clean: ## remove everything that the targets made
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out site *.egg-info evenlag/search/improve/_kernel.* evenlag/search/exact/_partition.*

.venv/.ready: pyproject.toml constraints.txt scripts/setup.sh
	@PYTHON='$(PYTHON)' sh scripts/setup.sh

.venv/.docs: .venv/.ready
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@
