#!/bin/sh
# Runs the pipeline's tests on another PySpark than that of .venv, which stays as it is: VERSION TESTS...
# Topics are left out: the connector of a new version comes to Maven repositories after it.
set -eu
version=${1:?name a version, such as 4.3.0}
shift
folder=.cache/pyspark-$version
[ -d "$folder" ] || {
  echo "fetching PySpark $version"
  rm -rf "$folder.part"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder.part" "pyspark==$version" py4j
  mv "$folder.part" "$folder"
}
PYTHONPATH=$PWD/$folder .venv/bin/python -c "import pyspark; assert pyspark.__version__ == '$version', pyspark"
PYTHONPATH=$PWD/$folder exec .venv/bin/python -m pytest -m "spark and not broker" "$@"
