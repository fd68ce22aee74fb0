# Sourced by run.sh: measures synthetic models of real sizes on a GPU, and compares them with two floors of the same run
# (bytes over bandwidth, operations over rate). It writes cuda-logs/measurements-cuda.md.
RESULTS=$LOG/measurements-cuda.md

number() { # key, JSON file: prints the key's number
    sed -n 's/.*"'"$1"'":[[:space:]]*\([0-9.eE+-]*\).*/\1/p' "$2" | head -n 1
}
steps_of() { # type, more options
    type=$1
    shift
    limited "$S" bench --steps --backend cuda --synth "$SHAPE:$type,$EXIT,0.75" --json "$LOG/steps-$type.json" "$@" \
        >"$LOG/steps-$type.txt" && cat "$LOG/steps-$type.txt"
}

# Elements of all matrices that a token is multiplied with: four of 4096 x 4096 and three of 4096 x 11008 in each of 32
# layers, and the head. ELEMENTS=N is the number for another SHAPE.
ELEMENTS=${ELEMENTS:-$((32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32000 * 4096))}
KV_BYTES=${KV_BYTES:-$((32 * 2 * 4096 * 2))} # bytes of a position's keys and values in all layers

bits_of() { # type: prints its bits per weight on the device
    case $1 in
    q8_0) echo 8.5 ;;
    q4_0) echo 4.5 ;;
    q4_k) echo 4.625 ;;
    q6_k) echo 6.5625 ;;
    *) echo 16 ;;
    esac
}

# Further cases: name, type of weights, elements of all matrices, bytes of a position's keys and values, an environment
# variable, options. Llama-3-8B has one head of keys for four heads of queries.
CASES='4096-positions f16 $ELEMENTS $KV_BYTES A= -c 4160
no-prefetch f16 $ELEMENTS $KV_BYTES SPECSCOPE_CUDA_PREFETCH=0 -c 160
grouped-heads f16 7504658432 131072 A= --synth Llama-3-8B:f16,8,0.75
grouped-heads-4096 f16 7504658432 131072 A= --synth Llama-3-8B:f16,8,0.75 -c 4160
no-prefetch-q4_k q4_k $ELEMENTS $KV_BYTES SPECSCOPE_CUDA_PREFETCH=0 -c 160
grouped-heads-q4_k q4_k 7504658432 131072 A= --synth Llama-3-8B:q4_k,8,0.75'
for type in $TYPES; do
    CASES="$CASES
profiled-$type $type \$ELEMENTS \$KV_BYTES SPECSCOPE_CUDA_PROFILE=\$LOG/phases-$type.csv -c 160"
done
case_of() { # a line of CASES
    name=$1 type=$2 variable=$5
    shift 5
    limited env "$variable" "$S" bench --steps --backend cuda --synth "$SHAPE:$type,$EXIT,0.75" --json "$LOG/case-$name.json" "$@" \
        >"$LOG/case-$name.txt" && cat "$LOG/case-$name.txt"
    case $name in profiled-*) sh tests/cuda/phases.sh "$LOG/phases-$type.csv" ;; esac
}
report_case() {
    [ -s "$LOG/case-$1.json" ] && awk -v name="$1" -v n="$3" -v bits="$(bits_of "$2")" -v kv="$4" \
        -v before="$(number rows_before "$LOG/case-$1.json")" -v read="$(number read_gb_s "$LOG/floors.json")" \
        -v one="$(number verify_1_us "$LOG/case-$1.json")" -v eight="$(number 8 "$LOG/case-$1.json")" \
        -v tree="$(number tree_8_over_verify_8 "$LOG/case-$1.json")" 'BEGIN {
            bytes = n * bits / 8 + kv * before
            printf "| %s | %.0f us | %.0f us | %.1f %% of read bandwidth | %.3f | %.3f |\n", name, one, bytes / read * 1e-3,
                100 * bytes / read * 1e-3 / one, eight, eight * tree }'
}

# ---- figures and their goals ----

time_of() { # type, bits per element: prints which percentage of a token's time its bytes take at the read bandwidth
    awk -v bits="$2" -v n="$ELEMENTS" -v kv="$KV_BYTES" -v read="$(number read_gb_s "$LOG/floors.json")" \
        -v before="$(number rows_before "$LOG/steps-$1.json" 2>/dev/null)" \
        -v one="$(number verify_1_us "$LOG/steps-$1.json" 2>/dev/null)" \
        'BEGIN { if (one > 0) printf "%.1f", 100 * (n * bits / 8 + kv * before) / read * 1e-3 / one }'
}

