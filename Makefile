# Airlane. `make` lists the recipes.
#
# What they need beyond Rust, gcc and make is iproute2; `make setup` installs it where it can.

CARGO    ?= cargo
# How long `make fuzz` looks for trouble, in cases for each property.
CASES    ?= 20000

.DEFAULT_GOAL := help
PARTS = units live lint claims determinism docs python lab

.PHONY: help setup demo test $(PARTS:%=part-%) fmt lint units determinism claims verdicts live python python-env figures validation experiments validate-ns2 validate-ns3 validate-kernel validate-live bench bench-python bench-live bench-relay bench-send packetdrill confusion soak fuzz worlds hostile site page lab docs reference static router deb version release deny clean

# $(call apt,program,package,what happens without it)
apt = @if command -v $(1) > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  { exec 9> /tmp/airlane-apt.lock && flock 9 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends $(2) > /dev/null 2>&1; } \
	  || echo "$@: could not install $(2); $(3)" >&2; \
	else echo "$@: $(2) is missing; $(3): sudo apt-get install $(2)" >&2; fi

help: ## List the recipes
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the recipes need: system packages (as root) and Rust components
	$(call apt,ip,iproute2,the live parts will be left out)
	@if command -v rustup > /dev/null; then \
	  rustup component list --installed 2> /dev/null | grep -q clippy || rustup component add rustfmt clippy; \
	  rustup target add $(WASM) 2> /dev/null || echo "$@: no $(WASM); make site cannot build the page's simulator" >&2; fi

demo: setup ## Show three applications over one lossy link, simulated and (as root) live
	$(CARGO) build $(DEMO) --features airlane-cli/compare
	@$(BUILT)/quick/examples/demo $(CARGO) build $(DEMO) --features airlane-cli/lab,airlane-cli/live --bin airlane
	@if python3 -c 'import venv, ensurepip' 2> /dev/null; then \
	  $(call native,quick,$(DEMO) --features airlane-cli/lab,airlane-cli/live --quiet) && $(MAKE) --no-print-directory --quiet .venv/figures \
	  && $(VENV)/python demo/figure.py; \
	else echo "$@: Python 3.11 with venv is missing; its figure is left out" >&2; fi

# Features of libraries follow from the packages and the targets that a build names. Program and Python
# module name the same, so that the module finds its libraries built.
BOTH = --locked -p airlane-cli -p airlane-py
BUILT = $(or $(CARGO_TARGET_DIR),target)
# Without link-time optimisation, which takes longer than everything that the demo shows, and without `airlane top`. The
# program is built after the simulated tables; airlane-live is named before, so that nothing is built twice.
DEMO = --profile quick $(BOTH) -p airlane-live --no-default-features --example demo

# $(call native,folder of the profile,options of the build): the Python module, where the package looks for it
native = PYO3_BUILD_EXTENSION_MODULE=1 $(CARGO) build $(2) --lib \
	&& cp $(BUILT)/$(1)/libairlane_native.so python/airlane/_native.abi3.so

