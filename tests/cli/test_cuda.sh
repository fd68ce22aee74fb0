#!/bin/sh
# --backend cuda and auto: the plug-in, and the messages if it, a driver or a GPU is missing or fails. GPUs are emulated
# (tests/emulator), so the test runs on any machine.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/checks.sh
EMULATED=$BUILD/tests/specscope-cuda-emulated.so
PLUGIN=$BUILD/specscope-cuda.so
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)} # NVCC= for none
[ -n "${SPECSCOPE_LONG:-}" ] || NVCC=

group "the plug-in"
check "the program does not link CUDA" sh -c "! ldd '$PROGRAM' | grep -iq cuda"
CODE=$(tr ' ' '\n' <"$BUILD/cuda/code" 2>/dev/null | grep '^sm_') # that the plug-in was built for
fatbin_lists() { # the headers of the embedded binaries, where cuobjdump is not there: kind 1 is PTX, 2 machine code
    python3 - "$PLUGIN" <<'PYTHON'
import struct, sys
data, at = open(sys.argv[1], 'rb').read(), 0
while (at := data.find(struct.pack('<IHH', 0xBA55ED50, 1, 16), at)) >= 0:
    end, here = at + 16 + struct.unpack_from('<Q', data, at + 8)[0], at + 16
    while here + 32 <= end:
        kind, _, header, size = struct.unpack_from('<HHIQ', data, here)
        if kind not in (1, 2) or header < 32:
            break
        print({1: 'ptx', 2: 'elf'}[kind], 'sm_%d' % struct.unpack_from('<I', data, here + 28)[0])
        here += header + size
    at += 16
PYTHON
}
if [ -z "$NVCC" ]; then
    skip "the CUDA plug-in is built" "make test-long builds it, where nvcc is"
elif ! case $BUILD in */sanitize*) false ;; esac; then
    skip "the CUDA plug-in is built" "not with sanitizers"
else
    check "the CUDA plug-in is built where nvcc is installed" [ -f "$PLUGIN" ]
    check "the CUDA plug-in needs no cuBLAS" sh -c "! ldd '$PLUGIN' | grep -q cublas"
    if [ -f "$(dirname "$NVCC")/../include/cublasLt.h" ]; then
        check "the cuBLASLt plug-in is built where the toolkit has cuBLASLt" [ -f "$BUILD/specscope-cublas.so" ]
        check "the cuBLASLt plug-in links cuBLASLt" sh -c "ldd '$BUILD/specscope-cublas.so' | grep -q libcublasLt"
    fi
    check "the CUDA plug-in exports one symbol" [ "$(nm -D --defined-only "$PLUGIN" | wc -l)" -eq 1 ]
    check "the CUDA plug-in's symbol is its table" sh -c "nm -D --defined-only '$PLUGIN' | grep -q ' T specscope_backend$'"
    if command -v "${NVCC%nvcc}cuobjdump" >/dev/null 2>&1; then
        "${NVCC%nvcc}cuobjdump" --list-elf "$PLUGIN" | sed 's/.*\(sm_[0-9]*\).*/elf \1/' >"$TMP/code"
        "${NVCC%nvcc}cuobjdump" --list-ptx "$PLUGIN" | sed 's/.*\(sm_[0-9]*\).*/ptx \1/' >>"$TMP/code"
    elif [ -n "$HAVE_PYTHON" ]; then
        fatbin_lists >"$TMP/code"
    fi
    if [ -e "$TMP/code" ]; then
        check "the CUDA plug-in was built for some GPUs" [ -n "$CODE" ]
        for arch in $CODE; do
            check "the CUDA plug-in has machine code for $arch" grep -qx "elf $arch" "$TMP/code"
        done
        check "the CUDA plug-in has PTX for later GPUs" grep -qx "ptx sm_90" "$TMP/code"
    else
        skip "the CUDA plug-in has code for $CODE" "there is neither cuobjdump nor python3"
    fi
fi

group "no plug-in, or one of another version"
export SPECSCOPE_CUDA_PLUGIN="$TMP/none.so"
refuses "--backend cuda without a plug-in is refused in one line" 1 'no specscope-cuda.so' run -n 3 --backend cuda "$TINY"
export SPECSCOPE_CUDA_PLUGIN=''
refuses "--backend cuda with the plug-in switched off is refused in one line" 1 'no specscope-cuda.so' run -n 3 --backend cuda "$TINY"
export SPECSCOPE_CUDA_PLUGIN="$TMP/none.so"
echo "not a library" >"$TMP/none.so"
refuses "--backend cuda with a broken plug-in is refused in one line" 1 'can.t be loaded' run -n 3 --backend cuda "$TINY"
works "--backend auto continues with the CPU if the plug-in is broken" run -n 3 "$TINY"
check "--backend auto names the broken plug-in" grep -q '^specscope: on the CPU: .*can.t be loaded' "$TMP/err"
CC=${CC:-cc}
echo 'int specscope_nothing;' | $CC -shared -fPIC -x c - -o "$TMP/none.so"
refuses "a library that is no plug-in is refused" 1 'no plug-in' run -n 3 --backend cuda "$TINY"
echo 'static struct { const char *name; unsigned abi; void *rest[32]; } t = {"cuda", 1};
      void *specscope_backend(void); void *specscope_backend(void) { return &t; }' |
    $CC -shared -fPIC -x c - -o "$TMP/none.so"
