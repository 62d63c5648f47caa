/** Arithmetic, comparisons and choices: one table row for each instruction and type. */
#include "floats.h"
#include "program.h"

namespace ptx {
namespace {

// Lanes that are not in the mask are computed too, and keep what they had: nothing here can fault.

template <class D, class F, class A>
void unary(Warp &w, const Instruction &i, uint32_t mask) {
  D *d = reg<D>(w, i.d);
  const A *a = reg<A>(w, i.a);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (unsigned t = 0; t < lanes; t++) d[t] = F::of(a[t]);
  } else {
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = F::of(a[t]);
  }
}

template <class D, class F, class A, class B>
void binary(Warp &w, const Instruction &i, uint32_t mask) {
  D *d = reg<D>(w, i.d);
  const A *a = reg<A>(w, i.a);
  const B *b = reg<B>(w, i.b);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (unsigned t = 0; t < lanes; t++) d[t] = F::of(a[t], b[t]);
  } else {
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = F::of(a[t], b[t]);
  }
}

template <class D, class F, class A, class C>
void ternary(Warp &w, const Instruction &i, uint32_t mask) {
  D *d = reg<D>(w, i.d);
  const A *a = reg<A>(w, i.a);
  const A *b = reg<A>(w, i.b);
  const C *c = reg<C>(w, i.c);
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (unsigned t = 0; t < lanes; t++) d[t] = F::of(a[t], b[t], c[t]);
  } else {
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = F::of(a[t], b[t], c[t]);
  }
}

template <class T, class F>
void compare(Warp &w, const Instruction &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  const T *b = reg<T>(w, i.b);
  uint32_t result = 0;
  for (unsigned t = 0; t < lanes; t++) result |= uint32_t(F::of(a[t], b[t])) << t;
  uint32_t &d = w.predicates[i.d];
  d = (d & ~mask) | (result & mask);
}

template <class T>
void choose(Warp &w, const Instruction &i, uint32_t mask) {
  T *d = reg<T>(w, i.d);
  const T *a = reg<T>(w, i.a);
  const T *b = reg<T>(w, i.b);
  const uint32_t p = w.predicates[i.c];
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (unsigned t = 0; t < lanes; t++) d[t] = p >> t & 1 ? a[t] : b[t];
  } else {
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = p >> t & 1 ? a[t] : b[t];
  }
}

template <class F>
void logical(Warp &w, const Instruction &i, uint32_t mask) {
  uint32_t &d = w.predicates[i.d];
  d = (d & ~mask) | (F::of(w.predicates[i.a], w.predicates[i.b]) & mask);
}

/** mov.pred and not.pred; of a literal the number is that of a predicate which never changes. */
template <bool inverted>
void copy_predicate(Warp &w, const Instruction &i, uint32_t mask) {
  const uint32_t a = inverted ? ~w.predicates[i.a] : w.predicates[i.a];
  uint32_t &d = w.predicates[i.d];
  d = (d & ~mask) | (a & mask);
}

struct Pack {
  static void run(Warp &w, const Instruction &i, uint32_t mask) {
    uint32_t *d = reg<uint32_t>(w, i.d);
    const uint16_t *low = reg<uint16_t>(w, i.vector[0]);
    const uint16_t *high = reg<uint16_t>(w, i.vector[1]);
    for (unsigned t = 0; t < lanes; t++)
      if (mask >> t & 1) d[t] = uint32_t(high[t]) << 16 | low[t];
  }
};

// clang-format off
struct Same { template <class T> static T of(T a) { return a; } };
struct Add { template <class T> static T of(T a, T b) { return a + b; } };
struct Sub { template <class T> static T of(T a, T b) { return a - b; } };
struct Mul { template <class T> static T of(T a, T b) { return a * b; } };
struct Div { template <class T> static T of(T a, T b) { return a / b; } };
struct And { template <class T> static T of(T a, T b) { return a & b; } };
struct Or { template <class T> static T of(T a, T b) { return a | b; } };
struct Xor { template <class T> static T of(T a, T b) { return a ^ b; } };
struct Not { template <class T> static T of(T a) { return ~a; } };
struct NegInteger { template <class T> static T of(T a) { return T(0) - a; } };
struct AbsInteger { template <class T> static T of(T a) { return a < 0 ? T(0 - typename std::make_unsigned<T>::type(a)) : a; } };
struct Neg { template <class T> static T of(T a) { return -a; } };
struct Abs { template <class T> static T of(T a) { return std::fabs(a); } };
struct Sqrt { template <class T> static T of(T a) { return std::sqrt(a); } };
struct Reciprocal { template <class T> static T of(T a) { return T(1) / a; } };
struct Fma { template <class T> static T of(T a, T b, T c) { return std::fma(a, b, c); } };
struct Multiply { template <class T> static T of(T a, T b, T c) { return a * b + c; } };
struct Less { template <class T> static T of(T a, T b) { return a < b ? a : b; } };
struct More { template <class T> static T of(T a, T b) { return a > b ? a : b; } };
struct Maximum { template <class T> static T of(T a, T b) { return maximum(a, b); } };
struct Minimum { template <class T> static T of(T a, T b) { return minimum(a, b); } };
struct Floor { template <class T> static T of(T a) { return std::floor(a); } };
struct Ceil { template <class T> static T of(T a) { return std::ceil(a); } };
struct Trunc { template <class T> static T of(T a) { return std::trunc(a); } };
struct Round { template <class T> static T of(T a) { return std::nearbyint(a); } };
/** Counts from the width on shift everything out. */
struct ShiftLeft { template <class T> static T of(T a, uint32_t by) { return by >= 8 * sizeof(T) ? T(0) : T(a << by); } };
struct ShiftRight { template <class T> static T of(T a, uint32_t by) { return by >= 8 * sizeof(T) ? (a < T(0) ? T(-1) : T(0)) : T(a >> by); } };
struct MulHigh { static uint32_t of(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); } };
struct MulWide { static int64_t of(int32_t a, int32_t b) { return int64_t(a) * b; } };
struct MadWide { static int64_t of(int32_t a, int32_t b, int64_t c) { return int64_t(uint64_t(int64_t(a) * b) + uint64_t(c)); } };
// clang-format on

