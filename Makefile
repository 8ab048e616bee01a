# The two commands a newcomer needs: `make demo` and `make test`.
# Needed beforehand: Rust 1.88 or newer, a C compiler (its linker), Python 3.11 or newer.

SHELL := /bin/sh
UV := $(shell command -v uv 2>/dev/null || echo $(CURDIR)/.tools/uv/bin/uv)
export UV_LOCKED := true
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
RUST_MINOR_MIN := 88
# The system's certificates where it has some: a network may sign with its own.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS := true
export UV_NATIVE_TLS := true
endif

.PHONY: demo play test test-faults torture audit sbom guide bench fidelity agreement catalogue test-rust test-python wasm fuzz fuzz-long kernel site wheel wheel-test vm-tools browser browsers capture-tools ssh-tools python quick check-rust clean-demo

demo: python clean-demo  ## Compares five congestion controls on a published path.
	@$(UV) run --no-sync dragstrip run caia-110729a/adsl1 --out demo

clean-demo:
	@rm -rf demo

play: check-rust $(UV)  ## The playground in one file: python/dragstrip/play/page.html.
	@UV=$(UV) .ci/page
	@echo python/dragstrip/play/page.html

test: test-rust test-python  ## Everything that .ci/run checks; pytest's summary comes last.

bench: check-rust  ## This simulator, ns-3, ns-2 and the floor on the same path (docs/performance.md); BENCH=--quick.
	@bench/run $(BENCH)

fidelity: python  ## How far the simulator is from Linux (docs/fidelity.md), from stored recordings.
	@$(UV) run --no-sync dragstrip validate --write-docs docs/fidelity.md

catalogue: python  ## Every published figure beside ours (docs/catalogue.md and experiments/*/README.md); minutes.
	@$(UV) run --no-sync dragstrip run all --write-docs docs/catalogue.md

agreement: python  ## The simulator beside a kernel on published experiments (docs/agreement-*.md); an hour.
	@$(UV) run --no-sync dragstrip validate bu-cs655-2022 --write-docs docs/agreement-bu-cs655-2022.md
	@$(UV) run --no-sync dragstrip validate geni-tcp --only linux-6 --load bpf/exp.bpf.c --duration 10s \
	  --write-docs docs/agreement-geni-tcp.md

test-rust: python capture-tools
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
# The bindings have no tests of their own and would need libpython to link: pytest tests them. No documentation has code to run.
	cargo test --locked --workspace --exclude dragstrip-py --quiet --lib --bins --tests
	cargo xtask generate --check
	cargo xtask tidy
	@$(MAKE) --no-print-directory wasm fuzz

# The core compiles for the browser.
CORE := units packet cc qdisc link tcp recording scenario experiment measures capture sim conformance
wasm:
	@rustup target add wasm32-unknown-unknown >/dev/null 2>&1 \
	|| { echo "Skipped: check for the browser: rustup target add wasm32-unknown-unknown"; exit 0; }; \
	cargo check --locked --quiet --target wasm32-unknown-unknown $(CORE:%=-p dragstrip-%)

fuzz:  ## Every parser of foreign text or bytes, with the same 20,000 inputs each time (fuzz/README.md).
	@command -v c++ >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -q -y --no-install-recommends g++; } \
	|| { echo "Skipped: fuzz targets need a C++ compiler: apt-get install g++"; exit 0; }; \
	cargo xtask fuzz
	@$(UV) run --no-sync python fuzz/recording.py
	@$(UV) run --no-sync python fuzz/foreign.py

fuzz-long:  ## New inputs, for an hour each; FUZZ_SECONDS=N.
	cargo xtask fuzz --seconds $${FUZZ_SECONDS:-3600}
	$(UV) run --no-sync python fuzz/recording.py --seconds $${FUZZ_SECONDS:-3600}
	$(UV) run --no-sync python fuzz/foreign.py --seconds $${FUZZ_SECONDS:-3600}

test-python: python kernel browser browsers capture-tools ssh-tools
	@UV=$(UV) .ci/page --or-skip
	@UV=$(UV) .ci/advisories
	$(UV) run --no-sync ruff check .
	$(UV) run --no-sync ruff format --check .
	$(UV) run --no-sync mypy
	$(UV) run --no-sync pytest

# The kernel for the tests with a real one, before the first of them. Where it cannot be had, they are skipped by name.
kernel: python vm-tools
	@$(UV) run --no-sync dragstrip kernel list --json | grep -q '"name"' \
	|| { command -v qemu-system-x86_64 >/dev/null 2>&1 && $(UV) run --no-sync dragstrip kernel fetch; } \
	|| echo "For the tests with a real kernel: dragstrip kernel fetch"

# The browser for the tests of the report's page and the playground (tests/viewer, tests/play), which are skipped by name without it.
browser:
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q \
	     && apt-get install -q -y --no-install-recommends chromium; } \
	|| echo "For the tests of the report's page: apt-get install chromium"

# Firefox and WebKit for tests/play/test_engines.py, which skips them by name: 140 MB to fetch, 510 on the disk, 46 s beside Chromium.
browsers: browser
	@{ command -v firefox-esr && command -v WebKitWebDriver && command -v Xvfb; } >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q \
	     && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends firefox-esr webkit2gtk-driver xvfb; } \
	|| echo "For the tests of the playground in Firefox and WebKit: apt-get install firefox-esr webkit2gtk-driver xvfb"

