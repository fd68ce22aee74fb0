# specscope. `make run` and `make test` are all a fresh machine needs; see README.md.

PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
# Only debian/changelog contains the version.
VERSION := $(shell awk -F'[()-]' '{ print $$2; exit }' debian/changelog)
DATADIR  = $(PREFIX)/share/specscope

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=implicit-function-declaration
# -g1 writes line numbers. With -g the vector kernels take nearly twice as long to compile.
CFLAGS   ?= -O2 -g1
BASE     := -std=c17 -D_GNU_SOURCE -I. -ffp-contract=off -pthread $(WARN)
LDLIBS    = $(CURSES_LIBS) -lcsv -lcjson -lutf8proc -lpcre2-8 $(if $(STATIC),$(BLAS_LIBS)) $(CAIRO_LIBS) -ldl -lm -pthread
# Some systems have ncurses' terminfo in a separate library. pkg-config lists the libraries; without it, the first list
# that links is used.
CURSES_LIBS = $(shell pkg-config --libs ncursesw 2>/dev/null || for l in "-lncursesw -ltinfo" -lncursesw -lncurses; do \
	echo 'int setupterm(void); int main(void) { return setupterm(); }' | $(CC) -x c - $(LDFLAGS) -o /dev/null $$l 2>/dev/null && echo $$l && break; done)
BLAS_LIBS ?= -lblas
FUZZ_SECONDS ?= 60
# cairo renders figures if it is installed; CAIRO= disables it. pkg-config is called when the variable is used, because
# .ci/deps may have installed cairo in the same run.
CAIRO       ?= cairo fontconfig
CAIRO_LIBS   = $(if $(CAIRO),$(shell pkg-config --libs $(CAIRO) 2>/dev/null))
CAIRO_CFLAGS = $(if $(CAIRO_LIBS),-DSPECSCOPE_CAIRO $(shell pkg-config --cflags $(CAIRO) 2>/dev/null))

# One job per processor in the targets `run`, `test` and `bench`, unless -j was given. make passes -j to recipes only.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell getconf _NPROCESSORS_ONLN))

# With its built-in rules make would spend most of its own time on a search for sources of other languages.
MAKEFLAGS += --no-builtin-rules

# make V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

# make SANITIZE=address,undefined … builds in a folder of its own. OpenMP's runtime is not instrumented for
# ThreadSanitizer, so that build loads and trains on one thread; teams (kernels/team.h) and the program's own threads
# run as usual.
ifdef SANITIZE
  comma  := ,
  BUILD  ?= build/sanitize-$(subst $(comma),-,$(SANITIZE))
  BASE   += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
  LDLIBS += -fsanitize=$(SANITIZE)
else
  BUILD  ?= build
endif
# `make fuzz CC=clang` uses libFuzzer if the compiler has it. The library is then compiled with coverage, which
# libFuzzer needs.
ifneq ($(FUZZER)$(filter fuzz,$(MAKECMDGOALS)),)
  HAS_LIBFUZZER := $(shell printf 'int LLVMFuzzerTestOneInput(const unsigned char*d,unsigned long n){return n>9&&d[0]>0?0:0;}' 2>/dev/null \
	| $(CC) -x c - -fsanitize=fuzzer -o /dev/null 2>/dev/null && echo yes)
endif
# The CPU's kernels contain no parser, and sanitizers slow them down by minutes, so fuzzing builds them without
# sanitizers.
$(if $(FUZZER),$(eval $(BUILD)/obj/kernels/cpu/%.o: ITS_FLAGS = -fno-sanitize=all -O1))
# Vector kernels share no data between threads, and ThreadSanitizer would make them ten times slower.
$(if $(findstring thread,$(SANITIZE)),$(eval $(patsubst %,$(BUILD)/obj/kernels/cpu/%.o,amx avx2 avx512 avx512vnni repack reference): \
	ITS_FLAGS = -fno-sanitize=thread))
