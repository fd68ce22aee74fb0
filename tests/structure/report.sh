# Sourced by the tests of the structure, in the tree's root: the files they read, and how they say what they find (TAP).
status=0
result() { # sentence, what is wrong (nothing: all is well)
    if [ -z "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "$2"
        status=1
    fi
}
sources() { # folders: the C, C++ and CUDA files in them
    { git ls-files -co --exclude-standard -- "$@" 2>/dev/null || find "$@" -name 'build*' -prune -o -type f -print; } |
        grep -E '\.(c|h|cc|cu|cuh)$' | while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done
}