refuses "a plug-in of another ABI is refused" 1 'speaks ABI 1' run -n 3 --backend cuda "$TINY"

if [ ! -f "$EMULATED" ]; then
    skip "the program runs on an emulated GPU" "there is no $EMULATED"
    finish
fi
export SPECSCOPE_CUDA_PLUGIN="$EMULATED"

group "an emulated GPU"
works "--backend cuda generates" run -n 12 --ignore-eos --backend cuda --policy ar -p 'hello there' "$TINY"
cp "$TMP/out" "$TMP/ar"
check "--backend cuda prints its text" [ -s "$TMP/ar" ]
works "--backend cuda generates speculatively" run -n 12 --ignore-eos --backend cuda -p 'hello there' --json "$TMP/json" "$TINY"
check "--backend cuda generates speculatively the text of ar" cmp -s "$TMP/out" "$TMP/ar"
[ -n "$HAVE_PYTHON" ] && check "the results of --backend cuda name the backend" json_holds "$TMP/json" 'j["backend"] == "cuda" and "GPU" in j["isa"]'
works "exact arithmetic runs on the GPU" run -n 12 --ignore-eos --backend cuda --exact -p 'hello there' "$TINY"
cp "$TMP/out" "$TMP/exact"
works "exact arithmetic runs on the CPU" run -n 12 --ignore-eos --backend cpu --exact -p 'hello there' "$TINY"
check "exact arithmetic generates the same text on the GPU and on the CPU" cmp -s "$TMP/out" "$TMP/exact"
works "--backend auto takes the GPU" run -n 3 --ignore-eos --json "$TMP/json" "$TINY"
[ -n "$HAVE_PYTHON" ] && check "the results of --backend auto name the GPU's backend" json_holds "$TMP/json" 'j["backend"] == "cuda"'
check "--backend auto takes the GPU without a message" [ "$(wc -l <"$TMP/err")" -eq 1 ]
refuses "a missing GPU is reported in one line" 2 '--gpu 7' run -n 3 --backend cuda --gpu 7 "$TINY"

group "no GPU, an old one, a small one"
export EMULATED_CUDA_DEVICES=0
refuses "--backend cuda without a GPU is refused in one line" 1 'no NVIDIA GPU' run -n 3 --backend cuda "$TINY"
works "--backend auto continues with the CPU where there is no GPU" run -n 3 --backend auto "$TINY"
check "--backend auto gives the reason why there is no GPU" grep -q '^specscope: on the CPU: .*no NVIDIA GPU' "$TMP/err"
if [ -e /dev/nvidia0 ] || [ -e /dev/nvidiactl ]; then
    skip "run without --backend prints nothing about a missing GPU" "there is a GPU"
else
    works "run without --backend continues with the CPU where there is no GPU" run -n 3 "$TINY"
    check "run without --backend prints nothing about a missing GPU" [ "$(wc -l <"$TMP/err")" -eq 1 ]
fi
unset EMULATED_CUDA_DEVICES
export EMULATED_CUDA_DRIVER=12020
refuses "an old driver is refused in one line with its version" 1 'driver is for CUDA 12.2' run -n 3 --backend cuda "$TINY"
export EMULATED_CUDA_DRIVER=0
refuses "--backend cuda without a driver is refused in one line" 1 'no NVIDIA driver' run -n 3 --backend cuda "$TINY"
unset EMULATED_CUDA_DRIVER
export EMULATED_CUDA_CAPABILITY=75
refuses "a GPU that is too old is refused in one line" 1 'compute capability 7.5' run -n 3 --backend cuda "$TINY"
for arch in 80 89 120; do
    export EMULATED_CUDA_CAPABILITY=$arch
    works "the kernels run with the shared memory of sm_$arch" run -n 2 --backend cuda "$TINY"
