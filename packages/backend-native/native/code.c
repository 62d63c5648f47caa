/* Features of the processor, and how it rounds. */
#include "native.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#if defined(__x86_64__)

static uint64_t saved_states(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((uint64_t)high << 32) | low;
}

int32_t find_features(void) {
  uint32_t a, b, c, d;
  if (wanted("processor")) return 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const uint32_t first = bit_FMA | bit_F16C | bit_AVX | bit_OSXSAVE | bit_POPCNT | bit_MOVBE;
  if ((c & first) != first) return 0;
  /* The system must save the wide registers of threads: 6 for 32 bytes, E0 for 64 bytes and masks. */
  uint64_t states = saved_states();
  if ((states & 6) != 6) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  const uint32_t second = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((b & second) != second) return 0;
  const uint32_t third = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  return (b & third) == third && (states & 0xe0) == 0xe0 ? 3 : 1;
}

/* Exceptions masked, rounding to nearest; the lowest bits are sticky flags. Writing the register takes longer than reading it. */
enum { plain_control = 0x1f80, happened = 0x3f };

uint32_t plain_arithmetic(void) {
  uint32_t before = _mm_getcsr();
  if ((before & ~(uint32_t)happened) != plain_control) _mm_setcsr(plain_control);
  return before;
}

void restore_arithmetic(uint32_t before) {
  if ((before & ~(uint32_t)happened) != plain_control) _mm_setcsr(before);
}

#elif defined(__aarch64__)

/* Vectors of 16 bytes are part of what Linux and macOS ask for. */
int32_t find_features(void) { return wanted("processor") ? 0 : 4; }

static uint64_t float_control(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}

static void set_float_control(uint64_t value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }

uint32_t plain_arithmetic(void) {
  uint32_t before = (uint32_t)float_control();
  set_float_control(0);
  return before;
}

void restore_arithmetic(uint32_t before) { set_float_control(before); }

#else

int32_t find_features(void) { return 0; }
uint32_t plain_arithmetic(void) { return 0; }
void restore_arithmetic(uint32_t before) { (void)before; }

#endif