/** By zero, and the quotient that wraps: PTX leaves open what comes out, so it is something no one expects. */
template <class T>
bool is_undefined(T a, T b) {
  return b == 0 || (std::numeric_limits<T>::is_signed && a == std::numeric_limits<T>::min() && b == T(-1));
}
struct Quotient {
  template <class T>
  static T of(T a, T b) {
    return is_undefined(a, b) ? T(0x5bad5bad) : T(a / b);
  }
};
struct Remainder {
  template <class T>
  static T of(T a, T b) {
    return is_undefined(a, b) ? T(0x5bad5bad) : T(a % b);
  }
};

/** NaN on either side is the result. */
template <class F>
struct WithNaN {
  static float of(float a, float b) {
    return std::isnan(a) || std::isnan(b) ? bits_as<float>(0x7fffffffu) : F::of(a, b);
  }
};

// clang-format off
struct Eq { template <class T> static bool of(T a, T b) { return a == b; } };
struct Ne { template <class T> static bool of(T a, T b) { return a != b; } };
struct Lt { template <class T> static bool of(T a, T b) { return a < b; } };
struct Le { template <class T> static bool of(T a, T b) { return a <= b; } };
struct Gt { template <class T> static bool of(T a, T b) { return a > b; } };
struct Ge { template <class T> static bool of(T a, T b) { return a >= b; } };
struct IsNaN { template <class T> static bool of(T a, T b) { return std::isnan(a) || std::isnan(b); } };
struct OrderedNe { template <class T> static bool of(T a, T b) { return !std::isnan(a) && !std::isnan(b) && a != b; } };
// clang-format on

template <class T>
std::string letter() {
  return sizeof(T) == 2 ? "h" : sizeof(T) == 4 ? "w" : "q";
}

template <class T>
void add_moves(Forms &forms, const std::string &type) {
  const std::string w = letter<T>();
  forms["mov." + type] = {unary<T, Same, T>, w + w};
  forms["selp." + type] = {choose<T>, w + w + w + "p"};
}

template <class T>
void add_bits(Forms &forms, const std::string &type) {
  const std::string w = letter<T>();
  forms["and." + type] = {binary<T, And, T, T>, w + w + w};
  forms["or." + type] = {binary<T, Or, T, T>, w + w + w};
  forms["xor." + type] = {binary<T, Xor, T, T>, w + w + w};
  forms["not." + type] = {unary<T, Not, T>, w + w};
  forms["shl." + type] = {binary<T, ShiftLeft, T, uint32_t>, w + w + "w"};
  forms["setp.eq." + type] = {compare<T, Eq>, "p" + w + w};
  forms["setp.ne." + type] = {compare<T, Ne>, "p" + w + w};
}

template <class T>
void add_integers(Forms &forms, const std::string &type) {
  using U = typename std::make_unsigned<T>::type;
  const std::string w = letter<T>();
  const std::string www = w + w + w;
  forms["add." + type] = {binary<U, Add, U, U>, www};
  forms["sub." + type] = {binary<U, Sub, U, U>, www};
  forms["mul.lo." + type] = {binary<U, Mul, U, U>, www};
  forms["mad.lo." + type] = {ternary<U, Multiply, U, U>, www + w};
  forms["div." + type] = {binary<T, Quotient, T, T>, www};
  forms["rem." + type] = {binary<T, Remainder, T, T>, www};
  forms["min." + type] = {binary<T, Less, T, T>, www};
  forms["max." + type] = {binary<T, More, T, T>, www};
  forms["shr." + type] = {binary<T, ShiftRight, T, uint32_t>, w + w + "w"};
  forms["neg." + type] = {unary<U, NegInteger, U>, w + w};
  forms["setp.eq." + type] = {compare<T, Eq>, "p" + w + w};
  forms["setp.ne." + type] = {compare<T, Ne>, "p" + w + w};
  forms["setp.lt." + type] = {compare<T, Lt>, "p" + w + w};
  forms["setp.le." + type] = {compare<T, Le>, "p" + w + w};
  forms["setp.gt." + type] = {compare<T, Gt>, "p" + w + w};
  forms["setp.ge." + type] = {compare<T, Ge>, "p" + w + w};
}

