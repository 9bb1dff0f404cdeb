#!/bin/sh
# install.sh VENV OPTION…: install packages into a virtual environment, with uv (UV, its path, if
# it is on the PATH; VENV-uv, where it was fetched; fetched for a long lock file) or with pip, which
# take the same options.
set -eu
here=$(dirname "$0")
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

# An environment that uv has created has no pip, which takes 17 MB: another Python's serves.
pip() {
  if "$python" -m pip --version > /dev/null 2>&1; then
    "$python" -m pip "$@"
  elif "${PYTHON:-python3}" -m pip --python "$python" --version > /dev/null 2>&1; then
    "${PYTHON:-python3}" -m pip --python "$python" "$@"
  else
    "$python" -m ensurepip > /dev/null
    "$python" -m pip "$@"
  fi
}

uv=${UV:-$venv-uv/bin/uv}
# Fetching uv takes longer than installing a few packages with pip.
if [ ! -x "$uv" ] && [ ! -e "$venv-uv" ] && [ -n "$lock" ] && [ "$(grep -c == "$lock")" -ge 20 ]; then
  temporary=$(mktemp -d)
  uv=$temporary/bin/uv
  for one in "$python" "${PYTHON:-python3}"; do
    [ -x "$uv" ] || sh "$here/fetch_uv.sh" "$one" "$temporary"
  done
fi
if [ -x "$uv" ]; then
  "$uv" pip install --quiet --python "$python" --no-deps "$@" && exit
  # An index that only the settings of pip name is unknown to uv.
  echo "uv failed (see above); trying pip" >&2
fi
pip install --quiet --disable-pip-version-check --no-compile --no-deps "$@"
