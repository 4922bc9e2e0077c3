# `make run`, `make cloud` and `make test` set everything up by themselves.
PORT ?= 8080
STORE ?= sqlite:///.cache/duetick.db
TRANSPORT ?= api
export PYTHON
# Python keeps what it compiled: a run of the tests starts it some hundreds of times.
export PYTHONDONTWRITEBYTECODE =

BIN = .venv/bin
# Three files at once: on two cores one of the three waits for servers and full minutes.
AT_ONCE ?= 3
SOURCE = layers functions tests

.PHONY: run cloud test quick lint format lock openapi pages package setup lab

run: setup
	@$(BIN)/duetick local --port $(PORT) --transport $(TRANSPORT) --store '$(STORE)'

cloud: setup lab
	@$(BIN)/python -m tests.lab.cloud --transport $(TRANSPORT)

# To lint computes, and to fetch the lab waits.
test: setup
	@$(MAKE) --no-print-directory --jobs 2 lint lab
	$(BIN)/pytest --numprocesses $(AT_ONCE) --no-loadscope-reorder

quick: setup
	$(BIN)/pytest -m "not slow" --numprocesses $(AT_ONCE) --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/ruff format --check $(SOURCE)
	$(BIN)/mypy layers tests
	@for function in functions/*/; do $(BIN)/mypy $$function || exit 1; done
	PYTHONPATH=layers/duetick $(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

# The API's document is made anew after a change of its routes or models; a test compares.
openapi: setup
	$(BIN)/python -m duetick.api > layers/duetick/duetick/api/openapi.json

# The pages and the TypeScript client are built anew after a change of their sources or of the API's
# document; a test compares.
pages: setup
	@$(BIN)/python -m tests.lab.pages

# A release: the wheel, from which `duetick new` and `duetick package` work anywhere, and the deployable
# for whoever takes it as it is.
package: setup
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/duetick package --to dist/stack

# The lock is made anew after a change of pyproject.toml; it needs uv.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links --python-version 3.11 --extra dev pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --python-version 3.13 -c requirements.lock \
		--extra layer pyproject.toml -o layers/deps/requirements.txt

# What the tests run against besides Python: a failure here is told again by the tests that need it.
lab: setup
	-@$(BIN)/python -m tests.lab.install

setup:
	@.ci/setup
