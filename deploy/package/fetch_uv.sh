#!/bin/sh
# fetch_uv.sh PYTHON FOLDER: fetch uv into FOLDER/bin with the pip of a Python, if it has one. Where
# uv cannot be had, the folder is empty.
set -eu
"$1" -m pip --version > /dev/null 2>&1 || exit 0
mkdir -p "$2"
"$1" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
  --requirement "$(dirname "$0")/requirements-uv.lock" --target "$2" 2> /dev/null || true
