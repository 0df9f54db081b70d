#!/bin/sh
# Runs tests on another release of a package than that of .venv, which stays as it is: PACKAGE VERSION TESTS...
# With `broker` for a package, on another Apache Kafka: its broker, Java clients and tools.
# The package is pyspark or kafka-python. The version may be `newest`: the newest release that the registry has.
# Of Spark's tests, topics are left out: the connector of a new version comes to Maven repositories after it.
set -eu
package=${1:?name a package: pyspark, kafka-python or broker}
version=${2:?name a version, such as 4.3.0, or newest}
shift 2
if [ "$package" = broker ]; then
  EVENLAG_KAFKA=$version exec .venv/bin/python -m pytest "$@"
fi
pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
case $package in
pyspark) module=pyspark marks="spark and not broker" beside=py4j ;;
kafka-python) module=kafka marks="not spark" beside= ;;
*) echo "no tests are known for other versions of $package" >&2; exit 1 ;;
esac
if [ "$version" = newest ]; then
  version=$($pip install --dry-run --ignore-installed --no-deps --report - "$package" |
    .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["install"][0]["metadata"]["version"])')
fi
if .venv/bin/python -c "import sys, $module; sys.exit($module.__version__ != '$version')"; then
  echo "$package $version is in .venv: make test runs on it"
  exit 0
fi
folder=.cache/$package-$version
[ -d "$folder" ] || {
  echo "fetching $package $version"
  rm -rf "$folder.part"
  $pip install --no-deps --target "$folder.part" "$package==$version" $beside
  mv "$folder.part" "$folder"
}
PYTHONPATH=$PWD/$folder .venv/bin/python -c "import $module; assert $module.__version__ == '$version', $module"
PYTHONPATH=$PWD/$folder exec .venv/bin/python -m pytest -m "$marks" "$@"
