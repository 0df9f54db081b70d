#!/bin/sh
# Runs every test in lines beside one another, each with what it shares started once: a Kafka broker; a broker and a
# Spark session, and after them Sparks of their own; a Spark session alone; style and types; and everything else in as
# many processes as there are processors, at most four. The others wait much of their time, for Java or for a group to
# settle. Arguments go to all tests.
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

lint() {
  make --no-print-directory lint > .cache/lint-tests.log 2>&1
}

topics_then_clusters() {
  failed=0
  alone topics "broker and spark" "$@" || failed=1
  alone cluster "cluster and not broker" "$@" || failed=1
  return "$failed"
}

stop() {
  for each in $started; do kill "$each" 2>/dev/null; done
}

trap stop INT TERM
beside lint
beside topics_then_clusters "$@"
beside alone broker "broker and not spark" "$@"
beside alone spark "spark and not broker and not cluster" "$@"
.venv/bin/python -m pytest -m "not spark and not broker and not cluster" --numprocesses "$processes" --dist worksteal "$@"
failed=$?
for each in $started; do
  wait "$each" || failed=1
done
for name in lint broker topics cluster spark; do
  echo "the line $name, run beside these:"
  cat ".cache/$name-tests.log"
done
exit "$failed"
