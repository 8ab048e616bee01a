# The two commands a newcomer needs: `make demo` and `make test`.
# Needed beforehand: Rust 1.88 or newer, a C compiler (its linker), Python 3.11 or newer.

SHELL := /bin/sh
UV := $(shell command -v uv 2>/dev/null || echo $(CURDIR)/.tools/uv/bin/uv)
export UV_LOCKED := true
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
RUST_MINOR_MIN := 88
CARGO_MUTANTS := 27.1.0
# The system's certificates where it has some: a network may sign with its own.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS := true
export UV_NATIVE_TLS := true
endif

.PHONY: address demo play test check glossary test-faults test-hosts torture mutants audit sbom guide passports queues board regressions bench fidelity agreement agreement-trees agreement-media learning-study diagnosis catalogue fuzz-long gallery history results crates site wheel wheel-test python pictures quick core check-rust clean-demo

demo: python clean-demo  ## Compares five congestion controls on a published path.
	@$(UV) run --no-sync dragstrip run caia-110729a/adsl1 --out demo

clean-demo:
	@rm -rf demo

play: check-rust $(UV)  ## The playground in one file: python/dragstrip/playground/page.html.
	@UV=$(UV) .ci/page
	@echo python/dragstrip/playground/page.html

check: export TOOLS = none
check: $(UV)  ## Before a commit: what the change since main can break, in a minute or two; installs nothing. ALL=1: as if all had changed.
	@UV=$(UV) .ci/check.py

test: check-rust $(UV)  ## Everything that .ci/run checks, its set-up included; pytest's summary comes last. TOOLS=none installs no system package.
	@$(MAKE) --no-print-directory -j2 before-pytest
	@$(MAKE) --no-print-directory pytest

bench: check-rust  ## This simulator, ns-3, ns-2 and the floor on the same path (docs/explanation/performance.md); BENCH=--quick.
	@bench/run $(BENCH)

fidelity: python  ## How far the simulator is from Linux (docs/reference/fidelity.md), from stored recordings.
	@$(UV) run --no-sync dragstrip validate --write-docs docs/reference/fidelity.md

address:  ## Writes REPO=OWNER/REPO, the repository's address, into every file that names it (docs/how-to/release.md).
	@python3 -m tools.address "$(REPO)"

glossary: python  ## The page of the terms (docs/reference/glossary.md).
	@$(UV) run --no-sync python -m tools.glossary docs/reference/glossary.md

diagnosis: python  ## How often diagnose is right (docs/reference/diagnosis.md), on 3,000 situations with known causes; 15 minutes of a core. DIAGNOSIS="-n 500": fewer.
	@$(UV) run --no-sync python -m tests.calibration.page docs/reference/diagnosis.md $(DIAGNOSIS)

catalogue: python  ## Every published figure beside ours (docs/reference/catalogue.md and experiments/*/README.md); minutes.
	@rm -rf runs/catalogue
	@$(UV) run --no-sync dragstrip run all --out runs/catalogue
	@$(UV) run --no-sync python -m tools.catalogue runs/catalogue docs/reference/catalogue.md

agreement: python  ## The simulator beside a kernel on published experiments (docs/agreement-*.md); an hour.
	@$(UV) run --no-sync dragstrip validate bu-cs655-2022 --write-docs docs/reference/agreement-bu-cs655-2022.md
	@$(UV) run --no-sync dragstrip validate geni-tcp --only linux-6 --load bpf/exp.bpf.c --duration 10s \
	  --write-docs docs/reference/agreement-geni-tcp.md

learning-study: python  ## Two trained policies on simulator and kernel (docs/reference/learning-study.md); minutes. TRAIN=yes trains them first: torch brings gigabytes.
	@$(UV) run --no-sync $(if $(TRAIN),--with torch==2.15.0) python -m tools.learning_study $(if $(TRAIN),--train) docs/reference/learning-study.md

quic-algorithms: python  ## One algorithm in TCP and in QUIC's stacks (docs/reference/quic-algorithms.md); some minutes.
	@$(UV) run --no-sync python -m tools.quic_algorithms docs/reference/quic-algorithms.md

agreement-trees: python  ## Class trees on the simulator and on a kernel (docs/reference/agreement-trees.md); a quarter of an hour.
	@$(UV) run --no-sync python -m tools.tree_agreement docs/reference/agreement-trees.md

agreement-media: python  ## Media under a kernel, on both engines (docs/reference/agreement-media.md); a quarter of an hour.
	@$(UV) run --no-sync python -m tools.media_agreement docs/reference/agreement-media.md

