/** What lanes of a warp learn of each other: shfl and redux. All lanes that the mask names must be there. */
#include "program.h"

namespace ptx {
namespace {

void check_members(Warp &w, uint32_t members, uint32_t mask) {
  (void)w;
  if ((members & ~mask) != 0 || (mask & ~members) != 0) {
    const uint32_t wrong = members ^ mask;
    throw Fault{"the mask of lanes is not those that are here", unsigned(__builtin_ctz(wrong))};
  }
}

enum class Way { butterfly, down, indexed };

/** d, a; b how far, c the bound of a segment (31: the whole warp); the lanes it is for come as the register `vector[0]`. */
template <Way way>
void shuffle(Warp &w, const Instruction &i, uint32_t mask) {
  const uint32_t *a = reg<uint32_t>(w, i.a);
  const uint32_t *by = reg<uint32_t>(w, i.b);
  const uint32_t *bound = reg<uint32_t>(w, i.c);
  const uint32_t *members = reg<uint32_t>(w, i.vector[0]);
  uint32_t result[lanes] = {};
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    check_members(w, members[t], mask);
    if (bound[t] != 31) throw Fault{"segments of a warp are not known here", t};
    const unsigned from = way == Way::butterfly ? t ^ (by[t] & 31) : way == Way::down ? t + (by[t] & 31) : by[t] & 31;
    // A lane that is not there gives something no one expects; one outside of the warp gives back the own value.
    result[t] = from >= lanes ? a[t] : mask >> from & 1 ? a[from] : 0x5bad5badu;
  }
  uint32_t *d = reg<uint32_t>(w, i.d);
  for (unsigned t = 0; t < lanes; t++)
    if (mask >> t & 1) d[t] = result[t];
}

// clang-format off
struct Add { template <class T> static T of(T a, T b) { return T(uint32_t(a) + uint32_t(b)); } };
struct Max { template <class T> static T of(T a, T b) { return a > b ? a : b; } };
struct Min { template <class T> static T of(T a, T b) { return a < b ? a : b; } };
// clang-format on

template <class T, class F>
void reduce(Warp &w, const Instruction &i, uint32_t mask) {
  const T *a = reg<T>(w, i.a);
  const uint32_t *members = reg<uint32_t>(w, i.b);
  bool first = true;
  T sum = 0;
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    check_members(w, members[t], mask);
    sum = first ? a[t] : F::of(sum, a[t]);
    first = false;
  }
  T *d = reg<T>(w, i.d);
  for (unsigned t = 0; t < lanes; t++)
    if (mask >> t & 1) d[t] = sum;
}

template <class T>
void add_type(Forms &forms, const std::string &type) {
  forms["redux.sync.add." + type] = {reduce<T, Add>, "www"};
  forms["redux.sync.max." + type] = {reduce<T, Max>, "www"};
  forms["redux.sync.min." + type] = {reduce<T, Min>, "www"};
}

}  // namespace

void add_exchanges(Forms &forms) {
  forms["shfl.sync.bfly.b32"] = {shuffle<Way::butterfly>, "wwwwM"};
  forms["shfl.sync.down.b32"] = {shuffle<Way::down>, "wwwwM"};
  forms["shfl.sync.idx.b32"] = {shuffle<Way::indexed>, "wwwwM"};
  add_type<int32_t>(forms, "s32");
  add_type<uint32_t>(forms, "u32");
}

}  // namespace ptx
