#!/bin/sh
# Runs every test: those that share a Kafka broker in one process, those that share a Spark session alone in another,
# and everything else beside them in as many as there are processors, at most four; the first two wait for Java much of
# their time. Arguments go to all.
set -u
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
processes=$((cores < 4 ? cores : 4))
mkdir -p .cache
started=""

beside() { # NAME MARKS ARGUMENTS...
  name=$1 marks=$2
  shift 2
  .venv/bin/python -m pytest -m "$marks" -o cache_dir=".cache/pytest-$name" "$@" > ".cache/$name-tests.log" 2>&1 &
  started="$started $name=$!"
}

stop() {
  for each in $started; do kill "${each#*=}" 2>/dev/null; done
}

trap stop INT TERM
beside broker "broker" "$@"
beside spark "spark and not broker" "$@"
.venv/bin/python -m pytest -m "not spark and not broker" --numprocesses "$processes" --dist worksteal "$@"
failed=$?
for each in $started; do
  echo "tests that share a ${each%=*}, started beside these:"
  wait "${each#*=}" || failed=1
  cat ".cache/${each%=*}-tests.log"
done
exit "$failed"