figure() { # sentence, ge|le, goal, unit, value (empty: not measured)
    awk -v what="$1" -v way="$2" -v goal="$3" -v unit="$4" -v is="$5" 'BEGIN {
        verdict = is == "" ? "not measured" : (way == "ge" ? is + 0 >= goal : is + 0 <= goal) ? "met" : "**missed**"
        printf "| %s | %s %s%s | %s | %s |\n", what, way == "ge" ? "at least" : "at most", goal, unit, is == "" ? "" : is unit, verdict
    }'
}

# Prints the smallest measured_over_modelled of a policy over all acceptances.
worst_quotient() { # policy
    awk -F' *[|] *' -v policy="$1" '$3 == policy && ($7 + 0 < least || least == "") { least = $7 } END { printf "%s", least }' \
        "$LOG"/speedups-* 2>/dev/null
}
not_lossless() { # prints how many runs were not lossless
    cat "$LOG"/speedups-* "$LOG"/mixture-speedups 2>/dev/null |
        awk -F' *[|] *' '{ lines++; bad += $(NF - 1) != "yes" } END { if (lines) printf "%d", bad }'
}
scope_slowdown() {
    awk -F' *[|] *' '/^[|] `--probe/ { split($3, is, " "); if (!rows++ || is[1] + 0 > most) most = is[1] + 0 } END { if (rows) printf "%.1f", most }' \
        "$LOG/scope.md" 2>/dev/null
}

report_goals() {
    echo "| figure | goal | measured | |"
    echo "| --- | --- | --- | --- |"
    for type in $TYPES; do
        case $type in f16) goal=85 ;; q8_0) goal=80 ;; *) goal=65 ;; esac
        figure "a token, $type: of the read bandwidth" ge $goal " %" "$(time_of "$type" "$(bits_of "$type")")"
    done
    for type in $TYPES; do
        figure "verifying 8 rows, $type: of one row's time" le 1.15 "" "$(number 8 "$LOG/steps-$type.json" 2>/dev/null | awk '{ printf "%.3f", $1 }')"
    done
    for type in $TYPES; do
        figure "verifying a tree of 8 rows, $type: of a chain's time" le 1.1 "" \
            "$(number tree_8_over_verify_8 "$LOG/steps-$type.json" 2>/dev/null | awk '{ printf "%.3f", $1 }')"
    done
    for type in $TYPES; do
        figure "probing all layers x 8 rows, $type: of verifying them" le 6 " %" \
            "$(number probe_all_over_verify_8 "$LOG/steps-$type.json" 2>/dev/null | awk '{ printf "%.1f", 100 * $1 }')"
    done
    for policy in layerskip specbound; do
        figure "\`$policy\`, measured of modelled, the worst" ge 0.92 "" "$(worst_quotient $policy)"
    done
    figure "what the scope takes from the engine" le 1 " %" "$(scope_slowdown)"
    figure "runs whose tokens are not those of autoregressive decoding" le 0 "" "$(not_lossless)"
}

report_steps() { # type, bits an element
    read=$(number read_gb_s "$LOG/floors.json") rate=$(number mma_tflop_s "$LOG/floors.json")
    awk -v type="$1" -v bits="$2" -v n="$ELEMENTS" -v kv="$KV_BYTES" -v before="$(number rows_before "$LOG/steps-$1.json")" \
        -v copy="$read" -v rate="$rate" \
        -v one="$(number verify_1_us "$LOG/steps-$1.json")" -v eight="$(number 8 "$LOG/steps-$1.json")" \
        -v tree="$(number tree_8_over_verify_8 "$LOG/steps-$1.json")" -v all="$(number probe_all_over_verify_8 "$LOG/steps-$1.json")" 'BEGIN {
            bytes = n * bits / 8 + kv * before
            printf "| %s: a token | %.0f us | %.0f us | %.0f us | %.1f %% of read bandwidth |\n", type, one,
                bytes / copy * 1e-3, 2 * n / rate * 1e-6, 100 * bytes / copy * 1e-3 / one
            printf "| %s: verifying 8 rows | %.0f us | %.0f us | %.0f us | %.3f of one row |\n", type, one * eight,
                bytes / copy * 1e-3, 2 * 8 * n / rate * 1e-6, eight
            printf "| %s: verifying a tree of 8 rows | %.0f us | | | %.3f of a chain |\n", type, one * eight * tree, tree
            printf "| %s: probing all layers x 8 rows | %.0f us | | | %.1f %% of verifying them |\n", type,
                one * eight * all, 100 * all
        }'
}

