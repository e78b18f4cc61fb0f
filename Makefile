# SPDX-License-Identifier: MIT
# The front door; CMake does the work. `make help` lists the targets.

BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

# cmake --build runs a make of its own that must not see this one's flags.
CMAKE := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake
CTEST = ctest --test-dir $(1) --output-on-failure -j$(JOBS) --no-tests=error $(2)

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: help all deps configure demo test test-asan test-tsan test-gpu bench bench-gpu pack-gpu \
        lint format docs install clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

all: configure ## build everything into build/
	@$(CMAKE) --build $(BUILD) -j$(JOBS)

deps: ## install missing packages (Debian or Ubuntu, root), or say how
	@scripts/install-deps.sh

configure: deps
	@cmake -S . -B $(BUILD) --log-level=NOTICE $(if $(WERROR),-DDEEPJIT_WERROR=$(WERROR)) \
	    $(if $(PREFIX),-DCMAKE_INSTALL_PREFIX="$(PREFIX)")

demo: all ## build, then compile, cache, load and launch a kernel
	@$(BUILD)/deepjit demo

test: all ## build and run all tests
	@$(call CTEST,$(BUILD))

# Consumers, headers and lint see the same files whatever the sanitizer.
test-asan: deps ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --preset asan --log-level=NOTICE
	@$(CMAKE) --build build-asan -j$(JOBS)
	@$(call CTEST,build-asan,-LE 'noasan|headers|lint')

# ThreadSanitizer needs an address-space layout that some kernels randomise too widely.
test-tsan: deps ## threaded tests under ThreadSanitizer
	@cmake --preset tsan --log-level=NOTICE
	@$(CMAKE) --build build-tsan -j$(JOBS)
	@run=; if setarch -R true 2>/dev/null; then run='setarch -R'; fi; \
	    $$run $(call CTEST,build-tsan,-L threaded -LE 'noasan')

bench: all ## measure; JSON lines and a table
	@$(BUILD)/deepjit bench

# With GPU_OUT=<folder>, summaries and logs go there. GPU_BIN=build-gpu takes what pack-gpu made.
GPU_ARGS = --bin $(or $(GPU_BIN),$(BUILD)) $(if $(GPU_OUT),--out "$(GPU_OUT)")

test-gpu: $(if $(GPU_BIN),,all) ## conformance, GPU tests, examples, sanitizer on an NVIDIA GPU
	@scripts/test-gpu.sh $(GPU_ARGS)

bench-gpu: $(if $(GPU_BIN),,all) ## measure on an NVIDIA GPU; JSON lines and a table
	@scripts/bench-gpu.sh $(GPU_ARGS)

pack-gpu: deps ## build into build-gpu/ what the two above run, to carry to another machine
	@JOBS=$(JOBS) scripts/pack-gpu.sh

lint: all ## formatting, clang-tidy, include edges, names, exports
	@scripts/install-deps.sh --lint
	@scripts/lint.sh $(BUILD)

format: ## format the C sources in place
	@scripts/format.sh -i

docs: all ## write the generated page, docs/environment.md
	@$(BUILD)/deepjit env --markdown > docs/environment.md

install: all ## install below PREFIX, /usr/local unless given, and DESTDIR
	@$(CMAKE) --install $(BUILD)

clean: ## remove the build directories
	@rm -rf build build-asan build-tsan build-fuzz build-debug build-gpu build-gpu-objects