ifneq ($(and $(FUZZER),$(HAS_LIBFUZZER)),)
  BASE   += -fsanitize=fuzzer-no-link
  LDLIBS += -fsanitize=fuzzer-no-link
endif
ifeq ($(shell uname -s),Darwin) # its ncurses has wide characters only with this macro
  BASE += -D_DARWIN_C_SOURCE -DNCURSES_WIDECHAR=1
endif
# `make static` calls this Makefile again with STATIC=1. The program then contains the share folder (.ci/embed), but
# neither figures nor GPUs, which need shared libraries at run time.
ifdef STATIC
  BASE    += -DSPECSCOPE_STATIC
  override LDFLAGS += -static -s
  DATADIR := builtin:
endif
ifeq ($(findstring thread,$(SANITIZE)),)
  OPENMP := -fopenmp
else
  BASE += -Wno-unknown-pragmas
endif

LIB_SRC  := $(filter-out engine/remote/curl/%,$(sort $(wildcard base/*.c kernels/*.c kernels/cpu/*.c engine/*/*.c engine/*/*/*.c policies/*.c traces/*.c tui/*/*.c)))
CLI_SRC  := $(sort $(wildcard cli/*.c cli/*/*.c))
HELP_SRC := $(filter-out %_main.c,$(sort $(wildcard tests/golden/*.c tests/soak/*.c))) $(sort $(wildcard tests/rigs/*.c))
HELP_SRC += $(filter-out %_main.c %clock_shim.c tests/faults/shim%,$(sort $(wildcard tests/faults/*.c)))
HELP_SRC += kernels/cuda/pack.c
UNIT_SRC := $(sort $(wildcard tests/unit/*/test_*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))

# Sources outside kernels/cuda that the CUDA plug-in contains.
CUDA_SHARED_C := kernels/request.c kernels/synthetic.c kernels/tensor.c kernels/codebooks.c kernels/layer_tensors.c kernels/experts.c

LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/obj/%.o)
COMPLETIONS := $(addprefix $(BUILD)/completions/,bash zsh fish)
HELP_OBJ := $(HELP_SRC:%.c=$(BUILD)/obj/%.o)
TOOL_DIRS := tests/golden tests/bench tests/soak tests/faults
UNIT     := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(UNIT_SRC)))
TOOLS    := $(patsubst %_main.c,$(BUILD)/tests/%,$(notdir $(sort $(wildcard $(TOOL_DIRS:%=%/*_main.c)))))
FUZZ     := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)

.PHONY: all run test test-long test-programs bench bench-llama bench-batch bench-checkpoints fuzz fuzz-short install uninstall man format tidy clean deps deps-test
.SECONDARY:

all: $(BUILD)/specscope $(COMPLETIONS)

# ---- packages ----
# Checks packages by compiling, so it works on any system. As root on a system with apt-get, installs the missing ones.
$(BUILD)/.deps: .ci/deps
	@mkdir -p $(@D)
	@.ci/deps build
	@touch $@
$(BUILD)/.deps-test: .ci/deps | $(BUILD)/.deps # after the former, because apt-get takes a lock
	@mkdir -p $(@D)
	@.ci/deps build test
	@touch $@
deps: $(BUILD)/.deps
deps-test: $(BUILD)/.deps-test

# ---- program ----
$(BUILD)/obj/%.o: %.c | $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) $(ITS_FLAGS) -DSPECSCOPE_VERSION='"$(VERSION)"' -DSPECSCOPE_DATADIR='"$(DATADIR)"' -MMD -MP -c $< -o $@

# These files contain the version.
$(patsubst %,$(BUILD)/obj/%.o,cli/doctor/doctor cli/generation/generation cli/options/option_table engine/events/run_info \
	tui/figures/figures tests/unit/figures/test_figures): debian/changelog

# The program contains the default theme, so the scope needs no file for its colours.
$(BUILD)/gen/theme_dark.inc: themes/dark.json
	@mkdir -p $(@D)
	$(Q)od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' > $@
$(BUILD)/obj/tui/terminal/theme.o: $(BUILD)/gen/theme_dark.inc
$(BUILD)/obj/tui/terminal/theme.o: BASE += -I$(BUILD)/gen

# render.c is compiled again when cairo was installed or removed.
$(BUILD)/gen/cairo: FORCE | $(BUILD)/.deps
	@mkdir -p $(@D)
	@echo "$(CAIRO_CFLAGS)" | cmp -s - $@ || echo "$(CAIRO_CFLAGS)" >$@
$(BUILD)/obj/tui/figures/render.o: $(BUILD)/gen/cairo
$(BUILD)/obj/tui/figures/render.o: ITS_FLAGS = $(CAIRO_CFLAGS)

# BLAS and libcurl are plug-ins, because loading them slows down every start, and only training and servers use them. A
# static program contains BLAS and reaches no servers.
LIBRARY_SO := $(if $(STATIC),,$(BUILD)/specscope-blas.so $(BUILD)/specscope-curl.so)
$(BUILD)/specscope-blas.so: kernels/blas/blas_plugin.c | $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -std=c17 $(WARN) $(CFLAGS) -fPIC -shared $(LDFLAGS) -o $@.part $< $(BLAS_LIBS) && mv $@.part $@
$(BUILD)/specscope-curl.so: engine/remote/curl/curl_plugin.c engine/remote/curl/transfer.h | $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -std=c17 -I. $(WARN) $(CFLAGS) -fPIC -shared $(LDFLAGS) -o $@.part $< -lcurl && mv $@.part $@

$(BUILD)/obj/kernels/plugin.o: BASE += -DSPECSCOPE_LIBDIR='"$(PREFIX)/lib/specscope"'

$(BUILD)/libspecscope.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

$(BUILD)/specscope: $(CLI_OBJ) $(if $(STATIC),$(BUILD)/obj/embedded.o) $(BUILD)/libspecscope.a | $(LIBRARY_SO)
	$(call say,LD,$@)
	$(Q)$(CC) $(OPENMP) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A single file for machines without root or without libraries: build/static/specscope.
.PHONY: static
static:
	@.ci/static-libs build/static/lib
	@$(MAKE) --no-print-directory $(JOBS) BUILD=build/static STATIC=1 CAIRO= NVCC= LDFLAGS="-Lbuild/static/lib $(LDFLAGS)" \
		BLAS_LIBS="$$(cat build/static/lib/blas)" build/static/specscope
	@ls -l build/static/specscope

$(BUILD)/gen/embedded.S: FORCE
	@mkdir -p $(@D)
	$(Q).ci/embed $(@D)/terminfo >$@.part && if cmp -s $@.part $@; then rm $@.part; else mv $@.part $@; fi
$(BUILD)/obj/embedded.o: $(BUILD)/gen/embedded.S $(wildcard models/*.* themes/*.json)
	@mkdir -p $(@D)
	$(call say,AS,$<)
	$(Q)$(CC) -c $< -o $@

# The shells' completions and the manual's list of options are made from the table of options
# (cli/options/option_table.c).
$(BUILD)/completions/%: $(BUILD)/specscope
	@mkdir -p $(@D)
	$(Q)$< completions $* >$@.part && mv $@.part $@
man: $(BUILD)/specscope
	$(Q)$< completions mdoc >$(BUILD)/options.mdoc && sed -i -e '/^\.\\" Made by/,/^\.\\" So far/{//!d}' \
		-e '/^\.\\" Made by/r $(BUILD)/options.mdoc' docs/specscope.1

run:
	@$(MAKE) --no-print-directory $(JOBS) $(BUILD)/specscope
	$(if $(PLUGIN),@$(MAKE) --no-print-directory cuda-here)
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BUILD)/specscope bundled; else exec $(BUILD)/specscope run; fi

# ---- CUDA ----
# The plug-in of the CUDA backend is built if nvcc is installed; NVCC= disables it. The program itself does not link
# CUDA, and builds and runs without the plug-in. A failure of nvcc is printed, and stops only `make cuda`.
ifeq ($(origin NVCC),undefined)
  NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard $(addsuffix /bin/nvcc,$(CUDA_HOME) $(CUDA_PATH) /usr/local/cuda)) \
	$(shell ls -d /usr/local/cuda-*/bin/nvcc /opt/cuda/bin/nvcc 2>/dev/null | sort -rV))
endif
# The toolkit's folder, as nvcc prints it, because nvcc on the PATH may be a script or a link.
CUDA_ROOT := $(if $(NVCC),$(realpath $(shell $(NVCC) --dryrun -c nothing.cu 2>&1 | sed -n 's/^.[$$] TOP=//p')))
CUDA_INCLUDE := $(if $(NVCC),$(patsubst %/cuda_runtime_api.h,-isystem %,$(firstword $(wildcard \
	$(CUDA_ROOT)/include/cuda_runtime_api.h $(CUDA_ROOT)/targets/*/include/cuda_runtime_api.h))))
# The plug-in contains machine code for these architectures, as far as nvcc supports them. On other GPUs the driver
# compiles the PTX.
CUDA_CODE := sm_80 sm_86 sm_89 sm_90 \
	$(if $(NVCC),$(filter sm_100 sm_120,$(shell $(NVCC) --list-gpu-code 2>/dev/null))) compute_90
NVCCFLAGS ?= -O3 -lineinfo --threads 0
NVCC_CODE := -Wno-deprecated-gpu-targets $(foreach code,$(CUDA_CODE),-gencode arch=$(code:sm_%=compute_%),code=$(code))
# -fmad=false: the sources write fused multiply-adds explicitly, so no compiler changes bits (the emulation uses
# -ffp-contract=off).
NVCC_BASE := -std=c++17 -I. -fmad=false -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra $(NVCC_CODE)

CUDA_CU   := $(sort $(wildcard kernels/cuda/device/*.cu))
CUDA_C    := $(sort $(wildcard kernels/cuda/*.c)) $(CUDA_SHARED_C)
CUDA_OBJ  := $(CUDA_CU:%.cu=$(BUILD)/cuda/%.o) $(CUDA_C:%.c=$(BUILD)/cuda/%.o)

# `make run` builds the plug-in if there is an nvcc and a GPU.
PLUGIN := $(if $(SANITIZE),,$(if $(NVCC),cuda-if-possible))

# The list of architectures; if it changes, the plug-in is compiled again.
$(BUILD)/cuda/code: FORCE
	@mkdir -p $(@D)
	@echo $(CUDA_CODE) | cmp -s - $@ || { echo "  the CUDA plug-in is compiled for $(CUDA_CODE)"; echo $(CUDA_CODE) >$@; }
# The same for the compiler's version.
CUDA_VERSION = $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
$(BUILD)/cuda/nvcc: FORCE
	@mkdir -p $(@D)
	@echo $(CUDA_VERSION) | cmp -s - $@ || echo $(CUDA_VERSION) >$@
FORCE:

$(BUILD)/cuda/%.o: %.cu $(BUILD)/cuda/code $(BUILD)/cuda/nvcc
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCC_BASE) $(NVCCFLAGS) $(ITS_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(BUILD)/cuda/%.o: %.c $(BUILD)/cuda/nvcc
	@mkdir -p $(@D)
	$(call say,CC,"$< (CUDA)")
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) $(ITS_FLAGS) -fPIC -fvisibility=hidden $(CUDA_INCLUDE) -MMD -MP -c $< -o $@

$(BUILD)/cuda/kernels/cuda/device.o: $(BUILD)/cuda/code
$(BUILD)/cuda/kernels/cuda/device.o: ITS_FLAGS = -DCUDA_CODE='"$(strip $(CUDA_CODE))"'

$(BUILD)/specscope-cuda.so: $(CUDA_OBJ)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) -shared -cudart static $(NVCC_CODE) -Xcompiler -fopenmp -Xlinker -z,defs,-z,relro,-z,now,--exclude-libs,ALL -o $@.part $^ -ldl -lm && mv $@.part $@

# A plug-in of the CUDA plug-in for matrix products by cuBLAS, built if the toolkit has cuBLAS; CUBLAS= disables it.
CUBLAS     ?= $(if $(CUDA_ROOT),$(firstword $(wildcard $(CUDA_ROOT)/lib64/libcublasLt.so $(CUDA_ROOT)/targets/*/lib/libcublasLt.so)))
CUBLAS_SO  := $(if $(and $(CUBLAS),$(wildcard $(CUDA_ROOT)/include/cublasLt.h $(CUDA_ROOT)/targets/*/include/cublasLt.h)),$(BUILD)/specscope-cublas.so)
CUBLAS_OBJ := $(patsubst %.c,$(BUILD)/cuda/%.o,$(sort $(wildcard kernels/cublas/*.c)))
$(BUILD)/specscope-cublas.so: $(CUBLAS_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-z,defs,-rpath,$(dir $(CUBLAS)) -o $@.part $^ -L$(dir $(CUBLAS)) -lcublasLt && mv $@.part $@

.PHONY: cuda cuda-here cuda-if-possible FORCE
cuda:
	@if [ -z "$(NVCC)" ]; then echo "make cuda: nvcc is not here; install the CUDA toolkit (12 or 13), or give NVCC=/path/to/nvcc" >&2; exit 1; fi
	@$(MAKE) --no-print-directory $(JOBS) $(BUILD)/specscope-cuda.so $(CUBLAS_SO)
	@[ -n "$(CUBLAS_SO)" ] || echo "make cuda: the toolkit has no cuBLASLt, so training multiplies on the CPU; all else is there"
cuda-if-possible:
	@$(MAKE) --no-print-directory $(BUILD)/specscope-cuda.so $(CUBLAS_SO) || \
		echo "the CUDA plug-in could not be built with $(NVCC) (see above); the program runs on the CPU" >&2
# Builds the plug-in for the GPUs of this machine only.
code_here = code=$$(.ci/gpus $(BUILD)/cuda/code $(CUDA_CODE))
cuda-here:
	@$(code_here); if [ "$$code" ]; then $(MAKE) --no-print-directory $(JOBS) CUDA_CODE="$$code" cuda-if-possible; fi

# Tests are compiled quickly, without line numbers for a debugger.
QUICK := $(if $(SANITIZE)$(DEBUG),,1)
include tests/emulator/rules.mk

# Tests and measurements on a real GPU. A kit is a folder that was built on a machine without a GPU, with the shared
# libraries (and tmux) that the other machine may lack; `./first` in it runs the tests there. RECORD=1 writes the
# figures into docs/measurements.md.
$(BUILD)/gpu_floors: tests/bench/gpu_floors.cu $(BUILD)/cuda/code
	$(call say,NVCC,$<)
	$(Q)$(NVCC) -std=c++17 -O3 -I. $(NVCC_CODE) -cudart static -o $@ $<

# The smoke test (tests/cuda/smoke/smoke.h) runs the kernels without an engine.
$(SMOKE_CU:%.cu=$(BUILD)/cuda/%.o): ITS_FLAGS = -Xcompiler -fopenmp
$(BUILD)/cuda/tests/cuda/smoke/facts.o: ITS_FLAGS += -DCUDA_CODE='"$(strip $(CUDA_CODE))"'
$(BUILD)/gpu_smoke: $(SMOKE_CU:%.cu=$(BUILD)/cuda/%.o) $(CUDA_OBJ) $(SMOKE_C:%.c=$(BUILD)/cuda/%.o)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) -cudart static $(NVCC_CODE) -Xcompiler -fopenmp -o $@.part $^ -ldl -lm && mv $@.part $@

CUDA_TESTS := test_cuda_backend test_draft_rows test_cuda_feed test_cuda_queue test_cuda_long_paths test_cuda_tokens test_invariance test_context_property \
	test_golden_families test_lossless_matrix $(if $(CUBLAS_SO),test_training_on_gpu)
CUDA_RUNS  := specscope specscope-blas.so specscope-cuda.so $(CUBLAS_SO:$(BUILD)/%=%) gpu_smoke gpu_floors $(CUDA_TESTS:%=tests/%)
# The parts that need only nvcc and a C compiler, and no library.
CUDA_ALONE := specscope-cuda.so gpu_smoke gpu_floors
# The kit of another major version of CUDA has another name: kits for an older driver and for a newer one can be side by
# side.
CUDA_KIT    = $(BUILD)/cuda-kit-$(basename $(CUDA_VERSION))
.PHONY: cuda-kit cuda-kits test-cuda bench-cuda
cuda-kit: $(CUDA_RUNS:%=$(BUILD)/%)
	@rm -rf $(CUDA_KIT) && NVCC="$(NVCC)" tests/cuda/kit.sh $(CUDA_KIT) $(CUDA_RUNS:%=$(BUILD)/%)
	@XZ_OPT=-9e tar -C $(BUILD) -cJf $(CUDA_KIT).tar.xz $(notdir $(CUDA_KIT)) && du -sh $(CUDA_KIT) $(CUDA_KIT).tar.xz
# Makes a kit with each compiler in NVCCS, for example of CUDA 12 and of CUDA 13.
cuda-kits:
	@for nvcc in $(NVCCS); do $(MAKE) --no-print-directory cuda-kit NVCC="$$nvcc" || exit 1; done
test-cuda bench-cuda: golden
	@$(code_here); RECORD=$(RECORD) MAKE="$(MAKE) $(JOBS)" NVCC="$(NVCC)" CODE="$$code" ALL="$(CUDA_RUNS:%=$(BUILD)/%)" \
		ALONE="$(CUDA_ALONE:%=$(BUILD)/%)" tests/cuda/here.sh $(BUILD) $(@:%-cuda=%)
-include $(wildcard $(BUILD)/cuda/kernels/*/*.d $(BUILD)/cuda/kernels/*.d $(BUILD)/cuda/tests/cuda/smoke/*.d)

# Real servers: make test-engines LLAMA_SERVER=PROGRAM VLLM=PROGRAM VLLM_MODEL=FOLDER
.PHONY: test-engines
test-engines: all $(BUILD)/tests/tinymodel
	@BUILD=$(BUILD) LLAMA_SERVER="$(LLAMA_SERVER)" VLLM="$(VLLM)" VLLM_MODEL="$(VLLM_MODEL)" sh tests/engines/test_engines.sh

# ---- tests ----
$(BUILD)/libtests.a: $(HELP_OBJ) $(filter-out %/main.o,$(CLI_OBJ))
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^

# Unit tests are compiled with -O0, and test programs have no debug information; each saves a third of their build time.
# DEBUG=1 keeps the debug information. Shared code of tests (tests/rigs) is optimised like the program.
$(BUILD)/obj/tests/unit/%.o: ITS_FLAGS = $(if $(QUICK),-O0 -g0)
# These compute for longer than they compile.
$(patsubst %,$(BUILD)/obj/tests/unit/%.o,app/test_layout cuda/test_cuda_pack): ITS_FLAGS = $(if $(QUICK),-O1 -g0)
$(BUILD)/obj/tests/fuzz/%.o: ITS_FLAGS = $(if $(QUICK),-O1 -g0)
$(BUILD)/obj/tests/rigs/%.o: ITS_FLAGS = $(if $(QUICK),-g0)
TEST_LDFLAGS = $(LDFLAGS) $(if $(QUICK),-Wl$(,)-S)
, := ,

define unit
$(BUILD)/tests/$(basename $(notdir $(1))): $(BUILD)/obj/$(1:.c=.o) $(BUILD)/libtests.a $(BUILD)/libspecscope.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(OPENMP) $$(TEST_LDFLAGS) -o $$@ $$^ -lcmocka $$(LDLIBS)
endef
$(foreach source,$(UNIT_SRC),$(eval $(call unit,$(source))))

define tool
$(BUILD)/tests/%: $(BUILD)/obj/$(1)/%_main.o $(BUILD)/libtests.a $(BUILD)/libspecscope.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(OPENMP) $$(TEST_LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach folder,$(TOOL_DIRS),$(eval $(call tool,$(folder))))
# Links the files that golden folders share into them.
.PHONY: golden
golden:
	@tests/golden/assemble.sh
$(UNIT) $(TOOLS): | $(LIBRARY_SO) golden

# A preloaded library that makes calls fail (tests/faults/shim.h). It is not instrumented, because it replaces the
# functions that sanitizers replace.
FAULT_SHIM := $(BUILD)/tests/fault_shim.so
$(FAULT_SHIM): $(sort $(wildcard tests/faults/shim*.[ch])) tests/faults/page.h | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. $(WARN) -O1 -g -fPIC -shared -fno-builtin -pthread -o $@ $(filter %.c,$^) -ldl
CLOCK_SHIM := $(BUILD)/tests/clock_shim.so
$(CLOCK_SHIM): tests/faults/clock_shim.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(WARN) -O1 -g -fPIC -shared -pthread -o $@ $< -ldl -lm

$(BUILD)/obj/tests/%.o: tests/%.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) $(ITS_FLAGS) -DSPECSCOPE_VERSION='"$(VERSION)"' -MMD -MP -c $< -o $@

test-programs: all $(UNIT) $(TOOLS) $(FUZZ) $(FAULT_SHIM) $(CLOCK_SHIM)

# Only the long tests compile the plug-in: nvcc takes minutes, and the plug-in does not run without a GPU.
test test-long:
	@$(MAKE) --no-print-directory $(JOBS) $(if $(filter test-long,$@),$(PLUGIN) LONG=1) test-programs
	@tests/run.sh $(BUILD) $(patsubst test-%,%,$(filter test-%,$@))

# Builds and installs the released files in fresh root file systems. Needs root and Debian's packages.
.PHONY: test-release
test-release: all
	@tests/release/debian.sh && tests/release/static.sh && .ci/aarch64

# Fuzz targets use libFuzzer if the compiler has it, and otherwise a simple mutating driver.
$(BUILD)/obj/tests/fuzz/%.o: tests/fuzz/%.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(ITS_FLAGS) -MMD -MP -c $< -o $@
FUZZ_HELP := $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard tests/fuzz/mutate*.c)) tests/fuzz/app_rig.c tests/fuzz/fuzz.c)
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/driver.o $(FUZZ_HELP) $(BUILD)/libtests.a $(BUILD)/libspecscope.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(if $(and $(FUZZER),$(HAS_LIBFUZZER)),$(CC) $(OPENMP) -o $@ $(filter-out %/driver.o,$^) $(LDLIBS) -fsanitize=fuzzer,$(CC) $(OPENMP) $(TEST_LDFLAGS) -o $@ $^ $(LDLIBS))

# Runs each target with sanitizers for FUZZ_SECONDS.
FUZZ_BUILD := build/fuzzing$(if $(HAS_LIBFUZZER),-libfuzzer)
fuzz:
	$(MAKE) $(JOBS) BUILD=$(FUZZ_BUILD) SANITIZE=address,undefined FUZZER=1 fuzz-programs
	@tests/fuzz/run.sh $(FUZZ_BUILD) $(FUZZ_SECONDS)
.PHONY: fuzz-programs
fuzz-programs: $(FUZZ) $(TOOLS)

# Compares random cases with autoregressive decoding for MINUTES; SEED=s repeats the cases of an earlier run.
soak: $(BUILD)/tests/soak $(if $(findstring thread,$(SANITIZE)),,$(EMULATED_SO) $(EMULATED_CUBLAS))
	@OMP_WAIT_POLICY=passive $< --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
.PHONY: soak

bench: all $(TOOLS)
	@tests/bench/run.sh $(BUILD)
bench-batch: all
	@RECORD=$(RECORD) tests/bench/batches.sh $(BUILD)
bench-llama: all $(TOOLS)
	@RECORD=$(RECORD) tests/bench/llama_cpp.sh $(BUILD) "$(LLAMA_CPP)"
bench-checkpoints: all
	@RECORD=$(RECORD) tests/bench/checkpoints.sh $(BUILD) "$(LLAMA_CPP)"

# ---- installation, releases, formatting ----
SHARE := $(DESTDIR)$(PREFIX)/share
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/specscope/themes $(SHARE)/specscope/models $(SHARE)/man/man1 \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 $(BUILD)/specscope $(DESTDIR)$(PREFIX)/bin/specscope
	install -d $(DESTDIR)$(PREFIX)/lib/specscope
	install -m 755 $(LIBRARY_SO) $(DESTDIR)$(PREFIX)/lib/specscope/
	install -m 644 themes/*.json $(SHARE)/specscope/themes/
	install -m 644 models/*.gguf models/*.safetensors models/*.json models/*.jsonl $(SHARE)/specscope/models/
	install -m 644 docs/specscope.1 $(SHARE)/man/man1/specscope.1
	install -m 644 $(BUILD)/completions/bash $(SHARE)/bash-completion/completions/specscope
	install -m 644 $(BUILD)/completions/zsh $(SHARE)/zsh/site-functions/_specscope
	install -m 644 $(BUILD)/completions/fish $(SHARE)/fish/vendor_completions.d/specscope.fish
	if [ -f $(BUILD)/specscope-cuda.so ]; then \
		install -m 755 $(BUILD)/specscope-cuda.so $(DESTDIR)$(PREFIX)/lib/specscope/; fi
	if [ -f $(BUILD)/specscope-cublas.so ]; then \
		install -m 755 $(BUILD)/specscope-cublas.so $(DESTDIR)$(PREFIX)/lib/specscope/; fi

# The source archive of a release: the committed tree, always the same bytes from the same commit.
.PHONY: dist
dist:
	@.ci/dist "$(VERSION)" build/dist

# All files of a release (see .ci/release).
.PHONY: release
release:
	@.ci/release "$(VERSION)" build/release

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/specscope $(SHARE)/man/man1/specscope.1 $(SHARE)/bash-completion/completions/specscope \
		$(SHARE)/zsh/site-functions/_specscope $(SHARE)/fish/vendor_completions.d/specscope.fish
	rm -rf $(SHARE)/specscope $(DESTDIR)$(PREFIX)/lib/specscope

ALL_C = $(shell git ls-files '*.c' '*.h' '*.cc' '*.cu' '*.cuh')
format:
	clang-format -i $(ALL_C)
format-check:
	clang-format --dry-run --Werror $(ALL_C)
tidy: $(BUILD)/gen/theme_dark.inc # one process for each file, because checks of clang-tidy 14 keep state of the file before
	@printf '%s\n' $(LIB_SRC) $(CLI_SRC) | xargs -P $(shell getconf _NPROCESSORS_ONLN) -I{} clang-tidy --quiet {} -- $(BASE) -I$(BUILD)/gen \
		-fopenmp -DSPECSCOPE_VERSION='"$(VERSION)"' -DSPECSCOPE_DATADIR='"$(PREFIX)/share/specscope"'
.PHONY: format-check

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(HELP_OBJ:.o=.d) \
	$(patsubst %.c,$(BUILD)/obj/%.d,$(wildcard tests/*/*.c tests/*/*/*.c))
