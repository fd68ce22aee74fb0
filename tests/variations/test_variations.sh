#!/bin/sh
# Compares random folders with transformers, if Python has it: the contents of config.json and the layout of tensors
# (sweep.py). Runs in `make test-long` only; PYTHON names the interpreter. Prints TAP.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
PYTHON=${PYTHON:-python3}
SEED=${SPECSCOPE_SEED:-1}
OUT=$(mktemp)
trap 'rm -f "$OUT"' EXIT INT TERM
if [ -z "${SPECSCOPE_LONG:-}" ]; then
    echo "ok 1 - folders at random give the logits of transformers # SKIP only in the long test"
    exit 0
fi
if ! "$PYTHON" -c 'import gguf, safetensors, torch, transformers' 2>/dev/null; then
    echo "ok 1 - folders at random give the logits of transformers # SKIP $PYTHON has no transformers"
    exit 0
fi
"$PYTHON" tests/variations/sweep.py "$BUILD/tests/model_logits" --seed "$SEED" --n "${VARIATIONS:-600}" >"$OUT" 2>/dev/null
status=$?
if [ $status -eq 0 ]; then
    echo "ok 1 - folders at random give the logits of transformers: seed $SEED, $(tail -n 1 "$OUT")"
else
    echo "not ok 1 - folders at random give the logits of transformers: seed $SEED"
    cut -c1-2000 "$OUT" | sed 's/^/# /'
fi
if "$PYTHON" tests/variations/architectures.py "$BUILD/tests/model_logits" >"$OUT" 2>/dev/null; then
    echo "ok 2 - every architecture that transformers knows is right or refused: $(tail -n 1 "$OUT")"
else
    echo "not ok 2 - every architecture that transformers knows is right or refused"
    grep -v "^ok" "$OUT" | cut -c1-2000 | sed 's/^/# /'
    status=1
fi
exit $status
