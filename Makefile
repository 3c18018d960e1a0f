# Every target makes the virtual environment it needs. PYTHON chooses the interpreter (3.11 or later).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APT := DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 --yes --option DPkg::Lock::Timeout=300 --option Acquire::http::Timeout=30
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow lint bench leaderboard gallery docs site dist browser clean

demo: $(VENV)/core
	$(BIN)/equipoise demo

# In another order each time; the first line of the output has the seed. Three processes keep two cores busy, since some
# tests wait for a browser or a database.
test: $(VENV)/dev browser
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal

# The tests marked slow, which take minutes: a billion normals, 200 runs killed, 500 faults, 10,000 damaged stores.
test-slow: $(VENV)/dev browser
	$(BIN)/python -m pytest -m slow --durations 0 --capture no

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/peers
	$(BIN)/python benchmarks/ask_tell.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/estimate.py
	$(BIN)/python benchmarks/store.py

# Measures every strategy on the suite, and writes the tables of docs/reference/leaderboard.md, its CSV file and chart.
leaderboard: $(VENV)/dev
	$(BIN)/python benchmarks/leaderboard.py

# Draws the pictures of the gallery again.
gallery: $(VENV)/dev
	for script in $(filter-out %/picture.py,$(wildcard examples/gallery/*.py)); do $(BIN)/python $$script docs/gallery || exit 1; done

# Measures the slack of the paper's bounds and the coverage of the intervals, writes docs/explanation/bounds.md,
# docs/reference/coverage.md and the tables of docs/explanation/intervals.md, then runs every listing of the pages.
docs: $(VENV)/dev
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python -m benchmarks.few
	$(BIN)/python -m benchmarks.pools
	$(BIN)/python -m benchmarks.pool_sums
	$(BIN)/python -m benchmarks.contrasts
	$(BIN)/python -m pytest --quiet tests/unit/test_docs.py

# Builds the site from docs/ into build/site, without a network. Warnings are failures, broken links among them.
site: $(VENV)/dev
	$(BIN)/python -m sphinx -W --keep-going --fresh-env docs build/site

# Builds the wheel and the sdist into dist/, and tries both in clean environments: the core alone and with all extras,
# with every Python from 3.11 to 3.15 that is installed. PYTHONS chooses others.
dist: $(VENV)/release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/packages.py $(PYTHONS)

# A browser for the tests: an installed Chromium or Chrome, else Debian's where it may be installed (root and apt-get).
# Without one, the tests that need it are skipped.
browser:
	@$(foreach name,chromium chromium-browser google-chrome google-chrome-stable,command -v $(name) > /dev/null ||) \
	test -n "$$CHROME_PATH" || test -d "/Applications/Google Chrome.app" || { \
		test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "installing chromium for the browser tests" && \
		$(APT) update && $(APT) install --no-install-recommends chromium; \
	} || echo "no Chromium or Chrome: install one, or name one in CHROME_PATH; the browser tests are skipped without it"

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The core alone, as users install it; then everything that the tests and linters need.
$(VENV)/core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("equipoise needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(VENV)/dev: $(VENV)/core
	$(INSTALL) --editable ".[dev]"
	touch $@

# What builds and checks packages.
$(VENV)/release: $(VENV)/core
	$(INSTALL) --editable ".[release]"
	touch $@

# What benchmarks compare with.
$(VENV)/peers: $(VENV)/dev
	$(INSTALL) --editable ".[peers]"
	touch $@
