# `make lab` grows a cluster, `make test` passes the tests. Both install what they need, and say what.
CARGO   ?= cargo
# Always the whole workspace: with other packages other features are chosen, and everything is compiled again.
FLAGS   := --release --locked --workspace
TARGET  := target/x86_64-unknown-linux-gnu/release
BINARY  := $(TARGET)/seedling

.PHONY: fresh lab test check unit e2e fuzz bench docs release setup clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

setup:
	@scripts/setup.sh

fresh: setup ## an empty Debian 12 and 13 with only git, make and Rust: does everything set up and compile there?
	@scripts/fresh-root.sh

$(BINARY): build
.PHONY: build
build: setup
	@[ -x $(BINARY) ] || echo "2 of 4, Seedling itself: about 10 min on two cores, this once"
	$(CARGO) build $(FLAGS) --bin seedling

release: build ## build the payload (once; later runs only make what changed)
	@echo "3 of 4, payload: Kubernetes and its companions from source, if they are not there"
	$(BINARY) release build

lab: release ## grow a highly available cluster on this machine
	@echo "4 of 4, the cluster: the node image, if there is none (about a minute), and the bring-up (about a minute)"
	$(BINARY) lab up

test: ## everything that must pass: format, lints, dependencies, unit and integration tests, a real bring-up
	@scripts/test.sh

check: setup ## format, lints, dependencies
	@scripts/check.sh

unit: setup ## unit and integration tests
	$(CARGO) test $(FLAGS)

e2e: release ## a real bring-up, asserted by asking the real components
	$(CARGO) test $(FLAGS) --test payload -- --ignored
	$(CARGO) test $(FLAGS) --test e2e

fuzz: setup ## damaged install-configs, for FUZZ_SECONDS (300)
	@scripts/fuzz.sh

bench: release ## Seedling and kubeadm on the same machines: bring-ups and cost at rest (BENCH="--report docs/reports": as committed)
	$(CARGO) build $(FLAGS) --bin bench
	$(TARGET)/bench $(BENCH)

docs: build ## the book: its generated pages (commands, fields, stages) anew
	$(BINARY) docs docs
	@echo "the book is plain Markdown: docs/README.md"

clean: ## remove the lab and what cargo built; the cache under /var/cache/seedling stays
	-[ -x $(BINARY) ] && $(BINARY) lab down
	$(CARGO) clean