# What comes before pytest, two stages at a time. A stage prints its output when it ends, with its time.
STAGE := .ci/stage
.PHONY: before-pytest tools lint-rust unit-tests generated fuzz page instructions kernel lint-python advisories site-builds pytest capture-tools
before-pytest: lint-rust tools core unit-tests kernel fuzz page generated instructions lint-python advisories site-builds

tools: check-rust $(UV)
	@.ci/tools

lint-rust: check-rust .venv/bin/python
	@$(STAGE) rustfmt cargo fmt --all --check
	@$(STAGE) clippy cargo clippy --locked --workspace --all-targets --quiet -- -D warnings

# The bindings have no tests of their own and would need libpython to link: pytest tests them. No documentation has code to run.
unit-tests: tools lint-rust
	@$(STAGE) "unit tests" cargo test --locked --workspace --exclude dragstrip-py --quiet --lib --bins --tests

# In `make test` xtask is the program that the unit tests built: `cargo xtask` would compile the experiment, the scenario and
# what they need again, with other features.
XTASK := cargo xtask
ifneq ($(filter before-pytest,$(MAKECMDGOALS)),)
XTASK := $(abspath $(or $(CARGO_TARGET_DIR),target)/debug/xtask)
fuzz: unit-tests
endif

generated: unit-tests
	@$(STAGE) "generated files" $(XTASK) generate --check
	@$(STAGE) tidy $(XTASK) tidy

fuzz: core  ## Every parser of foreign text or bytes, with the same inputs each time (fuzz/README.md).
	@.ci/tools fuzz
	@! .ci/tools --has fuzz || $(STAGE) "fuzz targets" $(XTASK) fuzz
	@$(STAGE) "fuzz recordings" $(UV) run --no-sync python fuzz/recording.py
	@$(STAGE) "fuzz foreign files" $(UV) run --no-sync python fuzz/foreign.py
	@$(STAGE) "fuzz shell scripts" $(UV) run --no-sync python fuzz/shell.py

fuzz-long:  ## New inputs, for an hour each; FUZZ_SECONDS=N.
	cargo xtask fuzz --seconds $${FUZZ_SECONDS:-3600}
	$(UV) run --no-sync python fuzz/recording.py --seconds $${FUZZ_SECONDS:-3600}
	$(UV) run --no-sync python fuzz/foreign.py --seconds $${FUZZ_SECONDS:-3600}

# The page's core is the simulator and all crates below it, compiled for a browser.
page: unit-tests
	@UV=$(UV) $(STAGE) "the playground's page" .ci/page --or-skip

instructions: tools core  ## What a packet costs, counted under valgrind, against bench/instructions.json.
	@.ci/tools counts
	@$(STAGE) instructions bench/instructions

# The agent and a kernel, for the tests with a real one. Where they cannot be had, these are skipped by name.
kernel: tools core
	@! .ci/tools --has agent || $(STAGE) "the agent" $(UV) run --no-sync dragstrip doctor || true
	@[ "$(TOOLS)" = none ] || ! .ci/tools --has kernel || $(UV) run --no-sync dragstrip kernel list --json | grep -q '"name"' \
	|| $(STAGE) "a kernel" $(UV) run --no-sync dragstrip kernel fetch \
	|| echo "For the tests with a real kernel: dragstrip kernel fetch"

lint-python: core
	@$(STAGE) ruff $(UV) run --no-sync ruff check .
	@$(STAGE) "ruff format" $(UV) run --no-sync ruff format --check .
	@$(STAGE) mypy $(UV) run --no-sync mypy

# Warnings end the build: a page in no navigation, a link that leads nowhere.
site-builds: core
	@$(STAGE) "the documentation as a site" $(MAKE) --no-print-directory site

advisories: core
	@UV=$(UV) $(STAGE) advisories .ci/advisories

# What must be alone on the machine waits until it is (tests/turns.py). In order and by one process: pytest -n 0 --randomly-seed=N.
pytest: core
	$(UV) run --no-sync pytest -n logical --maxprocesses 4 --durations 10

capture-tools:  ## What reads captures and exports in tests.
	@.ci/tools captures

test-faults: python  ## Every moment of SIGKILL that docs/how-to/sweeps.md speaks of; the faults of a lab's hosts (docs/how-to/lab.md).
	@.ci/tools ssh agent
	DRAGSTRIP_FAULTS=full $(UV) run --no-sync pytest tests/sweep/test_faults.py tests/sweep/test_cluster.py tests/ssh/test_faults.py

