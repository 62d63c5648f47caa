/** Numbers of 16 bits, and conversions rounded as PTX says. */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

template <class To, class From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

inline float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16;
  const uint32_t size = h & 0x7fffu;
  if (size >= 0x7c00u) return bits_as<float>(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  if (size >= 0x400u) return bits_as<float>(sign | ((size << 13) + (112u << 23)));
  const float value = float(size) * 0x1p-24f;
  return sign ? -value : value;
}

/** To nearest even. Doubles hold what is converted exactly, or rounded to odd. */
inline uint16_t double_to_half(double x) {
  const uint64_t bits = bits_as<uint64_t>(x);
  const uint16_t sign = uint16_t(bits >> 48 & 0x8000u);
  if (std::isnan(x)) return 0x7fff;
  const double size = std::fabs(x);
  if (size >= 65520.0) return sign | 0x7c00u;
  if (size < 0x1p-14) return sign | uint16_t(std::nearbyint(size * 0x1p24));
  const uint64_t magnitude = bits & 0x7fffffffffffffffull;
  // 10 of the 52 digits stay.
  const uint64_t rounded = magnitude + ((1ull << 41) - 1) + (magnitude >> 42 & 1);
  return sign | uint16_t((rounded >> 42) - (uint64_t(1023 - 15) << 10));
}

inline uint16_t float_to_bfloat(float x) {
  if (std::isnan(x)) return 0x7fff;
  const uint32_t bits = bits_as<uint32_t>(x);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/** Integers to float16: what is too large is infinite long before double has to round. */
template <class T>
inline uint16_t integer_to_half(T x) {
  constexpr double most = 0x1p40;
  const double value = x > T(0) && double(x) > most ? most : x < T(0) && double(x) < -most ? -most : double(x);
  return double_to_half(value);
}

/** Towards zero. */
template <class T>
inline float cut_to_float(T x) {
  const float nearest = float(x);
  const long double exact = x, rounded = nearest;
  if (std::isnan(nearest) || rounded == exact) return nearest;
  const bool away = exact > 0 ? rounded > exact : rounded < exact;
  return away ? std::nextafter(nearest, 0.0f) : nearest;
}

/** Cut off, saturated. NaN gives 0 between float32 and 32 bits, and otherwise the number with the top bit alone. */
template <class To, class From>
inline To to_integer(From x) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(x)) {
    if (std::is_same<From, float>::value && sizeof(To) == 4) return 0;
    return To(uint64_t(1) << (8 * sizeof(To) - 1));
  }
  const From whole = std::trunc(x);
  // The first number above the range is a power of two, which every float type has.
  const From above = std::ldexp(From(1), int(8 * sizeof(To)) - (Limits::is_signed ? 1 : 0));
  if (whole >= above) return Limits::max();
  if (whole < (Limits::is_signed ? -above : From(0))) return Limits::min();
  return To(whole);
}

/** A NaN operand gives the other one; -0 is less than 0. */
template <class T>
inline T maximum(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
inline T minimum(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

}  // namespace ptx
