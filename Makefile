# Airlane. `make` lists the recipes.
#
# What they need beyond Rust, gcc and make is iproute2; `make setup` installs it where it can.

CARGO    ?= cargo
# How long `make fuzz` looks for trouble, in cases for each property.
CASES    ?= 20000

.DEFAULT_GOAL := help
.PHONY: help setup demo test fmt lint units determinism claims live validation bench fuzz docs clean

help: ## List the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the recipes need: system packages (as root) and Rust components
	@if command -v ip > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -qq -y --no-install-recommends iproute2 > /dev/null 2>&1; } \
	  || echo "setup: could not install iproute2; the live parts will be left out" >&2; \
	else echo "setup: the live parts need iproute2: sudo apt-get install iproute2" >&2; fi
	@if command -v rustup > /dev/null; then \
	  rustup component list --installed 2> /dev/null | grep -q clippy || rustup component add rustfmt clippy; fi

demo: setup ## Show three applications over one lossy link, simulated and (as root) live
	$(CARGO) build --release --locked -p airlane-cli --bin airlane --example demo
	@$(CARGO) run --release --locked --quiet -p airlane-cli --example demo

test: setup lint units docs determinism claims live ## Run every check and every test

fmt: ## Format the code
	$(CARGO) fmt --all

lint: ## Check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

units: ## Run unit, property and integration tests
	$(CARGO) test --workspace --locked

determinism: ## Check that debug and release, 1 and 2 threads give the same bytes
	$(CARGO) build --locked -p airlane-cli
	$(CARGO) build --release --locked -p airlane-cli
	sh .ci/determinism

claims: ## Check that docs/validation.md is what the simulator gives (3 min)
	$(CARGO) run --release --locked --quiet -p airlane-testkit --bin airlane-validation -- \
	  --check docs/validation.md > /dev/null

validation: ## Simulate the published figures, print claim by claim what holds, rewrite docs/validation.md
	$(CARGO) run --release --locked --quiet -p airlane-testkit --bin airlane-validation -- \
	  --write docs/validation.md

live: ## Carry real traffic over an emulated lossy link (root; 4 min)
	$(CARGO) test --release --locked -p airlane-cli --test live -- --nocapture

bench: ## Measure speed
	$(CARGO) bench --workspace --locked

fuzz: ## Run every property test with many more cases (CASES=20000)
	PROPTEST_CASES=$(CASES) $(CARGO) test --workspace --locked --lib --tests

docs: ## Build the API documentation; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

clean: ## Remove everything that was built
	$(CARGO) clean
