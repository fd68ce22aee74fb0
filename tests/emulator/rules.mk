# Builds the emulator of CUDA (README.md). It is not built with ThreadSanitizer, which does not support code that
# switches stacks.
EMULATION     := tests/emulator
EMULATION_OBJ := $(patsubst %.cc,$(BUILD)/emulated/%.o,$(sort $(wildcard $(addprefix $(EMULATION)/,threads/*.cc runtime/*.cc mutations/*.cc))))
EMULATED_OBJ  := $(CUDA_CU:%.cu=$(BUILD)/emulated/%.o) $(CUDA_C:%.c=$(BUILD)/emulated/%.o) $(EMULATION_OBJ)
EMULATED_SO   := $(BUILD)/tests/specscope-cuda-emulated.so

# Only the race checker prints line numbers, which take time to compile. Device code with -O1 compiles in half the time
# and runs as fast, because it spends most of its time on switches between threads.
EMULATED_OPT   = $(if $(QUICK),-O1,-O2 -g1)
$(BUILD)/emulated/$(EMULATION)/%.o: EMULATED_OPT = -O2 $(if $(QUICK),,-g1)

# Device code uses type punning, and defines functions that it does not call.
EMULATED_CXX   = $(CXX) -std=c++17 -D_GNU_SOURCE $(EMULATED_OPT) -ffp-contract=off -fno-strict-aliasing -fPIC -fvisibility=hidden \
	-Wall -Wextra -Wno-unused-function -Wno-unknown-pragmas -pthread -I$(EMULATION)/include -I. \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)

$(BUILD)/emulated/%.o: %.cu | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,"$< (emulated)")
	$(Q)$(EMULATED_CXX) -MMD -MP -x c++ -include cuda_runtime.h -c $< -o $@
$(BUILD)/emulated/%.o: %.cc | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(EMULATED_CXX) -MMD -MP -c $< -o $@
$(BUILD)/emulated/%.o: %.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,"$< (emulated)")
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) $(ITS_FLAGS) -fPIC -fvisibility=hidden -I$(EMULATION)/include -MMD -MP -c $< -o $@

# The architectures that the plug-in claims to contain code for.
EMULATED_CODE := -DCUDA_CODE='"sm_80 sm_86 sm_89 sm_90 sm_100 compute_90"'
$(BUILD)/emulated/kernels/cuda/device.o: ITS_FLAGS = $(EMULATED_CODE)

# The plug-in must stay loaded after dlclose(), because threads of streams may still run.
$(EMULATED_SO): $(EMULATED_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) -shared $(OPENMP) $(LDFLAGS) -Wl,-z,nodelete -o $@.part $^ -lm && mv $@.part $@

# The plug-in of products contains a cuBLASLt that uses the emulated streams of the plug-in above, which is loaded
# first.
EMULATED_CUBLAS := $(BUILD)/tests/specscope-cublas-emulated.so
$(EMULATED_CUBLAS): $(BUILD)/emulated/kernels/cublas/cublas.o $(BUILD)/emulated/$(EMULATION)/cublas/cublaslt.o $(EMULATED_SO)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) -shared $(LDFLAGS) -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' -o $@.part $(filter %.o,$^) \
		-L$(@D) -l:$(notdir $(EMULATED_SO)) && mv $@.part $@

# Tests that launch kernels themselves, and the emulator's own tests, are linked with the emulator.
$(BUILD)/libemulated.a: $(EMULATED_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^
EMULATED_TESTS := $(patsubst tests/unit/cuda/%.c,%,$(shell grep -l 'kernels/cuda/device/launch.h' tests/unit/cuda/test_cuda_*.c))
$(EMULATED_TESTS:%=$(BUILD)/obj/tests/unit/cuda/%.o): BASE += -I$(EMULATION)/include
$(EMULATED_TESTS:%=$(BUILD)/tests/%): $(BUILD)/libemulated.a
$(EMULATED_TESTS:%=$(BUILD)/tests/%): LDLIBS += -lstdc++

EMULATION_TEST_SRC := $(sort $(wildcard tests/unit/cuda/test_cuda_*.cc $(EMULATION)/tests/test_*.cc))
EMULATION_TESTS := $(basename $(notdir $(EMULATION_TEST_SRC)))
define emulation_test
$(BUILD)/tests/$(basename $(notdir $(1))): $(BUILD)/emulated/$(1:.cc=.o) $(EMULATION_OBJ)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(EMULATED_CXX) $$(LDFLAGS) -o $$@ $$^ -lcmocka
endef
$(foreach source,$(EMULATION_TEST_SRC),$(eval $(call emulation_test,$(source))))

$(BUILD)/tests/test_cuda_steps $(BUILD)/tests/races/test_cuda_steps: $(BUILD)/obj/kernels/cpu/route.o

# The smoke test of `make test-cuda`.
SMOKE_CU  := $(sort $(wildcard tests/cuda/smoke/*.cu))
SMOKE_C   := tests/rigs/prediction_definition.c kernels/cpu/sampling.c
$(BUILD)/tests/test_cuda_smoke: $(SMOKE_CU:%.cu=$(BUILD)/emulated/%.o) $(SMOKE_C:%.c=$(BUILD)/obj/%.o) $(BUILD)/libemulated.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) $(OPENMP) $(LDFLAGS) -o $@ $^ -lm
$(BUILD)/emulated/tests/cuda/smoke/facts.o: EMULATED_CXX += $(EMULATED_CODE)

# The same programs with the race checker, in build/tests/races. The compiler inserts ThreadSanitizer's calls, which
# races/hooks.cc implements.
RACES_SRC := $(sort $(wildcard $(EMULATION)/races/*.cc))
RACES_RUN := $(RACES_SRC:%.cc=$(BUILD)/emulated/%.o) $(EMULATION_OBJ)
RACES_OBJ := $(CUDA_CU:%.cu=$(BUILD)/races/%.o) $(CUDA_C:%.c=$(BUILD)/races/%.o) $(RACES_RUN)
RACES_SO  := $(BUILD)/tests/races/specscope-cuda-emulated.so
RACES_CUBLAS := $(BUILD)/tests/races/specscope-cublas-emulated.so
# The short tests (test_races.sh, test_mutations.sh) use RACES, the long ones RACES_ALL.
RACES     := $(RACES_SO) $(RACES_CUBLAS) $(addprefix $(BUILD)/tests/races/,test_cuda_verify test_cuda_head_statistics test_cuda_overlap \
	test_cuda_steps)
RACES_ALL := $(RACES) $(EMULATED_TESTS:%=$(BUILD)/tests/races/%) $(BUILD)/tests/races/test_cuda_products

$(BUILD)/races/%.o: %.cu | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,"$< (races)")
	$(Q)$(EMULATED_CXX) -g1 -fsanitize=thread -MMD -MP -x c++ -include cuda_runtime.h -c $< -o $@
$(BUILD)/races/%.o: %.cc | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,"$< (races)")
	$(Q)$(EMULATED_CXX) -g1 -fsanitize=thread -MMD -MP -c $< -o $@
$(BUILD)/races/%.o: %.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,"$< (races)")
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) $(ITS_FLAGS) -fPIC -fvisibility=hidden -fsanitize=thread \
		-include $(EMULATION)/races/moves.h -I$(EMULATION)/include -MMD -MP -c $< -o $@
$(BUILD)/races/kernels/cuda/device.o: ITS_FLAGS = $(EMULATED_CODE)
$(RACES_SO): $(RACES_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) -shared $(OPENMP) $(LDFLAGS) -Wl,-z,nodelete -o $@.part $^ -lm && mv $@.part $@
$(RACES_CUBLAS): $(BUILD)/emulated/kernels/cublas/cublas.o $(BUILD)/emulated/$(EMULATION)/cublas/cublaslt.o $(RACES_SO)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) -shared $(LDFLAGS) -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' -o $@.part $(filter %.o,$^) \
		-L$(@D) -l:$(notdir $(RACES_SO)) && mv $@.part $@
$(BUILD)/libraces.a: $(RACES_OBJ)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^
$(EMULATED_TESTS:%=$(BUILD)/tests/races/%): $(BUILD)/tests/races/%: $(BUILD)/obj/tests/unit/cuda/%.o $(BUILD)/libtests.a \
		$(BUILD)/libspecscope.a $(BUILD)/libraces.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(OPENMP) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS) -lstdc++
$(BUILD)/tests/races/test_%: $(BUILD)/races/tests/unit/cuda/test_%.o $(RACES_RUN)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) $(LDFLAGS) -o $@ $^ -lcmocka
# The floors of `make bench-cuda`; here they only show that the program runs.
$(BUILD)/emulated/gpu_floors: $(BUILD)/emulated/tests/bench/gpu_floors.o $(EMULATION_OBJ)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) $(LDFLAGS) -o $@ $^

.PHONY: cuda-emulated
cuda-emulated: $(EMULATED_SO) $(EMULATED_CUBLAS) $(BUILD)/tests/test_cuda_smoke $(BUILD)/emulated/gpu_floors
ifeq ($(findstring thread,$(SANITIZE)),)
test-programs: cuda-emulated $(EMULATION_TESTS:%=$(BUILD)/tests/%)
ifndef SANITIZE # the race checker and other sanitizers exclude each other
test-programs: $(if $(LONG),$(RACES_ALL),$(RACES))
endif
else
UNIT := $(filter-out $(EMULATED_TESTS:%=$(BUILD)/tests/%),$(UNIT))
endif
-include $(EMULATED_OBJ:.o=.d) $(RACES_OBJ:.o=.d) $(wildcard $(BUILD)/emulated/tests/unit/cuda/*.d $(BUILD)/emulated/tests/cuda/smoke/*.d) \
	$(wildcard $(BUILD)/emulated/$(EMULATION)/tests/*.d) \
	$(wildcard $(BUILD)/races/tests/unit/cuda/*.d $(BUILD)/emulated/tests/bench/*.d) \
	$(wildcard $(BUILD)/emulated/kernels/cublas/*.d $(BUILD)/emulated/$(EMULATION)/cublas/*.d)
