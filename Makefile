# tare: the chores. `make` lists them.

PREFIX ?= /usr/local
DESTDIR ?=
STUDY ?= studies/quickstart.toml
CARGO_TARGET_DIR ?= $(CURDIR)/target
export PREFIX DESTDIR CARGO_TARGET_DIR

.DEFAULT_GOAL := help
.PHONY: help setup build quickstart platforms test test-all test-host tidy check fuzz bench screenshots install deb rpm dist test-dist clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## install what is missing to build (root on Debian or Ubuntu; else it says what to run)
	@scripts/setup.sh

build: setup ## build tare and its static agent, into target/release
	@scripts/build.sh

quickstart: build ## build, then run the first study and say where its report is (STUDY=file for another)
	$(CARGO_TARGET_DIR)/release/tare run $(STUDY)

platforms: build ## get every platform that can be had here, build a guest image, and say what is usable
	@scripts/setup.sh platforms
	@$(CARGO_TARGET_DIR)/release/tare image build debian || echo "make platforms: no image was built; guests boot the host's own root all the same"
	@$(CARGO_TARGET_DIR)/release/tare doctor

test: build ## run all tests; those that this machine cannot run are listed with the reason
	@scripts/setup.sh test
	@cargo xtask test

test-all: build ## run all tests with the slow variants of what others cover
	@scripts/setup.sh test
	@TARE_TEST_ALL=1 cargo xtask test

test-host: build ## run tare on emulated ordinary hosts, Debian 12 and 13 (as root; the short form is part of `make check`)
	@scripts/setup.sh test
	@scripts/test-host.sh

tidy: setup ## check the rules of the house, in seconds
	@cargo xtask tidy

check: ## run all that CI runs
	@.ci/run

fuzz: ## fuzz what reads the bytes of strangers, a minute each (needs cargo-fuzz and a nightly compiler)
	@scripts/fuzz.sh

bench: setup ## measure tare's drivers against their peers, and simulate how often its verdicts are wrong
	@bench/statistics.sh
	@cargo build --release --package tare-driver --example bench_driver --example bench_store --example store_load --example http --example social
	@command -v netperf >/dev/null && command -v iperf3 >/dev/null && command -v wrk >/dev/null || bench/install-peers.sh
	@bench/rr.sh
	@bench/stream.sh
	@bench/recording.sh
	@bench/store.sh
	@bench/load.sh
	@bench/web.sh
	@bench/social.sh

screenshots: ## take pictures of reports, on a desk, on a phone and in print, into target/screenshots (RUNS="FOLDER...": of those alone)
	@scripts/screenshots.sh $(RUNS)

install: ## copy what `make build` built to PREFIX (default /usr/local)
	@scripts/install.sh

deb: build ## make a Debian package, in target/deb
	@scripts/deb.sh

rpm: build ## make an RPM package, in target/rpm (needs rpmbuild)
	@scripts/rpm.sh

dist: setup ## make what is published: tare as one static file for x86-64 and arm64, checksums, SBOM, in target/dist
	@TARGET_ARCH=x86_64 scripts/setup.sh dist
	@TARGET_ARCH=aarch64 scripts/setup.sh dist
	@scripts/dist.sh

test-dist: setup ## make that file for this machine, and run it where there is nothing but a busybox
	@scripts/setup.sh dist
	@scripts/test-dist.sh

clean: ## remove all that was built
	cargo clean