# Two at once: while one links or waits for the network, another compiles. What fails ends nothing else.
test: setup ## Run every check and every test
	@mkdir -p target && rm -f target/failed && \
	{ $(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync=target $(PARTS:%=part-%) || \
	  { echo "$@: failed:" $$(cat target/failed) >&2; exit 1; }; } && echo "$@: all parts passed:" $(PARTS)

$(PARTS:%=part-%): part-%:
	@echo "--- $*"; begun=$$(date +%s); $(MAKE) --no-print-directory $* || { echo $* >> target/failed; exit 1; }; \
	echo "--- $*: $$(($$(date +%s) - begun)) s"

fmt: ## Format the code
	$(CARGO) fmt --all

lint: ## Check format, lints, libraries, each feature alone, and that no modules import each other in a circle
	$(CARGO) fmt --all --check
	@for file in crates/*/*/tests/it/*.rs; do name=$$(basename $$file .rs); \
	  [ $$name = main ] || grep -q "^mod $$name;" $${file%/*}/main.rs || \
	  { echo "$@: $$file is no module of main.rs beside it, so that nothing runs it" >&2; exit 1; }; done
	python3 .ci/circles
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@$(MAKE) --no-print-directory deny
	$(CARGO) clippy --locked -p airlane-cli --example demo --no-default-features --features compare -- -D warnings
	@for feature in live lab; do \
	  $(CARGO) clippy --locked -p airlane-cli --bin airlane --no-default-features --features $$feature -- -D warnings \
	  || exit 1; done

deny: ## Check licences, sources and known faults of libraries (deny.toml; cargo install cargo-deny)
	@if ! $(CARGO) deny --version > /dev/null 2>&1; then \
	  echo "$@: cargo-deny is missing; nothing was checked: cargo install --locked cargo-deny" >&2; \
	else \
	  $(CARGO) deny --log-level error check licenses bans sources && \
	  if $(CARGO) deny fetch db 2> /dev/null; then $(CARGO) deny --log-level error --offline check advisories; \
	  else echo "$@: the database of advisories cannot be reached; they were not checked" >&2; fi; \
	fi

units: ## Run unit, property and integration tests
	$(call apt,tshark,tshark,it does not read the captures)
	$(CARGO) test --workspace --locked --no-fail-fast

determinism: ## Check that unoptimised and optimised builds, 1 and 2 threads give the same bytes
	$(CARGO) test --workspace --locked --no-run
	$(QUICK) --no-run
	sh .ci/determinism

# What the live tests run.
LIVE = --profile quick $(BOTH) --test live
QUICK = $(CARGO) test $(LIVE)
STUDIES = $(BUILT)/quick/airlane study run

XYLOMENOS = xylomenos-1999 xylomenos-polyzos
WORKS = $(XYLOMENOS) balakrishnan-1997 ludwig-1999 gopal-2007
VERDICTS = studies/verdicts.json

claims: ## Check that no claim of the published works fares worse than committed, nor says nothing of its own (5 min)
	$(QUICK) --no-run
	$(STUDIES) $(WORKS) --runs 3 --out target/claims --check $(VERDICTS) > target/claims.txt

verdicts: ## Commit to the verdicts that `make claims` checks
	$(QUICK) --no-run
	$(STUDIES) $(WORKS) --runs 3 --out target/claims --save $(VERDICTS) > target/claims.txt

# Pictures that no page links.
PRUNE = @cd docs/lab && for file in $$(find figures -name '*.svg'); do grep -q "$$file" *.md || rm "$$file"; done

validation: python-env ## Simulate the published figures and rewrite docs/lab/validation.md and a page for each work (20 min)
	$(QUICK) --no-run
	$(STUDIES) $(WORKS) --runs 10 --out target/validation --markdown docs/lab/validation.md --comparisons target/validation.csv > target/validation.txt
	$(VENV)/python -m airlane.figures target/validation --out docs/lab/figures --format svg
	$(PRUNE)

RUNS ?= 2

experiments: python-env ## Run the experiments of docs/lab/experiments.md again and draw each (RUNS=2 repetitions; 15 min)
	@$(CARGO) build --profile quick $(BOTH) --quiet --bin airlane
	AIRLANE=$(BUILT)/quick/airlane sh studies/experiments.sh $(RUNS) target/experiments
	for name in target/experiments/*/; do \
	  $(VENV)/python -m airlane.figures $$name --out docs/lab/figures/$$(basename $$name) --format svg; done
	$(PRUNE)

validate-ns2: ## Run ns-2 beside the simulator, write how far each setting is apart (5 min)
	$(call apt,ns,ns2,its figures from the table stand in)
	$(CARGO) run --release --locked --quiet -p airlane-bench --bin airlane-ns2 -- \
	  --write docs/lab/validation-ns2.md

# Debian's package of ns-3 names no compiler, nor the libraries that its pkg-config files ask for.
validate-ns3: ## Run ns-3's 802.11, and ns-2's, beside the simulator, write how far each setting is apart (5 min)
	$(call apt,ns3++,libns3-dev libgsl-dev libsqlite3-dev pkg-config g++,there is nothing to compare with)
	$(call apt,ns,ns2,its columns stay empty)
	$(CARGO) run --profile quick --locked --quiet -p airlane-bench --bin airlane-ns3 -- \
	  --write docs/lab/validation-ns3.md

validate-kernel: setup ## Run the kernel's TCP beside the profile `modern` over an emulated link (root; 10 min)
	@$(CARGO) build --profile quick $(BOTH) --quiet --bin airlane
	@$(CARGO) run --profile quick --locked --quiet -p airlane-bench --bin airlane-kernel -- \
	  --airlane $(BUILT)/quick/airlane --write docs/lab/validation-kernel.md

validate-live: setup ## Run a link beside its simulation, with the kernel's TCP, bare and over live nodes (root; 20 min)
	$(CARGO) build --profile quick --locked -p airlane-cli --bin airlane
	crates/checks/bench/emulated/run $(BUILT)/quick/airlane docs/lab/emulated.txt

# Where the scripts are: make packetdrill ARGS=../packetdrill/gtests/net/tcp
packetdrill: ## Play packetdrill's scripts of TCP (github.com/google/packetdrill) against the profile `modern`
	@$(CARGO) run --profile quick --locked --quiet -p airlane-bench --bin airlane-packetdrill -- $(ARGS)

live: ## Carry real traffic over an emulated lossy link (root; 2 min)
	$(QUICK) -- --nocapture --test-threads 1

bench: ## Measure how fast the simulator is, and ns-2 and ns-3 beside it where they are installed
	@$(CARGO) run --release --locked --quiet -p airlane-bench --bin airlane-speed

# The Python package in an environment of its own, versions as in python/constraints.txt.
VENV = .venv/bin

# What its figures need.
.venv/figures: python/constraints.txt pyproject.toml
	python3 -m venv .venv
	$(VENV)/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)/pip install --quiet --constraint $< jinja2 polars matplotlib
	echo $(CURDIR)/python > "$$($(VENV)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/airlane.pth"
	touch $@

