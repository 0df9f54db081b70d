#!/bin/sh
# Runs every test: what shares a Spark session and a Kafka broker in one process, and everything else beside it in as
# many as there are processors, at most four; the first waits for Java and the broker much of its time. Arguments go to
# both.
set -u
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
processes=$((cores < 4 ? cores : 4))
log=.cache/shared-tests.log
mkdir -p .cache
.venv/bin/python -m pytest -m "spark or broker" -o cache_dir=.cache/pytest-shared "$@" > "$log" 2>&1 &
shared=$!
trap 'kill "$shared" 2>/dev/null' INT TERM
.venv/bin/python -m pytest -m "not spark and not broker" --numprocesses "$processes" --dist worksteal "$@"
others=$?
echo "tests that share Spark and the broker, started beside these:"
wait "$shared"
shared=$?
cat "$log"
[ "$others" -eq 0 ] && [ "$shared" -eq 0 ]
