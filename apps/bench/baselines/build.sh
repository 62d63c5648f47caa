#!/bin/sh
# Builds the C baselines of the benchmark: build.sh OUTDIR. Needs clang with the wasm32 target and lld (any version from 14).
set -e
out=${1:?usage: build.sh OUTDIR}
here=$(cd "$(dirname "$0")" && pwd)
for name in clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang; do
  if command -v "$name" >/dev/null; then cc=$name; break; fi
done
[ -n "$cc" ] || { echo 'build.sh: no clang found; on Debian: apt-get install clang-19 lld-19' >&2; exit 1; }
mkdir -p "$out"
flags='--target=wasm32 -O3 -ffast-math -msimd128 -matomics -mbulk-memory -nostdlib -fuse-ld=lld'
link='-Wl,--no-entry,--import-memory,--shared-memory,--max-memory=4294967296,--global-base=1024'
for tile in 4x2 4x3 6x2; do
  $cc $flags -DMR=${tile%x*} -DNV=${tile#*x} $link "$here/gemm.c" -o "$out/gemm-$tile.wasm"
  $cc $flags -DRELAXED -mrelaxed-simd -DMR=${tile%x*} -DNV=${tile#*x} $link "$here/gemm.c" -o "$out/gemm-$tile-relaxed.wasm" 2>/dev/null ||
    echo "build.sh: $cc knows no relaxed SIMD, leaving gemm-$tile-relaxed out" >&2
done