template <class T>
void add_floats(Forms &forms, const std::string &type) {
  const std::string w = letter<T>();
  const std::string www = w + w + w;
  forms["add.rn." + type] = {binary<T, Add, T, T>, www};
  forms["sub.rn." + type] = {binary<T, Sub, T, T>, www};
  forms["mul.rn." + type] = {binary<T, Mul, T, T>, www};
  forms["div.rn." + type] = {binary<T, Div, T, T>, www};
  forms["fma.rn." + type] = {ternary<T, Fma, T, T>, www + w};
  forms["sqrt.rn." + type] = {unary<T, Sqrt, T>, w + w};
  forms["rcp.rn." + type] = {unary<T, Reciprocal, T>, w + w};
  forms["neg." + type] = {unary<T, Neg, T>, w + w};
  forms["abs." + type] = {unary<T, Abs, T>, w + w};
  forms["min." + type] = {binary<T, Minimum, T, T>, www};
  forms["max." + type] = {binary<T, Maximum, T, T>, www};
  forms["cvt.rmi." + type + "." + type] = {unary<T, Floor, T>, w + w};
  forms["cvt.rpi." + type + "." + type] = {unary<T, Ceil, T>, w + w};
  forms["cvt.rzi." + type + "." + type] = {unary<T, Trunc, T>, w + w};
  forms["cvt.rni." + type + "." + type] = {unary<T, Round, T>, w + w};
  forms["setp.eq." + type] = {compare<T, Eq>, "p" + w + w};
  forms["setp.neu." + type] = {compare<T, Ne>, "p" + w + w};
  forms["setp.ne." + type] = {compare<T, OrderedNe>, "p" + w + w};
  forms["setp.lt." + type] = {compare<T, Lt>, "p" + w + w};
  forms["setp.le." + type] = {compare<T, Le>, "p" + w + w};
  forms["setp.gt." + type] = {compare<T, Gt>, "p" + w + w};
  forms["setp.ge." + type] = {compare<T, Ge>, "p" + w + w};
  forms["setp.nan." + type] = {compare<T, IsNaN>, "p" + w + w};
}

}  // namespace

void add_arithmetic(Forms &forms) {
  add_moves<uint16_t>(forms, "b16");
  add_moves<uint32_t>(forms, "b32");
  add_moves<uint32_t>(forms, "u32");
  add_moves<uint32_t>(forms, "s32");
  add_moves<uint32_t>(forms, "f32");
  add_moves<uint64_t>(forms, "b64");
  add_moves<uint64_t>(forms, "u64");
  add_moves<uint64_t>(forms, "f64");
  forms["mov.b32 {}"] = {Pack::run, "wD"};
  forms["mov.pred"] = {copy_predicate<false>, "pp"};
  forms["not.pred"] = {copy_predicate<true>, "pp"};
  forms["and.pred"] = {logical<And>, "ppp"};
  forms["or.pred"] = {logical<Or>, "ppp"};
  forms["xor.pred"] = {logical<Xor>, "ppp"};
  add_bits<uint16_t>(forms, "b16");
  add_bits<uint32_t>(forms, "b32");
  add_bits<uint64_t>(forms, "b64");
  add_integers<int32_t>(forms, "s32");
  add_integers<uint32_t>(forms, "u32");
  add_integers<int64_t>(forms, "s64");
  add_integers<uint64_t>(forms, "u64");
  forms["abs.s32"] = {unary<int32_t, AbsInteger, int32_t>, "ww"};
  forms["abs.s64"] = {unary<int64_t, AbsInteger, int64_t>, "qq"};
  forms["mul.hi.u32"] = {binary<uint32_t, MulHigh, uint32_t, uint32_t>, "www"};
  forms["mul.wide.s32"] = {binary<int64_t, MulWide, int32_t, int32_t>, "qww"};
  forms["mad.wide.s32"] = {ternary<int64_t, MadWide, int32_t, int64_t>, "qwwq"};
  add_floats<float>(forms, "f32");
  add_floats<double>(forms, "f64");
  forms["max.NaN.f32"] = {binary<float, WithNaN<Maximum>, float, float>, "www"};
  forms["min.NaN.f32"] = {binary<float, WithNaN<Minimum>, float, float>, "www"};
  // Addresses of all spaces are those of the host.
  forms["cvta.to.global.u64"] = {unary<uint64_t, Same, uint64_t>, "qq"};
}

}  // namespace ptx