done
export EMULATED_CUDA_CAPABILITY=103
works "a GPU runs code that was compiled for an older one of its family" run -n 3 --backend cuda "$TINY"
check "code for an older GPU of the family runs without a message" [ "$(wc -l <"$TMP/err")" -eq 1 ]
export EMULATED_CUDA_CAPABILITY=121
works "a GPU that the plug-in has no machine code for is used" run -n 3 --backend cuda "$TINY"
check "one line reports that the driver compiles" [ "$(grep -c '^specscope: the plug-in has no machine code .*sm_121' "$TMP/err")" -eq 1 ]
EMULATED_CUDA_FAIL=1 EMULATED_CUDA_FAIL_KIND=oom specscope run -n 3 --backend cuda "$TINY"
check "the line about the driver's compiling precedes the summary" grep -q '^specscope: the plug-in has no machine code' "$TMP/err"
unset EMULATED_CUDA_CAPABILITY
export EMULATED_CUDA_MEMORY_MIB=64
refuses "a context that does not fit is refused with the numbers" 1 'GiB of keys and values for 300000 positions' \
    run -n 3 -c 300000 --backend cuda "$TINY"
works "--backend auto takes the CPU for a context that does not fit" run -n 3 -c 300000 "$TINY"
check "--backend auto gives the reason why the context does not fit" grep -q '^specscope: on the CPU: .*is too small' "$TMP/err"
unset EMULATED_CUDA_MEMORY_MIB

group "training"
yes 'the quick brown fox jumps over the lazy dog' | head -n 8 >"$TMP/text"
train() { works "$1" train heads --model "$TINY" --text "$TMP/text" --out "$TMP/$2.safetensors" --tokens 32 --window 16 --batch 16 --backend cuda; }
train "heads are trained with a GPU" gpu
check "training multiplies on the GPU" grep -q 'multiplies on the GPU' "$TMP/err"
mkdir "$TMP/alone" && cp "$EMULATED" "$TMP/alone/"
SPECSCOPE_CUDA_PLUGIN="$TMP/alone/specscope-cuda-emulated.so" train "heads are trained with a GPU without the cuBLASLt plug-in" cpu
check "training reports in a line that it multiplies on the CPU" grep -q '^specscope: training multiplies on the CPU: there is no specscope-cublas.so' "$TMP/err"
check "heads that were trained on the GPU and on the CPU have the same size" [ "$(wc -c <"$TMP/gpu.safetensors")" -eq "$(wc -c <"$TMP/cpu.safetensors")" ]
works "train accept trains a head of the model's first layers on the GPU" train accept --backend cuda --model "$TINY" \
    --draft self:2 --text "$TMP/text" --out "$TMP/accept.safetensors" --tokens 16 --response 2 --prompt-tokens 4 --blocks 0 --passes 1 --temp 0 --mixing 0

group "switches"
SPECSCOPE_CUDA_PREFETCH=0 SPECSCOPE_CUDA_SYNC=1 specscope run -n 12 --ignore-eos --backend cuda -p 'hello there' "$TINY"
check "run generates the same text if nothing is fetched ahead and every launch is waited for" cmp -s "$TMP/out" "$TMP/ar"
for blocks in 1 100; do
    SPECSCOPE_CUDA_BLOCKS=$blocks specscope run -n 12 --ignore-eos --backend cuda -p 'hello there' "$TINY"
    check "run generates the same text with at most $blocks blocks" cmp -s "$TMP/out" "$TMP/ar"
done
export EMULATED_CUDA_FAIL_KIND=launch
for nth in 199 299 341; do
    EMULATED_CUDA_FAIL=$nth SPECSCOPE_CUDA_SYNC=1 specscope run -n 12 --ignore-eos --policy specbound --backend cuda "$TINY"
    check "a launch that fails is named when launches are waited for ($nth)" \
        grep -Eq '^specscope-cuda: the launch that failed is [a-z_]+(<[^>]*>)?, [0-9]+ blocks of [0-9]+ threads' "$TMP/err"
    cat "$TMP/err" >>"$TMP/launches"
done
check "a launch that fails in a layer names the layer" grep -q 'failed while running layer [1-4] ' "$TMP/launches"
unset EMULATED_CUDA_FAIL_KIND

group "the device's time by step"
export SPECSCOPE_CUDA_PROFILE="$TMP/phases.csv"
works "a run with stamped phases works" run -n 12 --ignore-eos --backend cuda --policy specbound -p 'hello there' --trace "$TMP/stamped" "$TINY"
specscope run -n 12 --ignore-eos --backend cuda --policy ar -p 'hello there' "$TINY"
check "a run with stamped phases generates the same text" cmp -s "$TMP/out" "$TMP/ar"
check "a forward pass has a line for each phase" grep -Eq '^[0-9]+,forward,1,4,down,[0-9.]+,[0-9.]+,-?[0-9.]+,-?[0-9.]+,[0-9.]+$' "$TMP/phases.csv"
check "the phases of a forward pass follow one another" awk -F, '$2 == "forward" && $1 == call && ($6 < end - 0.002 || $6 > end + 0.002) { bad = 1 }
    { call = $1; end = $6 + $7; n++ } END { exit bad || n < 100 }' "$TMP/phases.csv"
