# `make lab` grows a cluster, `make test` passes the tests. Both install what they need, and say what.
CARGO   ?= cargo
# Always the whole workspace: with other packages other features are chosen, and everything is compiled again.
FLAGS   := --release --locked --workspace
TARGET  := target/x86_64-unknown-linux-gnu/release
BINARY  := $(TARGET)/seedling

DIST    := target/dist

.PHONY: fresh lab test test-all check unit components browser network-boot export-check e2e helper-unit fuzz bench helper-bench conformance prober chaos soak docs release dist dist-check setup clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

setup:
	@scripts/setup.sh

fresh: setup ## an empty Debian 12 and 13 with only git, make and Rust: does everything set up and compile there?
	@scripts/fresh-root.sh

$(BINARY): build
.PHONY: build
build: setup
	$(CARGO) build $(FLAGS) --bin seedling

release: setup ## build Seedling, the payload and the node image (once; later runs only make what changed)
	@[ -x $(BINARY) ] || echo "2 of 4, Seedling and, beside it, Kubernetes and its companions from source: about 20 min on two cores, this once"
	$(CARGO) build $(FLAGS) --bin payload-programs
	@$(MAKE) --no-print-directory -j2 image programs
	@echo "3 of 4, the payload's images, if they are not there"
	$(BINARY) release build

.PHONY: programs image
programs:
	$(TARGET)/payload-programs
image: build
	$(BINARY) lab image >/dev/null

lab: release ## grow a highly available cluster on this machine
	@echo "4 of 4, the cluster: the bring-up takes about a minute"
	$(BINARY) lab up

test: ## everything that must pass: format, lints, dependencies, unit and integration tests, a real bring-up
	@scripts/test.sh

test-all: setup ## all of that and what takes hours: docs/reports/test-all.json; PARTS="dist recover" for some of it
	$(CARGO) build $(FLAGS) --bin test-all
	$(TARGET)/test-all $(PARTS)

check: setup ## format, lints, dependencies
	@scripts/check.sh

unit: setup ## unit and integration tests
	$(CARGO) test $(FLAGS)

components: release ## tests against a real API server, etcd and disk, without a lab
	$(CARGO) test $(FLAGS) --test payload --test restore --test space --test bad_disk -- --ignored

browser: setup ## the live page in headless Chromium, which is installed if it is missing
	@scripts/browser.sh

network-boot: setup ## firmware in QEMU boots from the helper: iPXE, PXELINUX, UEFI by PXE and HTTP
	@scripts/network-boot.sh

export-check: setup ## what `helper export` writes, read by HAProxy, dnsmasq, BIND, dhcpd, Kea and nginx
	@scripts/export-check.sh

e2e: release ## real bring-ups, asserted by asking the real components; E2E="pulled seeded" for some parts
	$(CARGO) test $(FLAGS) --test e2e -- $(E2E)

helper-unit: release ## the helper's systemd unit on a machine of its own: installed, confined, reloaded, killed, uninstalled
	$(CARGO) test $(FLAGS) --test helper_unit -- --ignored

fuzz: setup ## any bytes for each parser of the network, install-configs and manifests, FUZZ_SECONDS (60) each; FUZZ="dns http" for some
	@scripts/fuzz.sh $(FUZZ)

bench: release ## Seedling and kubeadm on the same machines: bring-ups and cost at rest (BENCH="--report docs/reports": as committed)
	$(CARGO) build $(FLAGS) --bin bench
	$(TARGET)/bench $(BENCH)

helper-bench: build ## the helper beside dnsmasq, BIND, Kea, tftpd-hpa, nginx and HAProxy (HELPER_BENCH="--report docs/reports": as committed)
	@scripts/need.sh dnsmasq=dnsmasq-base named=bind9 dnsperf=dnsperf kea-dhcp4=kea-dhcp4-server perfdhcp=kea-admin in.tftpd=tftpd-hpa nginx=nginx-light haproxy=haproxy
	$(CARGO) build $(FLAGS) --bin helper-bench
	$(TARGET)/helper-bench $(HELPER_BENCH)

conformance: release ## the real Kubernetes conformance suite on a lab (CONFORMANCE="--tenth today" for a share)
	$(CARGO) build $(FLAGS) --bin conformance
	$(TARGET)/conformance $(CONFORMANCE)

RUNS ?= 20
prober: release ## RUNS (20) bring-ups beside a client that forgives nothing: docs/reports/prober.json
	$(CARGO) build $(FLAGS) --bin prober
	$(TARGET)/prober --runs $(RUNS)

CHAOS ?= --whole
chaos: release ## bring-ups with each fault at every step, hours of them: docs/reports/chaos.json; CHAOS="--whole --resume" goes on with it
	$(BINARY) chaos handoff $(CHAOS) --report docs/reports/chaos.json

MINUTES ?= 120
soak: release ## MINUTES (120) of renewals, new revisions and masters on new disks: docs/reports/soak.json
	$(CARGO) build $(FLAGS) --bin soak
	$(TARGET)/soak --minutes $(MINUTES)

# Not incremental: how the compiler cuts a program into pieces would depend on what was compiled before.
dist: setup ## a .deb, the payload as one archive, their sums and what they are made of, into target/dist; the same bytes each time
	CARGO_INCREMENTAL=0 $(CARGO) build $(FLAGS) --bin seedling
	$(BINARY) release build --out $(DIST)/release
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BINARY) dist --release $(DIST)/release --out $(DIST)

dist-check: dist ## package and archive on an empty Debian without a network; and everything built twice
	@scripts/dist-check.sh

docs: build ## the book: its generated pages (commands, fields, stages, certificates) anew
	$(BINARY) docs docs
	@echo "the book is plain Markdown: docs/README.md"

clean: ## remove the lab and what cargo built; the cache under /var/cache/seedling stays
	-[ -x $(BINARY) ] && $(BINARY) lab down
	$(CARGO) clean