speedups() { # type, acceptance
    limited "$S" bench --backend cuda --synth "$SHAPE:$1,$EXIT,$2" -n "${SPEEDUP_N:-256}" --repeat 1 --ignore-eos --policy layerskip \
        --policy specbound --csv - 2>"$LOG/bench-$1-$2.err" |
        awk -F, -v type="$1" -v a="$2" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
            { printf "| %s, %s | %s | %.1f | %.2f | %.2f | %.3f | %s | %s |\n", type, a, $c["policy"], $c["tok_per_s"],
                  $c["speedup"], $c["modelled_speedup"], $c["measured_over_modelled"], $c["per_token_acceptance"],
                  $c["lossless"] }' >"$LOG/speedups-$1-$2"
    [ -s "$LOG/speedups-$1-$2" ]
}

# ---- a mixture of experts ----

MIXTURE=${MIXTURE-OLMoE-1B-7B} # empty: no mixture is measured
MIXTURE_EXIT=${MIXTURE_EXIT:-4}
# Layers, width, outputs of queries and of keys, units of an expert, experts, used experts, vocabulary.
MIXTURE_SIZES=${MIXTURE_SIZES:-16 2048 2048 2048 1024 64 8 50304}

mixture_steps() {
    limited "$S" bench --steps --backend cuda --synth "$MIXTURE:q8_0,$MIXTURE_EXIT,0.75" --json "$LOG/mixture.json" >"$LOG/mixture.txt" &&
        cat "$LOG/mixture.txt"
}

mixture_speedups() {
    limited "$S" bench --backend cuda --synth "$MIXTURE:q8_0,$MIXTURE_EXIT,0.75" -n "${SPEEDUP_N:-256}" --repeat 1 --ignore-eos \
        --policy layerskip --csv - 2>"$LOG/mixture.err" |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
            { printf "| %s | %.1f | %.2f | %.2f | %s | %s |\n", $c["policy"], $c["tok_per_s"], $c["speedup"], $c["modelled_speedup"],
                  $c["per_token_acceptance"], $c["lossless"] }' >"$LOG/mixture-speedups"
    [ -s "$LOG/mixture-speedups" ]
}

# Estimates the bytes by the expected number of experts that rows with independent choices use.
report_mixture() {
    echo "A mixture, synthetic $MIXTURE in Q8_0:"
    echo
    echo "| step | measured | bytes | |"
    echo "| --- | --- | --- | --- |"
    echo "$MIXTURE_SIZES" | awk -v copy="$(number copy_gb_s "$LOG/floors.json")" -v one="$(number verify_1_us "$LOG/mixture.json")" \
        -v eight="$(number 8 "$LOG/mixture.json")" '{
            for (rows = 1; rows <= 8; rows += 7) {
                read = $6 * (1 - (1 - $7 / $6) ^ rows)
                bytes = 1.0625 * ($1 * ($2 * (2 * $3 + 2 * $4) + 3 * read * $2 * $5) + $8 * $2) + 4 * $1 * $2 * $6
                took = rows == 1 ? one : one * eight
                printf "| %s, %.0f of %d experts | %.0f us | %.0f us | %.1f %% of copy bandwidth |\n", rows == 1 ? "a token" : "verifying 8 rows",
                    read, $6, took, bytes / copy * 1e-3, 100 * bytes / copy * 1e-3 / took
            }
        }'
    [ -s "$LOG/mixture-speedups" ] || return 0
    echo
    echo "| policy | tokens/s | x ar | modelled | acceptance | lossless |"
    echo "| --- | --- | --- | --- | --- | --- |"
    cat "$LOG/mixture-speedups"
}

scope_cost() {
    SCOPE_ARGS="--synth $SHAPE:q8_0,$EXIT,0.75 --backend cuda" PAIRS=2 N=${SCOPE_N:-400} limited tests/bench/scope_cost.sh \
        "$BUILD" >"$LOG/scope.md"
}