check "a layer has each of its phases once a forward pass" awk -F, '$2 == "forward" && seen[$1, $4, $5]++ { bad = 1 } END { exit bad }' "$TMP/phases.csv"
check "phases.sh makes a table of stamped phases" sh -c "sh tests/cuda/phases.sh '$TMP/phases.csv' layers >'$TMP/table'"
check "the table of stamped phases has phases by layer" grep -Eq '^  gate·up +[0-9.]+ +[0-9.]+%.*[1-4] \([0-9.]+ us\)$' "$TMP/table"
check "the table of stamped phases has requests that are no layer" grep -Eq '^  head +[0-9]+ +[0-9.]+ +[0-9.]+$' "$TMP/table"
check "the run's trace contains the time by step" grep -q '"device",,"busy [0-9]*%, of it waiting [0-9]*%: ' "$TMP/stamped/controls.csv"
printf ':goto 100%%\n:wait idle\n:save-screen %s\n:quit\n' "$TMP/picture" >"$TMP/script"
if command -v script >/dev/null 2>&1; then
    check "a replay of a run with stamped phases works" in_terminal "'$PROGRAM' replay --script '$TMP/script' '$TMP/stamped'"
    check "a replay shows the time by step in a line of its own" grep -q '^ device busy [0-9]*%' "$TMP/picture"
else
    skip "a replay shows the time by step in a line of its own" "there is no script(1)"
fi
phases_are() { # model, the phases of a layer
    specscope run -n 2 --ignore-eos --backend cuda --policy ar -p hi "$1"
    [ "$(awk -F, '$2 == "forward" && $4 == 2 && !($5 in seen) { seen[$5]; printf "%s%s", n++ ? ", " : "", $5 }' "$TMP/phases.csv")" = "$2" ]
}
check "a layer of Llama's form has five phases" phases_are "$TINY" "qkv, attention, out, gate·up, down"
check "a layer with LayerNorms has no further phase" phases_are tests/golden/families/phi "qkv, attention, out, gate·up, down"
check "a layer with norms after sublayers has further phases" phases_are tests/golden/families/gemma2 \
    "qkv, attention, out, norm of out, gate·up, down, norm of down"
check "a layer with norms of heads has a phase for them" phases_are tests/golden/families/olmo2 \
    "qkv, norm of heads, attention, out, norm of out, gate·up, down, norm of down"
check "a layer with experts has a phase that chooses them" phases_are tests/golden/families/mixtral "qkv, attention, out, route, gate·up, down"
SPECSCOPE_CUDA_PROFILE="$TMP/none/phases.csv"
refuses "stamped phases into a file that can't be written are refused in one line" 1 "SPECSCOPE_CUDA_PROFILE: .*can.t be written" run -n 3 --backend cuda "$TINY"
unset SPECSCOPE_CUDA_PROFILE

group "a GPU that fails in mid-run"
export EMULATED_CUDA_FAIL_KIND=lost
export EMULATED_CUDA_FAIL=400 # of the runtime's calls; loading takes some 150 of them
refuses_after_text() {
    [ "$status" -eq 1 ] && one_line && grep -q 'GPU 0 (.*accepts no more work' "$TMP/err"
}
specscope run -n 200 --ignore-eos --backend cuda --trace "$TMP/lost" "$TINY"
check "a GPU that is lost in mid-run is reported in one line" refuses_after_text
check "the trace of a run that lost its GPU has the rounds until then" [ "$(wc -l <"$TMP/lost/rounds.csv")" -gt 1 ]
printf ':save-screen %s\n:quit\n' "$TMP/picture" >"$TMP/script"
if command -v script >/dev/null 2>&1; then
    check "the trace of a run that lost its GPU replays" in_terminal "'$PROGRAM' replay --script '$TMP/script' '$TMP/lost'"
    check "the replay of a run that lost its GPU reaches its end" [ -s "$TMP/picture" ]
    in_terminal "'$PROGRAM' --backend cuda -n 200 --ignore-eos --quit-at-end '$TINY'; echo status=\$?"
    check "the scope ends with status 1 if the GPU is lost" grep -q 'status=1' "$TMP/screen"
    check "the scope restores the terminal before it reports that the GPU is lost" \
        sh -c "sed 's/.*1049l//' '$TMP/screen' | grep -q 'accepts no more work'"
else
    skip "the scope ends with status 1 if the GPU is lost" "there is no script(1)"
fi
unset EMULATED_CUDA_FAIL EMULATED_CUDA_FAIL_KIND
finish
