# The CUDA plug-in for machines without a GPU: the same sources, compiled by g++ against the emulation. For tests.
EMULATION := tests/cuda/emulation
EMULATED_OBJ := $(CUDA_CU:%.cu=$(BUILD)/emulated/%.o) $(CUDA_C:%.c=$(BUILD)/emulated/%.o) \
	$(patsubst %.cc,$(BUILD)/emulated/%.o,$(sort $(wildcard $(EMULATION)/*.cc)))
EMULATED_CXX := $(CXX) -std=c++17 -D_GNU_SOURCE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0 -O2 -g -ffp-contract=off -fPIC -fvisibility=hidden \
	-Wall -Wextra -Wno-unused-function -Wno-unknown-pragmas -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)

$(BUILD)/emulated/%.o: %.cu | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,"$< (emulated)")
	$(Q)$(EMULATED_CXX) -I$(EMULATION)/include -I. -MMD -MP -x c++ -include cuda_runtime.h -c $< -o $@
$(BUILD)/emulated/%.o: %.cc | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(EMULATED_CXX) -fvisibility=default -I$(EMULATION)/include -I. -MMD -MP -c $< -o $@
$(BUILD)/emulated/%.o: %.c | $(BUILD)/.deps-test
	@mkdir -p $(@D)
	$(call say,CC,"$< (emulated)")
	$(Q)$(CC) $(BASE) $(OPENMP) $(CFLAGS) -fPIC -fvisibility=hidden -I$(EMULATION)/include -MMD -MP -c $< -o $@

$(BUILD)/tests/specscope-cuda-emulated.so: $(EMULATED_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) -shared $(OPENMP) $(LDFLAGS) -o $@ $^ -lm

test-programs: $(BUILD)/tests/specscope-cuda-emulated.so
-include $(EMULATED_OBJ:.o=.d)

# Tests that call the launches of kernels directly have them linked in, in place of the plug-in.
EMULATED_TESTS := $(patsubst %,$(BUILD)/tests/test_cuda_%,head head_statistics sampling steps)
$(BUILD)/obj/tests/unit/test_cuda_%.o: BASE += -I$(EMULATION)/include
$(EMULATED_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(filter-out %/backend.o,$(EMULATED_OBJ)) $(BUILD)/libtests.a $(BUILD)/libspecscope.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CXX) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(OPENMP) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)
