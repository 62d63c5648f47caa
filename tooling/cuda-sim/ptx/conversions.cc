/** cvt between types: one table row for each pair. */
#include "floats.h"
#include "program.h"

namespace ptx {
namespace {

template <class D, class A, D (*convert)(A)>
void each(Warp &w, const Instruction &i, uint32_t mask) {
  D *d = reg<D>(w, i.d);
  const A *a = reg<A>(w, i.a);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (unsigned t = 0; t < lanes; t++) d[t] = convert(a[t]);
  } else {
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = convert(a[t]);
  }
}

template <class To, class From>
To plain(From x) {
  return To(x);
}

/** The low bits of a register, extended by the type of the source. */
template <class To, class Low, class From>
To low_bits(From x) {
  return To(Low(x));
}

uint16_t float_to_half(float x) { return double_to_half(x); }
double half_to_double(uint16_t x) { return half_to_float(x); }

template <class T>
void add_integer(Forms &forms, const std::string &type) {
  const std::string w = sizeof(T) == 4 ? "w" : "q";
  forms["cvt.rn.f32." + type] = {each<float, T, plain<float, T>>, "w" + w};
  forms["cvt.rn.f64." + type] = {each<double, T, plain<double, T>>, "q" + w};
  forms["cvt.rn.f16." + type] = {each<uint16_t, T, integer_to_half<T>>, "h" + w};
  forms["cvt.rz.f32." + type] = {each<float, T, cut_to_float<T>>, "w" + w};
  forms["cvt.rzi." + type + ".f32"] = {each<T, float, to_integer<T, float>>, w + "w"};
  forms["cvt.rzi." + type + ".f64"] = {each<T, double, to_integer<T, double>>, w + "q"};
}

}  // namespace

void add_conversions(Forms &forms) {
  add_integer<int32_t>(forms, "s32");
  add_integer<uint32_t>(forms, "u32");
  add_integer<int64_t>(forms, "s64");
  add_integer<uint64_t>(forms, "u64");
  forms["cvt.s32.s8"] = {each<int32_t, uint32_t, low_bits<int32_t, int8_t, uint32_t>>, "ww"};
  forms["cvt.s32.s16 w"] = {each<int32_t, uint32_t, low_bits<int32_t, int16_t, uint32_t>>, "ww"};
  forms["cvt.s32.s16 h"] = {each<int32_t, uint16_t, low_bits<int32_t, int16_t, uint16_t>>, "wh"};
  forms["cvt.u32.u16"] = {each<uint32_t, uint16_t, plain<uint32_t, uint16_t>>, "wh"};
  forms["cvt.u16.u32"] = {each<uint16_t, uint32_t, plain<uint16_t, uint32_t>>, "hw"};
  forms["cvt.s64.s32"] = {each<int64_t, int32_t, plain<int64_t, int32_t>>, "qw"};
  forms["cvt.u64.u32"] = {each<uint64_t, uint32_t, plain<uint64_t, uint32_t>>, "qw"};
  forms["cvt.u32.u64"] = {each<uint32_t, uint64_t, plain<uint32_t, uint64_t>>, "wq"};
  forms["cvt.f64.f32"] = {each<double, float, plain<double, float>>, "qw"};
  forms["cvt.rn.f32.f64"] = {each<float, double, plain<float, double>>, "wq"};
  forms["cvt.rz.f32.f64"] = {each<float, double, cut_to_float<double>>, "wq"};
  forms["cvt.f32.f16"] = {each<float, uint16_t, half_to_float>, "wh"};
  forms["cvt.f64.f16"] = {each<double, uint16_t, half_to_double>, "qh"};
  forms["cvt.rn.f16.f32"] = {each<uint16_t, float, float_to_half>, "hw"};
  forms["cvt.rn.f16.f64"] = {each<uint16_t, double, double_to_half>, "hq"};
  forms["cvt.rn.bf16.f32"] = {each<uint16_t, float, float_to_bfloat>, "hw"};
}

}  // namespace ptx