# What reads captures and exports in tests/captures, tests/test_export.py and crates/sim/tests/capture.rs; without it these are skipped.
capture-tools:
	@{ command -v tshark && command -v tcpdump && command -v tcptrace && command -v tcpstat && command -v flent; } >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q \
	     && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends tshark tcpdump tcptrace tcpstat flent; } \
	|| echo "For the tests of captures: apt-get install tshark tcpdump tcptrace tcpstat flent"

# What the tests of engine ssh need: hosts made of namespaces, each with an sshd (tests/ssh); skipped by name without.
ssh-tools:
	@{ command -v ssh && PATH="$$PATH:/usr/sbin" command -v sshd && PATH="$$PATH:/usr/sbin" command -v tc; } >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q \
	     && mkdir -p /etc/ssh && { [ -e /etc/ssh/sshd_not_to_be_run ] || [ -e /usr/sbin/sshd ] || touch /etc/ssh/sshd_not_to_be_run; } \
	     && apt-get install -q -y --no-install-recommends openssh-server openssh-client iproute2; } \
	|| echo "For the tests of engine ssh: apt-get install openssh-server openssh-client iproute2"

# What the tests with a real kernel need besides it.
vm-tools:
	@{ command -v qemu-system-x86_64 && command -v clang && [ -e /usr/include/bpf/libbpf.h ]; } >/dev/null 2>&1 \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q \
	     && apt-get install -q -y --no-install-recommends qemu-system-x86 clang libbpf-dev; } \
	|| echo "For the tests with a real kernel: apt-get install qemu-system-x86 clang libbpf-dev"
	@rustup target add x86_64-unknown-linux-musl >/dev/null 2>&1 \
	|| echo "For the tests with a real kernel: rustup target add x86_64-unknown-linux-musl"

test-faults: python ssh-tools  ## Every moment of SIGKILL that docs/sweeps.md speaks of; the faults of a lab's hosts (docs/lab.md).
	DRAGSTRIP_FAULTS=full $(UV) run --no-sync pytest tests/sweep/test_faults.py tests/sweep/test_cluster.py tests/ssh/test_faults.py

torture: python  ## Everything that docs/reliability.md promises, tried for an hour; TORTURE_MINUTES=N, ONLY=KIND,...
	@$(UV) run --no-sync python tests/torture/everything.py --minutes $${TORTURE_MINUTES:-60} --only "$(ONLY)"

audit: python  ## Licences, origins and advisories of all dependencies; fails where a database cannot be reached.
	@UV=$(UV) .ci/advisories --strict

sbom: python  ## The bill of materials of a release, in dist/.
	@UV=$(UV) $(UV) run --no-sync python .ci/sbom.py dist/dragstrip.cdx.json

# Each in an environment of its own, by uv.lock.
site: $(UV)  ## The documentation as a site, in dist/site; it needs no network to be read.
	@UV_PROJECT_ENVIRONMENT=.tools/site $(UV) sync --quiet --locked --only-group site
	@.tools/site/bin/python .ci/site.py dist/site-source
	@NO_MKDOCS_2_WARNING=1 .tools/site/bin/mkdocs build --quiet --strict
	@echo dist/site/index.html

# zig links against the glibc of 2014 (manylinux2014), so that the wheel installs on any Linux since.
wheel: check-rust $(UV)  ## The wheel and the source distribution, in dist/ (docs/install.md).
	@UV_PROJECT_ENVIRONMENT=.tools/wheel $(UV) sync --quiet --locked --only-group wheel
	@rm -f dist/*.whl dist/*.tar.gz
	@PATH="$(CURDIR)/.tools/wheel/bin:$$PATH" maturin build --release --locked --zig --compatibility manylinux2014 --out dist
	@PATH="$(CURDIR)/.tools/wheel/bin:$$PATH" maturin sdist --out dist

wheel-test:  ## The wheel of dist/ in an empty environment without Rust: size, time to the first table.
	@.ci/wheel-test dist

guide: python  ## The sweeps behind docs/which-congestion-control.md and docs/which-queue.md, and the pages.
	$(UV) run --no-sync dragstrip sweep bench/sweep.toml --against cubic --out runs/guide --replace
	$(UV) run --no-sync python -m dragstrip.sweep.guide runs/guide docs/which-congestion-control.md
	$(UV) run --no-sync dragstrip sweep bench/queues.toml --out runs/queues --replace
	$(UV) run --no-sync python -m dragstrip.sweep.queues runs/queues docs/which-queue.md

python: check-rust $(UV)  ## The environment in .venv, with the extension compiled and current.
	@test -d .venv || echo "Fetching packages and compiling; the first time this takes about a minute."
	@$(UV) sync --quiet --locked --compile-bytecode

# For the author of an algorithm: without optimisation across crates. The next `make` or `uv run --locked` builds in full, for it sees the new time.
QUICK := $(abspath $(or $(CARGO_TARGET_DIR),target)/quick)
quick: check-rust  ## The core in seconds after an edit, for trying it (docs/new-algorithm.md): .venv/bin/dragstrip ...
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
	@python3 -c 'import ensurepip' 2>/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -q -y python3-venv; } \
	|| { echo "Python's venv module is missing. On Debian: apt-get install python3-venv (or install uv yourself)"; exit 1; }
	@python3 -m venv .tools/uv
	@.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --only-binary :all: --no-deps --requirement .ci/uv.txt
	@touch $@
