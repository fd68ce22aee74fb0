# The kernels as nvcc compiled them: its PTX as C++ (translate.py), in the place of what g++ makes of the same sources, for two
# architectures. Everything has the name that it has in tests/, in a folder of its own. Needs nvcc: `make test-ptx`.
PTX       := tests/cuda/ptx
PTX_PY    := $(wildcard $(PTX)/*.py)
PTX_ARCHS := sm_80 sm_90
PTX_RUN   := $(patsubst %.cc,$(BUILD)/emulated/%.o,$(sort $(wildcard $(PTX)/machine/*.cc))) $(EMULATION_OBJ)
PTX_CXX    = $(subst -I$(EMULATION)/include,-I$(PTX)/include -I$(EMULATION)/include,$(EMULATED_CXX))
# What is made of PTX is large, and for nobody's eyes.
PTX_MADE   = $(PTX_CXX) -O1 -g0 -w
# As for the plug-in.
PTX_NVCC   = $(NVCC) -ptx -std=c++17 -I. -fmad=false $(filter-out --threads 0,$(NVCCFLAGS)) $(ITS_FLAGS)

define PTX_RULES
$(BUILD)/ptx/$(1)/%.ptx: %.cu
	@mkdir -p $$(@D)
	$$(call say,NVCC,"$$< (PTX, $(1))")
	$$(Q)$$(PTX_NVCC) -arch=$(1) -MMD -MP -MF $$@.d -o $$@.part $$< && mv $$@.part $$@
$(BUILD)/ptx/$(1)/%.cc $(BUILD)/ptx/$(1)/%.host.cc: $(BUILD)/ptx/$(1)/%.ptx $(PTX_PY)
	$$(call say,PTX,$(BUILD)/ptx/$(1)/$$*.cc)
	$$(Q)python3 -B $(PTX)/translate.py $$< -o $(BUILD)/ptx/$(1)/$$*.cc --host $(BUILD)/ptx/$(1)/$$*.host.cc --source $$*.cu
$(BUILD)/ptx/$(1)/%.host.o: $(BUILD)/ptx/$(1)/%.host.cc
	$$(call say,CXX,$$<)
	$$(Q)$$(PTX_CXX) $$(ITS_FLAGS) -O0 -MMD -MP -include cuda_runtime.h -c $$< -o $$@
$(BUILD)/ptx/$(1)/%.o: $(BUILD)/ptx/$(1)/%.cc
	$$(call say,CXX,$$<)
	$$(Q)$$(PTX_MADE) -MMD -MP -c $$< -o $$@
$(BUILD)/tests/ptx/$(1)/specscope-cuda-emulated.so: $(CUDA_CU:%.cu=$(BUILD)/ptx/$(1)/%.o) $(CUDA_CU:%.cu=$(BUILD)/ptx/$(1)/%.host.o) \
		$(CUDA_C:%.c=$(BUILD)/emulated/%.o) $(PTX_RUN)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(EMULATED_CXX) -shared $$(OPENMP) $$(LDFLAGS) -Wl,-z,nodelete -o $$@.part $$^ -lm && mv $$@.part $$@
$(BUILD)/tests/ptx/$(1)/specscope-cublas-emulated.so: $(BUILD)/emulated/kernels/cublas/cublas.o \
		$(BUILD)/emulated/$(EMULATION)/cublas/cublaslt.o $(BUILD)/tests/ptx/$(1)/specscope-cuda-emulated.so
	$$(call say,LD,$$@)
	$$(Q)$$(EMULATED_CXX) -shared $$(LDFLAGS) -Wl,-z,nodelete -Wl,-rpath,'$$$$ORIGIN' -o $$@.part $$(filter %.o,$$^) \
		-L$$(@D) -l:specscope-cuda-emulated.so && mv $$@.part $$@
# Tests that launch kernels themselves are linked with them.
$(BUILD)/ptx/$(1)/libptx.a: $(CUDA_CU:%.cu=$(BUILD)/ptx/$(1)/%.o) $(CUDA_CU:%.cu=$(BUILD)/ptx/$(1)/%.host.o) \
		$(CUDA_C:%.c=$(BUILD)/emulated/%.o) $(PTX_RUN)
	@rm -f $$@
	$$(call say,AR,$$@)
	$$(Q)$$(AR) rcs $$@ $$^
$(EMULATED_TESTS:%=$(BUILD)/tests/ptx/$(1)/%): $(BUILD)/tests/ptx/$(1)/%: $(BUILD)/obj/tests/unit/cuda/%.o $(BUILD)/libtests.a \
		$(BUILD)/libspecscope.a $(BUILD)/ptx/$(1)/libptx.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(OPENMP) $$(LDFLAGS) -o $$@ $$^ -lcmocka $$(LDLIBS) -lstdc++
$(SMOKE_CU:%.cu=$(BUILD)/ptx/$(1)/%.ptx): ITS_FLAGS += -Xcompiler -fopenmp
$(BUILD)/ptx/$(1)/tests/cuda/smoke/facts.ptx $(BUILD)/ptx/$(1)/tests/cuda/smoke/facts.host.o: ITS_FLAGS += $(EMULATED_CODE)
$(BUILD)/tests/ptx/$(1)/test_cuda_smoke: $(SMOKE_CU:%.cu=$(BUILD)/ptx/$(1)/%.o) $(SMOKE_CU:%.cu=$(BUILD)/ptx/$(1)/%.host.o) $(SMOKE_C:%.c=$(BUILD)/obj/%.o) \
		$(BUILD)/ptx/$(1)/libptx.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$$(Q)$$(EMULATED_CXX) $$(OPENMP) $$(LDFLAGS) -o $$@ $$^ -lcmocka -lm
endef
$(foreach arch,$(PTX_ARCHS),$(eval $(call PTX_RULES,$(arch))))
.PRECIOUS: $(BUILD)/ptx/%.ptx $(BUILD)/ptx/%.cc
PTX_PLUGGED  := $(shell sed -n '/^PLUGGED=/,/"$$/p' tests/cuda/test_ptx.sh | tr -d '"' | sed 's/PLUGGED=//')
PTX_PROGRAMS := $(foreach arch,$(PTX_ARCHS),$(BUILD)/tests/ptx/$(arch)/specscope-cublas-emulated.so \
	$(EMULATED_TESTS:%=$(BUILD)/tests/ptx/$(arch)/%) $(BUILD)/tests/ptx/$(arch)/test_cuda_smoke)

.PHONY: ptx-programs test-ptx
ptx-programs: $(PTX_PROGRAMS)
test-ptx:
	@if [ -z "$(NVCC)" ]; then echo "make test-ptx: nvcc is not here; its code can't be tried" >&2; exit 1; fi
	@$(MAKE) --no-print-directory $(JOBS) all $(BUILD)/tests/tinymodel $(PTX_PLUGGED:%=$(BUILD)/tests/%) ptx-programs
	@BUILD=$(BUILD) NVCC=$(NVCC) SPECSCOPE_PTX=1 sh tests/cuda/test_ptx.sh

# The translator's own test, which needs no nvcc: PTX by hand.
PTX_FORMS := $(BUILD)/ptx/forms
$(PTX_FORMS)/rows.ptx: $(sort $(wildcard $(PTX)/forms/*.txt)) $(PTX_PY)
	@mkdir -p $(@D)
	$(Q)python3 -B $(PTX)/rows.py $(filter %.txt,$^) --ptx $@ --expected $(@D)/rows.h
$(PTX_FORMS)/rows.h: $(PTX_FORMS)/rows.ptx ;
$(PTX_FORMS)/threads.ptx: $(PTX)/forms/threads.ptx
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(PTX_FORMS)/%.cc: $(PTX_FORMS)/%.ptx $(PTX_PY)
	$(Q)python3 -B $(PTX)/translate.py $< -o $@
$(PTX_FORMS)/%.o: $(PTX_FORMS)/%.cc
	$(call say,CXX,$<)
	$(Q)$(PTX_CXX) -O0 -g0 -w -MMD -MP -c $< -o $@
$(PTX_FORMS)/test_ptx.o: tests/unit/cuda/test_ptx.cc $(PTX_FORMS)/rows.h | $(BUILD)/.deps-test
	$(call say,CXX,$<)
	$(Q)$(PTX_CXX) -I$(PTX_FORMS) -O1 -MMD -MP -c $< -o $@
$(BUILD)/tests/test_ptx: $(PTX_FORMS)/test_ptx.o $(PTX_FORMS)/rows.o $(PTX_FORMS)/threads.o $(PTX_RUN)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(EMULATED_CXX) $(LDFLAGS) -o $@ $^ -lcmocka
ifneq ($(shell command -v python3),)
ifeq ($(findstring thread,$(SANITIZE)),)
test-programs: $(BUILD)/tests/test_ptx
endif
endif
-include $(wildcard $(BUILD)/ptx/*/kernels/cuda/device/*.d $(BUILD)/ptx/*/tests/cuda/smoke/*.d $(PTX_FORMS)/*.d)
