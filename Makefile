# `make serve` runs the product, `make test` proves it; both set everything up on a machine with Python 3.11+, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: serve demo test judges orders coverage mutants lint bench bench-peers docs site page clean

# A server with sample tools; what it keeps lies in a copy of the example, so that the checkout stays as it is.
serve: $(INSTALLED)
	@mkdir -p .serve && cp -R examples/server/. .serve/
	@$(BIN)/crib bundle load -C .serve .serve/samples
	@$(BIN)/crib serve -C .serve

demo: $(INSTALLED)
	@$(BIN)/python examples/demo.py

test: $(READY)
	@echo "Running the suite, about 19,000 tests; the first seconds go into finding them …"
	@$(BIN)/python -m pytest -n auto -q

# Checks that need minutes or other people's programs, each in an environment of its own; some: make judges ARGS=schemathesis
judges: $(READY)
	@$(BIN)/python scripts/judges.py $(ARGS)

# Whether tests depend on their order: the whole suite in twenty orders, or fewer of less: make orders ARGS='--seeds 3 tests/core'
orders: $(READY)
	@$(BIN)/python scripts/orders.py $(ARGS)

# Which lines the suite runs, child processes of the suite included; those inside the sandbox write no figures.
coverage: $(READY)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n auto -q || true
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --skip-covered --sort=cover

# Which small changes of the source no test notices: make mutants ARGS=core/rules.py
mutants: $(READY)
	@$(BIN)/python scripts/mutants.py $(ARGS)

lint: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file tests/mypy.ini
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/house.py

bench: $(READY)
	@$(BIN)/python benchmarks/run.py $(ARGS)

# The frameworks that we compare ourselves with, in an environment of their own beside ours.
bench-peers: $(READY)
	@test -x benchmarks/.envs/peers/bin/python || $(PYTHON) -m venv benchmarks/.envs/peers
	@benchmarks/.envs/peers/bin/python -m pip install -q --disable-pip-version-check openai-agents pydantic-ai-slim fastmcp fastapi httptools uvloop langchain-core -e .
	@$(BIN)/python benchmarks/run.py peers

docs: $(READY)
	@$(BIN)/python docs/generate.py

# The documentation as a site in .site, built as strictly as the judge of that name does.
site: $(READY)
	@$(BIN)/python scripts/judges.py site
	@test ! -f .site/index.html || echo "read it with: python3 -m http.server --directory .site"

# The web page, from web/ into the package; what it makes is committed, so that an installation needs no Node.
page: $(READY)
	@$(BIN)/python scripts/page.py $(ARGS)

# uv installs in a second what takes pip half a minute; where uv cannot be had or cannot reach anything, pip does the work, and says what is
# wrong if it cannot either. uv is told to trust the certificates of the system and to write bytecode, as pip does; ours is written too, because
# otherwise every process of the first run compiles it anew.
define install
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'uv>=0.9,<1' 2>/dev/null && \
	UV_SYSTEM_CERTS=true UV_COMPILE_BYTECODE=true $(BIN)/python -m uv pip install -q --python $(BIN)/python $(1) 2>/dev/null || \
	{ echo "… with pip, which takes longer"; $(BIN)/python -m pip install -q --disable-pip-version-check $(1); }
	@$(BIN)/python -m compileall -q -j 0 src
	@touch $@
endef

# What runs the product: no test tool, no linter. The versions are those that the suite was run with.
$(INSTALLED): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Toolcrib needs Python 3.11 or newer; name one: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Making a Python environment in $(VENV) …"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing Toolcrib into $(VENV) …"
	$(call install,-c requirements-dev.txt -e .)

# What the suite and the linters need besides.
$(READY): $(INSTALLED)
	@echo "Installing what the tests need into $(VENV) …"
	$(call install,-r requirements-dev.txt)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .judges .orders .site .suite_runs
