#!/bin/sh
# Writes requirements/ anew: the newest versions that pyproject.toml allows, for every Python and platform, with hashes.
# Without addresses, so that a set-up takes them from the registry that pip is told to use.
set -eu
.venv/bin/python -m pip install --quiet --disable-pip-version-check uv
lock() { # FILE ARGUMENTS...
  file=requirements/$1
  shift
  .venv/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
    --no-annotate --no-header --output-file "$file" "$@"
  printf '%s\n%s\n' '# Written by `make lock`.' "$(cat "$file")" > "$file"
}
lock dev.txt pyproject.toml --extra all --group dev
lock release.txt --group release
# Its modules are named like PySpark's, so tests put it into a folder of its own.
echo 'pyspark-client>=4.0,<4.1' | lock spark-client.txt --no-deps -
