#!/bin/sh
# Runs every test in lines beside one another, each with what it shares started once: a Kafka broker; a Spark session;
# style and types; and everything else in as many processes as there are processors, at most four, then a broker and a
# Spark session, then Sparks of their own. The others wait much of their time, for Java or for a group to settle; more
# lines at once would wait for processors only. Arguments go to all tests. The last lines sum up: what ran in which
# line, for how long, and the slowest tests.
# Without the variable `all`, tests marked `long` do not run, nor two of three further cases of a test that is slow, has
# more than 100 or takes a seed, and random cases are half as many.
set -u
if [ "${all:-}" ]; then
  share=0.2 rest="" one_of=1
else
  share=0.1 rest=" and not long" one_of=3
fi
export EVENLAG_TEST_CASES="${EVENLAG_TEST_CASES:-$share}"
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
processes=$((cores < 4 ? cores : 4))
lines="quick lint broker spark topics cluster"
mkdir -p .cache
for name in $lines; do rm -f ".cache/$name-tests.log" ".cache/$name-tests.time"; done
started=""

timed() { # NAME COMMAND...: note the seconds it takes
  line=$1 began=$(date +%s)
  shift
  "$@"
  status=$?
  echo $(($(date +%s) - began)) > ".cache/$line-tests.time"
  return "$status"
}

marked() { # NAME MARKS ARGUMENTS...
  name=$1 marks=$2
  shift 2
  .venv/bin/python -m pytest -m "$marks$rest" --share "$one_of" --durations=10 --durations-min=1 \
    -o cache_dir=".cache/pytest-$name" "$@" > ".cache/$name-tests.log" 2>&1 &
  trap "kill $!; exit 1" TERM
  wait "$!"
}

alone() { # NAME MARKS ARGUMENTS...
  timed "$1" marked "$@"
}

beside() { # COMMAND...: run it beside what follows
  "$@" &
  started="$started $!"
}

style() {
  make --no-print-directory lint > .cache/lint-tests.log 2>&1
}

topics_then_clusters() {
  failed=0
  alone topics "broker and spark" "$@" || failed=1
  alone cluster "cluster and not broker" "$@" || failed=1
  return "$failed"
}

quick() {
  .venv/bin/python -m pytest -m "not spark and not broker and not cluster$rest" --share "$one_of" \
    --numprocesses "$processes" --dist worksteal --durations=10 --durations-min=1 "$@"
}

shown() { # the quick line, on the terminal and in its log
  { timed quick quick "$@"; echo $? > .cache/quick-tests.status; } 2>&1 | tee .cache/quick-tests.log
  return "$(cat .cache/quick-tests.status)"
}

summary() {
  echo
  echo "line      seconds  outcome"
  for name in $lines; do
    outcome=$(grep . ".cache/$name-tests.log" 2>/dev/null | tail -n 1 | sed 's/^=* *//; s/ *=*$//')
    printf '%-8s  %7s  %s\n' "$name" "$(cat ".cache/$name-tests.time" 2>/dev/null)" "$outcome"
  done
  echo "slowest tests:"
  cat .cache/*-tests.log | grep -E '^[0-9.]+s (call|setup|teardown) ' | sort -rn | head -n 10
}

stop() {
  for each in $started; do kill "$each" 2>/dev/null; done
}

trap stop INT TERM
beside timed lint style
beside alone broker "broker and not spark" "$@"
beside alone spark "spark and not broker and not cluster" "$@"
shown "$@"
failed=$?
beside topics_then_clusters "$@"
for each in $started; do
  wait "$each" || failed=1
done
for name in lint broker spark topics cluster; do
  echo "the line $name, run beside these:"
  cat ".cache/$name-tests.log"
done
summary
exit "$failed"
