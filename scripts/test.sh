#!/bin/sh
# Runs every test, in two processes side by side: what shares a Spark session and a Kafka broker, and everything else,
# which more than two processors split further. Arguments go to both.
set -u
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
split=$([ "$cores" -gt 2 ] && echo $((cores - 1 < 4 ? cores - 1 : 4)) || echo 0)
log=.cache/shared-tests.log
mkdir -p .cache
.venv/bin/python -m pytest -m "spark or broker" -o cache_dir=.cache/pytest-shared "$@" > "$log" 2>&1 &
shared=$!
trap 'kill "$shared" 2>/dev/null' INT TERM
.venv/bin/python -m pytest -m "not spark and not broker" --numprocesses "$split" --dist worksteal "$@"
others=$?
echo "tests that share Spark and the broker, started beside these:"
wait "$shared"
shared=$?
cat "$log"
[ "$others" -eq 0 ] && [ "$shared" -eq 0 ]
