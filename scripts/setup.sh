#!/bin/sh
# Makes .venv with evenlag (editable), every extra and the development tools, at the locked versions.
set -eu
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "evenlag needs Python 3.11 or newer; '$python' was not found (make PYTHON=…)" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "evenlag needs Python 3.11 or newer; '$python' is $("$python" --version) (make PYTHON=…)" >&2
  exit 1
}
[ -x .venv/bin/python ] || {
  echo "setting up .venv (a few minutes the first time)"
  rm -rf .venv
  if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv .venv
  else  # Debian without python3-venv: use the system's pip to put one in
    "$python" -m venv --without-pip .venv
    "$python" -m pip --python .venv/bin/python install --quiet pip
  fi
}
pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
$pip install --require-hashes --requirement requirements/dev.txt
$pip install --no-deps --no-build-isolation --editable .
touch .venv/.ready
