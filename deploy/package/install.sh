#!/bin/sh
# install.sh VENV OPTION…: install packages into a virtual environment, with uv (UV, its path, if
# it is on the PATH; fetched for a long lock file) or with pip, which take the same options.
set -eu
venv=$1
shift
python=$venv/bin/python
lock= before=
for option; do
  if [ "$before" = --requirement ]; then lock=$option; fi
  before=$option
done

temporary=
trap 'test -z "$temporary" || rm -rf "$temporary"' EXIT
trap 'exit 130' INT TERM

with_pip() {
  # An environment that uv has created has no pip.
  "$python" -m pip --version > /dev/null 2>&1 || "$python" -m ensurepip > /dev/null
  "$python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps "$@"
}

uv=${UV:-}
# Fetching uv takes longer than installing a few packages with pip.
if [ -z "$uv" ] && [ -n "$lock" ] && [ "$(grep -c == "$lock")" -ge 20 ]; then
  temporary=$(mktemp -d)
  fetched=$(dirname "$0")/requirements-uv.lock
  if with_pip --target "$temporary" --require-hashes --requirement "$fetched" 2> /dev/null; then
    uv=$temporary/bin/uv
  fi
fi
if [ -x "$uv" ]; then
  "$uv" pip install --quiet --python "$python" --no-deps "$@" && exit
  # An index that only the settings of pip name is unknown to uv.
  echo "uv failed (see above); trying pip" >&2
fi
with_pip "$@"