floors() {
    limited "$BUILD/gpu_floors" ${FLOORS:-} >"$LOG/floors.json" && cat "$LOG/floors.json"
}

report() {
    echo "# On a GPU"
    echo
    echo "Written by \`make bench-cuda\` on $(date -u +%Y-%m-%d), $(sed -n 's/.*"device": "\([^"]*\)".*/\1/p' "$LOG/floors.json"), specscope"
    echo "$("$S" --version | cut -d' ' -f2), synthetic $SHAPE whose layers after $EXIT change little. The floors of a step are the bytes of its"
    echo "weights, keys and values over the bandwidth of a kernel that only reads ($(number read_gb_s "$LOG/floors.json") GB/s; a copy kernel reads and"
    echo "writes $(number copy_gb_s "$LOG/floors.json") GB/s), and its multiply-adds over the rate of mma.m16n8k16 ($(number mma_tflop_s "$LOG/floors.json") TFLOP/s), both"
    echo "measured in this run."
    echo
    report_goals
    echo
    echo "| step | measured | bytes | operations | |"
    echo "| --- | --- | --- | --- | --- |"
    for type in $TYPES; do
        [ ! -s "$LOG/steps-$type.json" ] || report_steps "$type" "$(bits_of "$type")"
    done
    echo
    echo "| case | one row | its bytes | | 8 rows, of one row | a tree of 8 |"
    echo "| --- | --- | --- | --- | --- | --- |"
    while read -r line; do
        eval "report_case $line"
    done <<END
$CASES
END
    echo
    echo "| weights, acceptance asked for | policy | tokens/s | x ar | modelled | measured/modelled | acceptance | lossless |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    cat "$LOG"/speedups-* 2>/dev/null
    echo
    if [ -s "$LOG/mixture.json" ]; then report_mixture && echo; fi
    if [ -s "$LOG/scope.md" ]; then cat "$LOG/scope.md"; fi
}

forget_figures() { # removes the figures of an earlier run
    rm -f "$LOG"/speedups-* "$LOG"/steps-*.json "$LOG"/case-* "$LOG"/phases-* "$LOG"/mixture* "$LOG/scope.md" "$LOG/floors.json"
}

record() { # replaces the section in docs/measurements.md
    { awk '/^# / { left_out = $0 == "# On a GPU" } !left_out' docs/measurements.md && echo && cat "$RESULTS"; } | cat -s >"$LOG/measurements.md" &&
        cp "$LOG/measurements.md" docs/measurements.md && echo "docs/measurements.md has them, under \"On a GPU\""
}

bench_all() {
    look="other programs that use the GPU"
    wants=$BUILD/gpu_floors
    [ "$WHAT" = test ] || step "floors" 60 floors
    if [ ! -s "$LOG/floors.json" ]; then # the step was left out, and no earlier run measured them
        until=$(($(date +%s) + 60))
        floors >/dev/null 2>&1
    fi
    [ -s "$LOG/floors.json" ] || { echo "there are no floors, so there are no figures"; return 1; }
    look="the log of specscope bench"
    wants=$S
    for type in $TYPES; do
        step "steps, $type" 120 steps_of "$type"
    done
    while read -r line <&3; do
        [ "$WHAT" = test ] || eval "step 'one row, ${line%% *}' 90 case_of $line"
    done 3<<END
$CASES
END
    first=${TYPES%% *}
    for acceptance in 0.75 0.9 0.6; do
        step "policies at acceptance $acceptance, $first" 150 speedups "$first" $acceptance
    done
    for type in ${POLICY_TYPES-q8_0}; do
        step "policies at acceptance 0.75, $type" 150 speedups "$type" 0.75
    done
    if [ "$MIXTURE" ]; then
        step "steps of a mixture, $MIXTURE" 120 mixture_steps
        step "a policy on it at acceptance 0.75" 150 mixture_speedups
    fi
    if command -v tmux >/dev/null 2>&1; then
        step "the scope's cost" 150 scope_cost
    else
        nth=$((nth + 1))
        not_run "the scope's cost" "there is no tmux"
    fi
    report >"$RESULTS"
    cat "$RESULTS"
    [ -z "${RECORD:-}" ] || record
}