# Pass words to pytest by HOSTS="-k delay".
test-hosts: core  ## The tests of engines netns and ssh on Debian's kernel, in a guest in real time (docs/how-to/netns.md).
	@.ci/tools kernel ssh agent
	@$(UV) run --no-sync dragstrip kernel run true 2>/dev/null || $(UV) run --no-sync dragstrip kernel fetch
	DRAGSTRIP_HOSTS=full $(UV) run --no-sync dragstrip kernel run --time-limit 14400s -- sh -c 'dragstrip doctor && exec python -m pytest -n 0 \
	  -p no:cacheprovider tests/hosts tests/netns tests/ssh $(HOSTS)'

torture: python play  ## Everything that docs/explanation/reliability.md promises, tried for an hour; TORTURE_MINUTES=N, ONLY=KIND,...
	@$(UV) run --no-sync python tests/torture/everything.py --minutes $${TORTURE_MINUTES:-60} --only "$(ONLY)"

# Outside `make test`: hours of a core. MUTANTS="--only python --module python/dragstrip/io".
mutants: python  ## A random 200 mutants each of the core crates and of the Python package: the share that tests notice, and the others.
	@cargo install --quiet --locked --root .tools/mutants/rust --version $(CARGO_MUTANTS) cargo-mutants
	@UV_PROJECT_ENVIRONMENT=.tools/mutants/python $(UV) sync --quiet --locked --only-group mutants
	@$(UV) run --no-sync .ci/mutants.py $(MUTANTS)

audit: python  ## Licences, origins and advisories of all dependencies; fails where a database cannot be reached.
	@UV=$(UV) .ci/advisories --strict

sbom: python  ## The bill of materials of a release, in dist/.
	@UV=$(UV) $(UV) run --no-sync python .ci/sbom.py dist/dragstrip.cdx.json

pictures: python play  ## The pictures of README and docs, docs/images/*.png, from their commands and a headless Chromium; a minute.
	@$(UV) run --no-sync python -m tests.viewer.pictures

gallery: python  ## The gallery of races, docs/gallery.md, with its pictures and figures; half a minute.
	@$(UV) run --no-sync python -m tools.gallery docs/gallery.md

history: python  ## Fidelity and speed by commit, docs/reference/history-*.md, from what the clone's commits store.
	@$(UV) run --no-sync python -m tools.history docs/reference

# Each in an environment of its own, by uv.lock.
# RELEASED=folder: with the playground of each release, VERSION.html, for links that these made.
site: $(UV)  ## The documentation as a site, in dist/site; it needs no network to be read.
	@UV_PROJECT_ENVIRONMENT=.tools/site $(UV) sync --quiet --locked --only-group site
	@.tools/site/bin/python .ci/site.py dist/site-source $(RELEASED)
	@NO_MKDOCS_2_WARNING=1 .tools/site/bin/mkdocs build --strict
	@echo dist/site/index.html

