#!/bin/sh
# Runs every test: those that share a Kafka broker in one process, and after them those with a Spark of their own in
# other processes; those that share a Spark session alone in another; and everything else beside them in as many as
# there are processors, at most four. The others wait for Java much of their time. Arguments go to all.
set -u
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
processes=$((cores < 4 ? cores : 4))
mkdir -p .cache
started=""

alone() { # NAME MARKS ARGUMENTS...
  name=$1 marks=$2
  shift 2
  .venv/bin/python -m pytest -m "$marks" -o cache_dir=".cache/pytest-$name" "$@" > ".cache/$name-tests.log" 2>&1 &
  trap "kill $!; exit 1" TERM
  wait "$!"
}

beside() { # COMMAND...: run it beside what follows
  "$@" &
  started="$started $!"
}

broker_then_clusters() {
  failed=0
  alone broker "broker" "$@" || failed=1
  alone cluster "cluster and not broker" "$@" || failed=1
  return "$failed"
}

stop() {
  for each in $started; do kill "$each" 2>/dev/null; done
}

trap stop INT TERM
beside broker_then_clusters "$@"
beside alone spark "spark and not broker and not cluster" "$@"
.venv/bin/python -m pytest -m "not spark and not broker and not cluster" --numprocesses "$processes" --dist worksteal "$@"
failed=$?
for each in $started; do
  wait "$each" || failed=1
done
for name in broker cluster spark; do
  echo "tests marked $name, run beside these:"
  cat ".cache/$name-tests.log"
done
exit "$failed"
