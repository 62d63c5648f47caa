/* Inputs of the native programs, in C and in C++. */
#include <stdint.h>

/* The same sequence as element() in apps/bench/src/work/inputs.ts. */
static float element(uint32_t seed, uint32_t i, double low, double high) {
  uint32_t u = i + seed * 0x9e3779b1u;
  u ^= u >> 16;
  u *= 0x7feb352du;
  u ^= u >> 15;
  u *= 0x846ca68bu;
  u ^= u >> 16;
  return (float)(low + (high - low) * ((u >> 8) * 0x1p-24));
}
