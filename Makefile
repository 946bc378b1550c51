# Steno. `make run` and `make test` do their own set-up; see README.md.
.DEFAULT_GOAL := help
.PHONY: help run test check build package setup check-cuda engine-cuda gpu-check bench bench-peers bench-window soak icons fmt

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*##/ { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## build and start the window with a sample; without a display transcribe it here (BACKEND=cpu: no CUDA)
	@BACKEND=$(BACKEND) scripts/run.sh

test: ## every test: Rust, the window's pages, the real window
	@scripts/test.sh

check: ## formatting, lints, documentation, types; warnings are errors
	@scripts/check.sh

build: ## build the programs in target/debug
	@scripts/setup.sh engine window
	@scripts/build.sh all

package: ## build a Debian package in target/package
	@scripts/package/debian.sh

setup: ## install the packages that these commands need
	@scripts/setup.sh

check-cuda: ## type-check the CUDA engine; needs no CUDA software
	@scripts/cuda/check.sh

engine-cuda: ## build the engine for this machine's NVIDIA GPUs (downloads the compiler, 10 minutes and more)
	@scripts/cuda/build.sh

gpu-check: ## what only a card can show, in ten minutes: numbers, memory, out of memory, speed (ARGS=--emulated: without a card)
	@scripts/cuda/gpu-check.sh $(ARGS)

bench-peers: ## whole recordings and parts of the network beside faster-whisper and whisper.cpp (from PyPI)
	@scripts/bench-peers.sh

bench: ## speed and memory of tiny, base and small with random weights
	@scripts/bench.sh

bench-window: ## the real window: first frame, idle, milliseconds per action on a long transcript and in a long recording
	@scripts/bench-window.sh

soak: ## long runs: full corpus, damage, kills, 200 files, every size of model (needs STENO_SHARED)
	@scripts/soak.sh

icons: ## rebuild the icons from icons/steno.svg (downloads Tauri's tool)
	@icons/make.sh

fmt: ## format the Rust sources
	@cargo fmt --all
