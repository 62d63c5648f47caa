/** Numbers from JavaScript as sizes: what does not fit is refused, and nothing wraps. */
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

#include "native-error.h"

/** Up to here doubles are whole numbers without gaps. */
constexpr double kMostExact = 9007199254740992.0;

/** Refuses an argument of the addon: `call` is what was called, `why` what is wrong with it. */
[[noreturn]] inline void Refuse(const char* call, std::string why) {
  throw NativeError{kInvalidValue, call, -1, std::move(why)};
}

/** A whole number from 0 to `most`. */
inline size_t Whole(double value, const char* call, const char* what, double most = kMostExact) {
  // Written so that NaN is refused.
  if (!(value >= 0 && value <= most) || value != std::floor(value))
    Refuse(call, std::string(what) + " is no whole number from 0 to " + std::to_string(static_cast<uint64_t>(most)));
  return static_cast<size_t>(value);
}

inline size_t Times(size_t a, size_t b, const char* call) {
  if (b != 0 && a > SIZE_MAX / b) Refuse(call, "sizes are too large");
  return a * b;
}

inline size_t Plus(size_t a, size_t b, const char* call) {
  if (a > SIZE_MAX - b) Refuse(call, "sizes are too large");
  return a + b;
}
