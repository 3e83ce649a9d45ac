# Every target sets up .venv first, with no more than it needs; nothing but Python >= 3.11 has to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Only what is imported is compiled, when it is: of what is installed that is a small part.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
BASE := $(VENV)/.base
STAMP := $(VENV)/.installed

.PHONY: setup docs demo manual test test-long test-cluster browser java check format bench clean

setup: $(STAMP)

# What `pip install .` brings: enough for the demo.
$(BASE): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	@touch $(BASE)

# And what tests and checks need.
$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[test,check]'
	@touch $(BASE) $(STAMP)

demo: $(BASE)
	@$(BIN)/python -m neardup demo demo-output --force

# The page of the manual, for who packs neardup.
manual: $(BASE)
	@mkdir -p build && $(BIN)/python scripts/manual.py build/neardup.1

test: $(STAMP) browser java
	$(BIN)/python -m pytest -n auto --dist loadfile

# The same with more examples, longer streams, larger corpora and more kills.
test-long: $(STAMP)
	NEARDUP_LONG=1 $(BIN)/python -m pytest -n auto --dist loadfile -o faulthandler_timeout=3600 --ignore tests/promises

# A real cluster on loopback, and what dies in it: some ten minutes.
test-cluster: $(STAMP) java
	NEARDUP_CLUSTER=1 $(BIN)/python -m pytest -o faulthandler_timeout=3600 tests/spark/test_spark_cluster.py

# The tests of pages drive a real browser; without one they are skipped and say so.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the tests of pages"; \
		(apt-get install -y -qq chromium || (apt-get update -qq && apt-get install -y -qq chromium)) >/dev/null 2>&1 \
			|| echo "chromium cannot be installed: the tests of pages will be skipped"; \
	fi

# Spark runs on a Java; without one its tests are skipped and say so.
java:
	@command -v java >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing openjdk-17-jre-headless for the tests of Spark"; \
		(apt-get install -y -qq openjdk-17-jre-headless || (apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless)) \
			>/dev/null 2>&1 || echo "Java cannot be installed: the tests of Spark will be skipped"; \
	fi

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	for script in one_machine scale flow explore learned methods contamination disk_index vowel_marks spark; do $(BIN)/python benchmarks/$$script.py --small || exit 1; done

# The pages as a site in build/site, to be read without a network; a broken link fails.
docs: $(BASE)
	$(INSTALL) '.[docs]'
	$(BIN)/python scripts/recipe_fields.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
