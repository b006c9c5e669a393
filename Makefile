# Entry points. `make` alone lists them; each sets up what it needs, and what is fresh is left alone.
#
# What has been done is marked by files in build/stamps, which are older than what they depend on
# when something has to be done again. Fresh marks cost no call of apt or pip.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

STAMPS := build/stamps
PYTHON := .venv/bin/python
STEP := tools/step

# Folders are listed with the files: a file that is added or removed makes its folder newer.
NATIVE := CMakeLists.txt $(shell find native include)

# A checkout that was moved, or a Python that was taken away, leaves nothing usable behind.
ifneq ($(wildcard $(STAMPS)/place),)
ifneq ($(shell test -x $(PYTHON) && cat $(STAMPS)/place),$(CURDIR))
$(info this checkout was moved, or its Python is gone: setting up anew)
$(shell rm -rf .venv build)
endif
endif

.PHONY: help study build check test test-long test-vm test-hardware test-bare test-asan test-tsan test-clang lint format docs pictures schema wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

study: $(STAMPS)/package ## set up, then measure this machine and write the report (ARGS="..." are passed on)
	@./nearfar study $(ARGS)

build: $(STAMPS)/package ## set up and build, so that ./nearfar works
	@echo "ready: ./nearfar --help"

check: $(STAMPS)/package $(STAMPS)/test ## set up, then lint and the tests that start no programs, in two minutes
	@tools/lint
	@tools/native-tests test
	@tools/python-tests "not starts_programs and not long and not vm" -q -n 2

test: $(STAMPS)/package $(STAMPS)/test ## set up, then lint and all tests but the long ones
	@tools/run-tests

test-long: $(STAMPS)/package $(STAMPS)/test $(STAMPS)/clang $(STAMPS)/wheel ## the tests that take minutes, ten of them fuzzing, and an hour of forks, threads and signals in heaps
	@tools/native-tests asan
	@$(PYTHON) -m pytest -m long
	@tools/fuzz 600

# Two machines at a time, each of which keeps one processor busy: files of tests in turns.
test-vm: $(STAMPS)/package $(STAMPS)/test $(STAMPS)/vm ## tests in an emulated machine with an NVDIMM and a node without processors
	@$(STEP) "configure test" build/test-configure.log cmake --preset test
	@$(STEP) "programs for the machine" build/vm-build.log \
	  cmake --build --preset test --target power_cut carrier hm_nodes hm_migrate
	@$(STEP) "kernel for the machine" build/vm-kernel.log tools/vm/kernel
	@$(STEP) "newer kernel for the machine" build/vm-newer-kernel.log tools/vm/kernel bookworm-backports
	@NEARFAR_VM=required $(PYTHON) -m pytest -n 2 --dist loadfile --durations 12 tests/vm

test-hardware: $(STAMPS)/package $(STAMPS)/test ## tests on DAX, CXL memory and counters of this machine; an archive to send back
	@$(PYTHON) tools/hardware_report.py

test-bare: wheel ## the wheel in a bare Debian 12 and a bare Debian 13 (as root, with debootstrap)
	@tools/bare bookworm
	@tools/bare trixie

test-asan test-tsan test-clang: test-%: $(STAMPS)/test
	@tools/native-tests $*
test-asan: ## native tests under AddressSanitizer and UndefinedBehaviorSanitizer
test-tsan: ## native tests under ThreadSanitizer
test-clang: ## native tests built by clang 14 with thread-safety analysis
test-clang: $(STAMPS)/clang

lint: $(STAMPS)/package $(STAMPS)/test ## ruff, mypy --strict, clang-format
	@tools/lint

format: $(STAMPS)/test ## put all sources into the form that lint wants
	@.venv/bin/ruff check -q --fix . ; .venv/bin/ruff format -q .
	@find native include -name '*.[ch]pp' -exec .venv/bin/clang-format -i {} +

docs: $(STAMPS)/package $(STAMPS)/test ## the documents as a site and as man pages, in build/docs
	@tools/docs

pictures: $(STAMPS)/package ## draw the pictures of README.md and docs/ from real runs, on an idle machine
	@tools/pictures

wheel: $(STAMPS)/package $(STAMPS)/wheel ## a wheel for pip with its libraries inside, in dist
	@$(STEP) "wheel" build/wheel.log tools/wheel dist
	@ls dist/nearfar-*.whl

schema: $(STAMPS)/package ## write docs/formats/run.schema.json from the models
	@$(PYTHON) tools/write_schema.py docs/formats/run.schema.json

clean: ## remove all that was built; records in nearfar-runs stay
	rm -rf .venv build dist

$(STAMPS)/system: tools/packages
	@tools/packages build
	@mkdir -p $(@D) && touch $@

$(STAMPS)/test-system: tools/packages $(STAMPS)/system
	@tools/packages test
	@touch $@

$(STAMPS)/clang: tools/packages
	@tools/packages clang
	@mkdir -p $(@D) && touch $@

$(STAMPS)/vm: tools/packages
	@tools/packages vm
	@mkdir -p $(@D) && touch $@

$(STAMPS)/venv: pyproject.toml tools/make-venv tools/requirements.py | $(STAMPS)/system
	@tools/make-venv
	@$(STEP) "Python packages" build/pip.log $(PYTHON) -m pip install \
	  --disable-pip-version-check $$($(PYTHON) tools/requirements.py build run charts)
	@echo '$(CURDIR)' > $(STAMPS)/place
	@touch $@

$(STAMPS)/test: $(STAMPS)/venv | $(STAMPS)/test-system
	@$(STEP) "Python packages for tests" build/pip-test.log $(PYTHON) -m pip install \
	  --disable-pip-version-check $$($(PYTHON) tools/requirements.py test parquet cluster)
	@touch $@

$(STAMPS)/wheel: $(STAMPS)/venv
	@$(STEP) "Python packages for wheels" build/pip-wheel.log $(PYTHON) -m pip install \
	  --disable-pip-version-check $$($(PYTHON) tools/requirements.py wheel)
	@touch $@

# Editable: Python sources are used where they lie; the native core is built into build/editable.
$(STAMPS)/package: $(STAMPS)/venv $(NATIVE)
	@$(STEP) "native core and ./nearfar" build/package.log env CMAKE_BUILD_PARALLEL_LEVEL=$$(nproc) \
	  $(PYTHON) -m pip install --disable-pip-version-check --no-build-isolation --no-deps \
	  --config-settings=build-dir=build/editable --config-settings=cmake.define.NEARFAR_WERROR=ON \
	  --editable .
	@touch $@