.venv/done: python/constraints.txt pyproject.toml .venv/figures
	$(VENV)/pip install --quiet --constraint $< --group dev jinja2 polars matplotlib dask distributed pandas pyarrow
	touch $@

python-env: .venv/done ## Build the Python package into .venv
	$(call native,quick,$(LIVE) --quiet)

python: python-env ## Check and test the Python package
	$(call apt,chromium,chromium,no page of results is looked at)
	$(call apt,chromedriver,chromium-driver,no page of results is looked at)
	$(VENV)/ruff format --check python demo notebooks
	$(VENV)/ruff check python demo notebooks
	$(VENV)/mypy
	$(VENV)/stubtest airlane._native
	$(VENV)/pytest
	$(VENV)/maturin sdist --out target/sdist
	$(VENV)/pdoc --docformat google --output-directory target/python-docs airlane airlane.figures airlane.report

# Of other results: make figures RESULTS=results
RESULTS ?= target/validation

bench-python: .venv/done ## Compare Python with the program, and two workers of Dask with one (4 min)
	$(CARGO) build --release $(BOTH) --quiet --bin airlane
	$(call native,release,--release $(BOTH) --quiet)
	$(VENV)/python python/benches/overhead.py $(BUILT)/release/airlane

figures: python-env ## Draw the published figures of `make validation`, for print and as a page
	$(VENV)/python -m airlane.figures $(RESULTS) --out target/figures --format pdf,svg,png
	$(VENV)/python -m airlane.report $(RESULTS)

# Options for it: make bench-live ARGS='--clean --tools veth,wireguard-go,airlane'
bench-live: setup ## Measure Airlane live beside other tunnels: clean, then impaired (root; 27 min)
	$(call apt,ethtool,ethtool,the cable without a tunnel is left out)
	$(call apt,openvpn,openvpn openssl,it is left out)
	@$(CARGO) build --release --locked --quiet -p airlane-cli --bin airlane
	@$(CARGO) run --release --locked --quiet -p airlane-bench --bin airlane-bench-live -- $(ARGS)

bench-relay: ## Measure `airlane relay` over loopback, beside socat and HAProxy where they are installed
	@$(CARGO) build --release --locked --quiet -p airlane-cli --bin airlane
	@$(CARGO) run --release --locked --quiet -p airlane-bench --bin airlane-bench-relay -- --airlane $(BUILT)/release/airlane $(ARGS)

bench-send: setup ## Measure `airlane send`: 1 GB over a clean veth, files over a lossy link beside a call (root; 2 min)
	@$(CARGO) build --release --locked --quiet -p airlane-cli --bin airlane
	@$(CARGO) run --release --locked --quiet -p airlane-bench --bin airlane-bench-send -- --airlane $(BUILT)/release/airlane --air demo/air.toml $(ARGS)

confusion: ## Show which service each kind of traffic gets by what it does, by models and captures
	@$(CARGO) run --profile quick --locked --quiet -p airlane-bench --bin airlane-confusion -- crates/checks/bench/captures $(ARGS)

# Options for it: make soak ARGS='--minutes 3 --seed 7'
soak: setup ## Load a live link while it is killed, silenced, moved, hung up on and given new keys (root; 20 min)
	@$(CARGO) build --profile quick $(BOTH) --quiet --bin airlane
	@$(CARGO) run --profile quick --locked --quiet -p airlane-bench --bin airlane-soak -- --airlane $(BUILT)/quick/airlane $(ARGS)

fuzz: ## Run every property test with many more cases (CASES=20000)
	PROPTEST_CASES=$(CASES) $(CARGO) test --workspace --locked --lib --tests

# Another start: make worlds SEED=2
WORLDS ?= 10000
SEED ?= 1

worlds: ## Hold random worlds against the laws of docs/metrics.md; a violation is written as a file (WORLDS=10000 SEED=1)
	WORLDS=$(WORLDS) WORLDS_SEED=$(SEED) $(CARGO) test -p airlane-sim --locked --test worlds