# What passports begin with: the runs of CUBIC and Reno, which the wheel has.
BASELINES := python/dragstrip/studies/passport/baselines.json.gz
# zig links against the glibc of 2014 (manylinux2014), so that the wheel installs on any Linux since.
wheel: core play  ## The wheel and the source distribution, in dist/ (docs/how-to/install.md).
	@UV_PROJECT_ENVIRONMENT=.tools/wheel $(UV) sync --quiet --locked --only-group wheel
	@rm -f dist/*.whl dist/*.tar.gz
	@.ci/shipped .tools/wheel/bin/python
	@.venv/bin/python -m dragstrip.studies.passport.baselines $(BASELINES)
	@PATH="$(CURDIR)/.tools/wheel/bin:$$PATH" maturin build --release --locked --zig --compatibility manylinux2014 --out dist
	@PATH="$(CURDIR)/.tools/wheel/bin:$$PATH" maturin sdist --out dist
	@.tools/wheel/bin/python -m tools.description dist/*.whl dist/*.tar.gz
	@.tools/wheel/bin/twine check --strict dist/*.whl dist/*.tar.gz

# Useful alone. None is published (`publish = false`); without a registry that has the others, only units is compiled from its package.
CRATES := units packet cc qdisc link tcp capture recording scenario inspect player ngtcp2 quic rtp experiment sim strip
crates:  ## The packages of the crates that are useful alone, in target/package, as crates.io would take them.
	@for crate in $(CRATES); do \
	  cargo package --quiet --offline --no-verify --allow-dirty --exclude-lockfile -p dragstrip-$$crate || exit; done
	@cargo package --quiet --offline --allow-dirty --exclude-lockfile -p dragstrip-units

wheel-test:  ## The wheel of dist/ in an empty environment without Rust: size, time to the first table, a race on a kernel.
	@.ci/wheel-test dist

guide: python  ## The sweeps behind docs/how-to/which-congestion-control.md and docs/how-to/which-queue.md, and the pages.
	$(UV) run --no-sync dragstrip sweep bench/sweep.toml --competitor cubic --out runs/guide --replace
	$(UV) run --no-sync python -m tools.sweep_guide runs/guide docs/how-to/which-congestion-control.md
	$(UV) run --no-sync dragstrip sweep bench/queues.toml --out runs/queues --replace
	$(UV) run --no-sync python -m tools.queue_guide runs/queues docs/how-to/which-queue.md

passports: python  ## A passport of every built-in algorithm, docs/reference/passports.md and passport-rows.md; five minutes of two cores.
	@for name in $$($(UV) run --no-sync python -c 'from dragstrip import _core; print(*_core.ALGORITHMS)'); do \
	  $(UV) run --no-sync dragstrip passport $$name --out runs/passports/$$name >/dev/null || [ $$? -eq 3 ] || exit; done
	$(UV) run --no-sync python -m tools.passports runs/passports docs/reference/passports.md
	$(UV) run --no-sync python -m tools.results docs/results.md
	$(UV) run --no-sync python -m tools.board runs/passports

board: python  ## The board of the passports that `make passports` has made: runs/passports/board.html, sortable, and board.json.
	@$(UV) run --no-sync python -m tools.board runs/passports

regressions: python  ## Faults that stacks once had and the rows that tell them, docs/reference/regressions.md; a minute.
	@$(UV) run --no-sync python -m tools.regressions docs/reference/regressions.md

queues: python  ## A passport of every queue discipline that runs alone, docs/reference/queues.md; three minutes of two cores.
	@$(UV) run --no-sync python -m tools.queues docs/reference/queues.md

results: python  ## The harm of all pairs and docs/results.md, with the stored passports; three minutes of two cores.
	@$(UV) run --no-sync python -m tools.results docs/results.md --pairs

python: check-rust $(UV)  ## The environment in .venv, with the extension compiled and current.
	@test -d .venv || echo "Fetching packages and compiling; the first time this takes some minutes."
	@$(UV) sync --quiet --locked --compile-bytecode

# An empty environment: the bindings ask its interpreter what to compile against.
.venv/bin/python: | $(UV)
	@$(UV) venv --quiet --clear

# The same for tests, in a profile that is built in a third of the time, unless a current one is there. As after `make quick`, the next
# `make python` or `uv run --locked` builds in full: it sees the new time of pyproject.toml.
core: check-rust .venv/bin/python
	@MATURIN_PEP517_ARGS="--profile tests" $(STAGE) "the environment" $(UV) sync --quiet --locked --compile-bytecode
	@.venv/bin/python -c "from dragstrip import _core; raise SystemExit(_core.BUILT_PROFILE != 'release')" || touch pyproject.toml

# For the author of an algorithm: without optimisation across crates. The next `make` or `uv run --locked` builds in full, for it sees the new time.
QUICK := $(abspath $(or $(CARGO_TARGET_DIR),target)/quick)
quick: check-rust  ## The core in seconds after an edit, for trying it (docs/how-to/new-algorithm.md): .venv/bin/dragstrip ...
	@test -x .venv/bin/dragstrip || $(MAKE) --no-print-directory python
	@cargo build --locked --quiet --profile quick -p dragstrip-py --features extension-module
	@cd python/dragstrip && cp $(QUICK)/lib_core.so .quick.so && mv .quick.so _core.abi3.so
	@touch pyproject.toml

check-rust:
	@command -v cc >/dev/null 2>&1 || { \
	  echo "A C compiler is missing (Rust links with it). On Debian: apt-get install build-essential"; exit 1; }
	@minor=$$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'); \
	if [ -z "$$minor" ]; then \
	  echo "Rust is missing. Install it from https://rustup.rs and open a new shell."; exit 1; \
	elif [ "$$minor" -lt $(RUST_MINOR_MIN) ]; then \
	  echo "Rust 1.$$minor is too old (Debian 12's is); 1.$(RUST_MINOR_MIN) or newer is needed. Install it from https://rustup.rs"; exit 1; \
	fi

# uv from PyPI, in an environment of its own, when there is none on the PATH: the release of .ci/uv.txt, with one of its hashes.
$(CURDIR)/.tools/uv/bin/uv: .ci/uv.txt
	@command -v python3 >/dev/null 2>&1 || { \
	  echo "Python is missing. On Debian: apt-get install python3 python3-venv"; exit 1; }
	@.ci/tools venv
	@python3 -c 'import ensurepip' 2>/dev/null \
	|| { echo "Python's venv module is missing. On Debian: apt-get install python3-venv (or install uv yourself)"; exit 1; }
	@python3 -m venv .tools/uv
	@.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --only-binary :all: --no-deps --requirement .ci/uv.txt
	@touch $@
