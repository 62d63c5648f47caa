// float32 matrix product C = A B for WebAssembly, the algorithm the generated GEMM is measured against: both operands are
// packed into panels, blocks of MC x KC x NC, a register tile of MR rows times NV vectors. Row-major, leading dimensions
// in elements. Rows m0..m1 only, so that threads can share one product. `scratch` is private to a thread:
// (MC + MR) * KC + (NC + NR) * KC + MR * NR floats (threads share C's stack, so nothing of size may lie there). Built by
// build.sh; nothing of the library is used here.
#include <wasm_simd128.h>

#ifndef MR
#define MR 4
#endif
#ifndef NV
#define NV 2
#endif
#define NR (4 * NV)
#define MC 128
#define KC 256
#define NC 1024
#define EACH _Pragma("unroll")

#ifdef RELAXED
#define MADD(a, b, c) wasm_f32x4_relaxed_madd(a, b, c)
#else
#define MADD(a, b, c) wasm_f32x4_add(wasm_f32x4_mul(a, b), c)
#endif

static int least(int a, int b) { return a < b ? a : b; }

// Panels of MR rows, k outermost inside a panel; rows past the end are zero.
static void packA(int rows, int depth, const float *a, int lda, float *to) {
  for (int i = 0; i < rows; i += MR)
    for (int k = 0; k < depth; k++)
      EACH for (int r = 0; r < MR; r++) *to++ = i + r < rows ? a[(i + r) * lda + k] : 0;
}

// Panels of NR columns; columns past the end are zero.
static void packB(int depth, int columns, const float *b, int ldb, float *to) {
  for (int j = 0; j < columns; j += NR)
    for (int k = 0; k < depth; k++) {
      const float *from = b + k * ldb + j;
      if (j + NR <= columns) {
        EACH for (int v = 0; v < NV; v++) wasm_v128_store(to + 4 * v, wasm_v128_load(from + 4 * v));
      } else {
        for (int r = 0; r < NR; r++) to[r] = j + r < columns ? from[r] : 0;
      }
      to += NR;
    }
}

static void tile(int depth, const float *a, const float *b, float *c, int ldc, int rows, int columns, int add,
                 float *edge) {
  v128_t acc[MR][NV];
  EACH for (int i = 0; i < MR; i++) EACH for (int j = 0; j < NV; j++) acc[i][j] = wasm_f32x4_splat(0);
  for (int k = 0; k < depth; k++) {
    v128_t x[NV];
    EACH for (int j = 0; j < NV; j++) x[j] = wasm_v128_load(b + 4 * j);
    EACH for (int i = 0; i < MR; i++) {
      v128_t y = wasm_v128_load32_splat(a + i);
      EACH for (int j = 0; j < NV; j++) acc[i][j] = MADD(y, x[j], acc[i][j]);
    }
    a += MR;
    b += NR;
  }
  if (rows == MR && columns == NR) {
    EACH for (int i = 0; i < MR; i++) EACH for (int j = 0; j < NV; j++) {
      float *p = c + i * ldc + 4 * j;
      wasm_v128_store(p, add ? wasm_f32x4_add(wasm_v128_load(p), acc[i][j]) : acc[i][j]);
    }
    return;
  }
  EACH for (int i = 0; i < MR; i++) EACH for (int j = 0; j < NV; j++) wasm_v128_store(edge + i * NR + 4 * j, acc[i][j]);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) c[i * ldc + j] = (add ? c[i * ldc + j] : 0) + edge[i * NR + j];
}

__attribute__((export_name("gemm"))) void gemm(int m0, int m1, int n, int depth, const float *a, const float *b, float *c,
                                               float *scratch) {
  float *packedB = scratch + (MC + MR) * KC, *edge = packedB + (NC + NR) * KC;
  for (int j = 0; j < n; j += NC)
    for (int k = 0; k < depth; k += KC) {
      int columns = least(NC, n - j), kc = least(KC, depth - k);
      packB(kc, columns, b + k * n + j, n, packedB);
      for (int i = m0; i < m1; i += MC) {
        int rows = least(MC, m1 - i);
        packA(rows, kc, a + i * depth + k, depth, scratch);
        for (int jj = 0; jj < columns; jj += NR)
          for (int ii = 0; ii < rows; ii += MR)
            tile(kc, scratch + ii * kc, packedB + jj * kc, c + (i + ii) * n + j + jj, n, least(MR, rows - ii),
                 least(NR, columns - jj), k > 0, edge);
      }
    }
}
