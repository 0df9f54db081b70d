#!/bin/sh
# Builds the source distribution and the wheel into dist/ and checks both, with tools in an environment of their own.
set -eu
tools=.cache/release
[ "$tools/.ready" -nt requirements/release.txt ] || {
  rm -rf "$tools"
  .venv/bin/python -m venv --without-pip "$tools"
  .venv/bin/python -m pip --python "$tools/bin/python" install --quiet --disable-pip-version-check \
    --require-hashes --requirement requirements/release.txt
  touch "$tools/.ready"
}
rm -rf build dist
"$tools/bin/python" -m build --outdir dist # the wheel is built from the source distribution
"$tools/bin/twine" check --strict dist/*
"$tools/bin/check-wheel-contents" dist/*.whl
ls -l dist