hostile: ## Run live nodes in hostile networks of virtual time (2 min; ARGS='--seed 77', ARGS='--from 9000 --seconds 600')
	@$(CARGO) run --profile quick --locked --quiet -p airlane-hostile -- $(ARGS)

WASM = wasm32-unknown-unknown

site: ## Make the lab in web/site, for any static host and for `airlane lab`: what is built next has it
	$(call apt,xz,xz-utils,the simulator cannot be packed)
	@if command -v rustup > /dev/null; then rustup target add $(WASM) 2> /dev/null || true; fi
	$(CARGO) build --profile web --locked --target $(WASM) -p airlane-web
	@{ printf 'globalThis.airlaneSimulator="'; xz -9ec --check=crc32 $(BUILT)/$(WASM)/web/airlane_web.wasm | base64 -w 0; \
	  printf '";globalThis.airlaneSimulatorIsHere?.();\n'; } > $(BUILT)/simulator.js
	@cmp -s $(BUILT)/simulator.js web/site/simulator.js || cp $(BUILT)/simulator.js web/site/simulator.js
	@size=$$(cat web/site/* | gzip -9 | wc -c); echo "web/site: $$size bytes, compressed"; [ $$size -le 1600000 ]

# Node of Debian 12 is too old for Vite.
page: ## Make what web/site has of TypeScript anew (Node 20 or newer)
	cd web && npm ci --no-audit --no-fund --silent && npm run --silent build

lab: ## Look at the lab in Chromium, and compare its digits with the program's
	$(call apt,node,nodejs npm,nobody has looked at the lab)
	$(call apt,chromium,chromium,nobody has looked at the lab)
	@if command -v node > /dev/null && command -v npm > /dev/null && command -v chromium > /dev/null; then \
	  $(MAKE) --no-print-directory site && $(CARGO) build --profile quick $(BOTH) --quiet --bin airlane && \
	  cd web && npm ci --no-audit --no-fund --silent && npm run --silent check && \
	  AIRLANE=$(abspath $(BUILT))/quick/airlane npm test --silent; \
	else echo "$@: SKIPPED: Node, npm or Chromium is missing; no digit of the page was compared" >&2; fi

MUSL = $(shell uname -m)-unknown-linux-musl

static: site ## Build one binary that needs no library of the system (musl)
	$(call apt,musl-gcc,musl-tools,ring's C code cannot be built)
	@if command -v rustup > /dev/null; then rustup target add $(MUSL); fi
	$(CARGO) build --release --locked -p airlane-cli --bin airlane --target $(MUSL)
	@if readelf -l target/$(MUSL)/release/airlane | grep -q INTERP; then \
	  echo "$@: the binary asks for a dynamic linker" >&2; exit 1; fi
	@echo target/$(MUSL)/release/airlane

router: ## Build what a router needs of it, as small as it gets (musl; live links, no laboratory, no screen)
	$(call apt,musl-gcc,musl-tools,ring's C code cannot be built)
	@if command -v rustup > /dev/null; then rustup target add $(MUSL); fi
	$(CARGO) build --profile router --locked -p airlane-cli --bin airlane --no-default-features --features live --target $(MUSL)
	@ls -l $(BUILT)/$(MUSL)/router/airlane

deb: static ## Pack the static binary for Debian: unit, manual, completions, examples
	deploy/make-deb target/$(MUSL)/release/airlane target/deb

# Zig compiles C for other machines; its versions and maturin's are in python/constraints.txt.
.venv/release: python/constraints.txt
	python3 -m venv .venv
	$(VENV)/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)/pip install --quiet --constraint $< cargo-zigbuild maturin ziglang
	touch $@

CYCLONEDX = 0.5.9
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -n 1)

version: ## Print the version of the sources
	@echo $(VERSION)

release: .venv/release site ## Make what is released: static programs, packages, wheel, SBOM, checksums (both architectures; 30 min)
	$(call apt,qemu-aarch64,qemu-user,the program for aarch64 is not run)
	$(call apt,dpkg-deb,dpkg,no package for Debian can be made)
	@if command -v rustup > /dev/null; then rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl; fi
	$(CARGO) install --quiet --locked cargo-cyclonedx --version $(CYCLONEDX) --root $(BUILT)/tools
	deploy/make-release $(BUILT)/release-$(VERSION)

# The kinds of files that people write, as `airlane schema` names them.
FILES = scenario live air study study-part study-work

reference: ## Write docs/reference/*.md anew from the types that read the files
	@for of in $(FILES); do \
	  $(CARGO) run --quiet --locked -p airlane-cli -- schema $$of --markdown > docs/reference/$$of.md || exit 1; done

docs: ## Build the API documentation; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

clean: ## Remove everything that was built
	$(CARGO) clean
