/** Loads, stores and atomics, each checked: range, alignment, and in shared memory who else touched it since the last barrier. */
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "program.h"

namespace ptx {
namespace {

enum class Access { read, write, atomic };

std::string hex(uint64_t x) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, x);
  return text;
}

/** The range that holds the bytes, or a fault. */
const ptx_range *range_of(Warp &w, uint64_t address, size_t bytes, unsigned lane) {
  const ptx_memory &m = *w.group->memory;
  const ptx_range *end = m.ranges + m.count;
  const ptx_range *after =
      std::upper_bound(m.ranges, end, address, [](uint64_t at, const ptx_range &r) { return at < r.start; });
  if (after == m.ranges || address + bytes > after[-1].start + after[-1].bytes || address + bytes < address)
    throw Fault{"address " + hex(address) + " with " + std::to_string(bytes) + " bytes is out of range", lane};
  return after - 1;
}

// What is wrong is said apart from the checks, which run for every lane of every access.

[[noreturn]] [[gnu::noinline]] void refuse_alignment(uint64_t address, size_t bytes, unsigned lane) {
  throw Fault{"address " + hex(address) + " is not a multiple of " + std::to_string(bytes), lane};
}

inline void check_alignment(uint64_t address, size_t bytes, unsigned lane) {
  if ((address & (bytes - 1)) != 0) refuse_alignment(address, bytes, lane);
}

struct Device {
  static constexpr const char *letter = "G";

  template <Access>
  static uint8_t *at(Warp &w, const Instruction &i, size_t bytes, unsigned lane) {
    return at(w, i, reg<uint64_t>(w, i.a)[lane] + uint64_t(i.offset), bytes, lane);
  }

  static uint8_t *at(Warp &w, const Instruction &i, uint64_t address, size_t bytes, unsigned lane) {
    ptx_range &met = w.group->met[i.target];
    if (address < met.start || address + bytes > met.start + met.bytes) met = *range_of(w, address, bytes, lane);
    check_alignment(address, bytes, lane);
    return reinterpret_cast<uint8_t *>(address);
  }
};

constexpr uint16_t many = 0xffff;

[[noreturn]] [[gnu::noinline]] void refuse_size(const Group &g, uint64_t address, size_t bytes, unsigned lane) {
  throw Fault{"shared address " + hex(address) + " with " + std::to_string(bytes) + " bytes is out of the group's " +
                  std::to_string(g.shared.size()),
              lane};
}

/** Why a unit of shared memory may not be read or written now. */
[[noreturn]] [[gnu::noinline]] void refuse_touch(const Group &g, uint64_t unit, uint16_t thread, unsigned lane, Access access) {
  const Touched &met = g.touched[unit];
  const std::string place = "shared address " + hex(unit << g.entry->unit_shift);
  if (access == Access::read && met.pending) throw Fault{place + " is read while a copy is under way there", lane};
  if (access == Access::read && met.written == 0) throw Fault{place + " is read before it is written", lane};
  bool wrote = met.written == g.epoch && met.writer != thread;
  uint16_t other = wrote ? met.writer : met.reader;
  if (g.in_parts) {
    const Touch *touch = g.order.raced(thread / lanes, thread, unit, access == Access::write);
    wrote = touch == &g.order.writes[unit];
    other = touch->thread;
  }
  throw Fault{"race at " + place + ": " + (other == many ? std::string("several threads") : "thread " + std::to_string(other)) +
                  (wrote ? " wrote it" : " read it") + ", no barrier between",
              lane};
}

struct Shared {
  static constexpr const char *letter = "S";

  template <Access access>
  static uint8_t *at(Warp &w, const Instruction &i, size_t bytes, unsigned lane) {
    return at<access>(w, uint32_t(reg<uint32_t>(w, i.a)[lane] + uint32_t(i.offset)), bytes, lane);
  }

  template <Access access>
  static uint8_t *at(Warp &w, uint64_t address, size_t bytes, unsigned lane) {
    Group &g = *w.group;
    if (address + bytes > g.shared.size()) refuse_size(g, address, bytes, lane);
    check_alignment(address, bytes, lane);
    if (!g.touched.empty()) {
      const unsigned shift = g.entry->unit_shift;
      const uint64_t end = (address + bytes) >> shift;
      for (uint64_t unit = address >> shift; unit < end; unit++)
        touch<access>(g, unit, uint16_t(w.first_thread + lane), lane);
    }
    return g.shared.data() + address;
  }

  /** The same where some barriers are for parts of the group. */
  template <Access access>
  static void touch_in_parts(Group &g, uint64_t unit, uint16_t thread, unsigned lane, Touched &met) {
    constexpr bool writes = access == Access::write;
    if (!writes && (met.pending || met.written == 0)) refuse_touch(g, unit, thread, lane, access);
    if (g.order.raced(thread / lanes, thread, unit, writes) != nullptr) refuse_touch(g, unit, thread, lane, access);
    g.order.note(thread / lanes, thread, unit, writes);
    if (!writes) return;
    met.pending = false;
    met.written = 1;
  }

  template <Access access>
  static void touch(Group &g, uint64_t unit, uint16_t thread, unsigned lane) {
    // Atomics order themselves.
    if (access == Access::atomic) return;
    Touched &met = g.touched[unit];
    if (g.in_parts) {
      touch_in_parts<access>(g, unit, thread, lane, met);
      return;
    }
    const bool raced = met.written == g.epoch && met.writer != thread;
    if (access == Access::read) {
      if (met.pending || met.written == 0 || raced) refuse_touch(g, unit, thread, lane, access);
      met.reader = met.read == g.epoch && met.reader != thread ? many : thread;
      met.read = g.epoch;
      return;
    }
    met.pending = false;
    if (raced || (met.read == g.epoch && met.reader != thread)) refuse_touch(g, unit, thread, lane, access);
    met.written = g.epoch;
    met.writer = thread;
  }
};

/** N elements of type M in memory, each in a register of type T. */
template <class Space, class T, class M, unsigned N>
void load(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    const uint8_t *from = Space::template at<Access::read>(w, i, sizeof(M) * N, t);
    for (unsigned n = 0; n < N; n++) {
      M value;
      std::memcpy(&value, from + n * sizeof(M), sizeof(M));
      reg<T>(w, i.vector[n])[t] = T(value);
    }
  }
}

template <class Space, class T, class M, unsigned N>
void store(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    uint8_t *to = Space::template at<Access::write>(w, i, sizeof(M) * N, t);
    for (unsigned n = 0; n < N; n++) {
      const M value = M(reg<T>(w, i.vector[n])[t]);
      std::memcpy(to + n * sizeof(M), &value, sizeof(M));
    }
  }
}

template <class T, class M>
void load_parameter(Warp &w, const Instruction &i, uint32_t mask) {
  M value;
  std::memcpy(&value, w.group->parameters + i.offset, sizeof(M));
  for (unsigned t = 0; t < lanes; t++)
    if (mask >> t & 1) reg<T>(w, i.d)[t] = T(value);
}

// clang-format off
struct Add { template <class T> static T of(T a, T b) { return a + b; } };
struct Max { template <class T> static T of(T a, T b) { return a > b ? a : b; } };
struct Min { template <class T> static T of(T a, T b) { return a < b ? a : b; } };
struct Or { template <class T> static T of(T a, T b) { return a | b; } };
// clang-format on

/** Lanes take turns in their order. */
template <class Space, class T, class F>
void reduce(Warp &w, const Instruction &i, uint32_t mask) {
  const T *a = reg<T>(w, i.b);
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    uint8_t *at = Space::template at<Access::atomic>(w, i, sizeof(T), t);
    T value;
    std::memcpy(&value, at, sizeof(T));
    value = F::of(value, a[t]);
    std::memcpy(at, &value, sizeof(T));
  }
}

template <class Space, class T>
void exchange_if(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    uint8_t *at = Space::template at<Access::atomic>(w, i, sizeof(T), t);
    T value;
    std::memcpy(&value, at, sizeof(T));
    const T expected = reg<T>(w, i.b)[t];
    const T next = reg<T>(w, i.c)[t];
    if (value == expected) std::memcpy(at, &next, sizeof(T));
    reg<T>(w, i.d)[t] = value;
  }
}

template <class T, class M>
void add_type(Forms &forms, const std::string &type) {
  const std::string w = sizeof(T) == 2 ? "h" : sizeof(T) == 4 ? "w" : "q";
  forms["ld.param." + type] = {load_parameter<T, M>, w + "P"};
  forms["ld.global." + type] = {load<Device, T, M, 1>, "1" + w + "G"};
  forms["ld.global.v2." + type] = {load<Device, T, M, 2>, "2" + w + "G"};
  forms["ld.global.v4." + type] = {load<Device, T, M, 4>, "4" + w + "G"};
  forms["ld.shared." + type] = {load<Shared, T, M, 1>, "1" + w + "S"};
  forms["ld.shared.v2." + type] = {load<Shared, T, M, 2>, "2" + w + "S"};
  forms["ld.shared.v4." + type] = {load<Shared, T, M, 4>, "4" + w + "S"};
  forms["st.global." + type] = {store<Device, T, M, 1>, "G1" + w};
  forms["st.global.v2." + type] = {store<Device, T, M, 2>, "G2" + w};
  forms["st.global.v4." + type] = {store<Device, T, M, 4>, "G4" + w};
  forms["st.shared." + type] = {store<Shared, T, M, 1>, "S1" + w};
  forms["st.shared.v2." + type] = {store<Shared, T, M, 2>, "S2" + w};
  forms["st.shared.v4." + type] = {store<Shared, T, M, 4>, "S4" + w};
  if (sizeof(T) * 4 > 16)
    for (const char *name : {"ld.global.v4.", "ld.shared.v4.", "st.global.v4.", "st.shared.v4."}) forms.erase(name + type);
}

template <class T>
void add_reductions(Forms &forms, const std::string &type) {
  const std::string w = sizeof(T) == 4 ? "w" : "q";
  // Sums wrap: what is added is unsigned.
  using U = typename std::make_unsigned<T>::type;
  forms["red.global.add." + type] = {reduce<Device, U, Add>, "G" + w};
  forms["red.shared.add." + type] = {reduce<Shared, U, Add>, "S" + w};
  forms["red.global.max." + type] = {reduce<Device, T, Max>, "G" + w};
  forms["red.shared.max." + type] = {reduce<Shared, T, Max>, "S" + w};
  forms["red.global.min." + type] = {reduce<Device, T, Min>, "G" + w};
  forms["red.shared.min." + type] = {reduce<Shared, T, Min>, "S" + w};
}

template <class T>
void add_bits(Forms &forms, const std::string &type) {
  const std::string w = sizeof(T) == 4 ? "w" : "q";
  forms["red.global.or." + type] = {reduce<Device, T, Or>, "G" + w};
  forms["red.shared.or." + type] = {reduce<Shared, T, Or>, "S" + w};
  forms["atom.global.cas." + type] = {exchange_if<Device, T>, w + "G" + w + w};
  forms["atom.shared.cas." + type] = {exchange_if<Shared, T>, w + "S" + w + w};
}

}  // namespace

const uint8_t *read_shared(Warp &w, uint64_t address, size_t bytes, unsigned lane) {
  return Shared::at<Access::read>(w, address, bytes, lane);
}

uint8_t *write_shared(Warp &w, uint64_t address, size_t bytes, unsigned lane) {
  return Shared::at<Access::write>(w, address, bytes, lane);
}

const uint8_t *read_device(Warp &w, const Instruction &i, uint64_t address, size_t bytes, unsigned lane) {
  return Device::at(w, i, address, bytes, lane);
}

void forget_shared(Warp &w, uint64_t address, size_t bytes) {
  Group &g = *w.group;
  if (g.touched.empty()) return;
  const unsigned shift = g.entry->unit_shift;
  for (uint64_t unit = address >> shift; unit < (address + bytes) >> shift; unit++) g.touched[unit].pending = true;
}

void add_accesses(Forms &forms) {
  add_type<int32_t, int8_t>(forms, "s8");
  add_type<uint32_t, uint8_t>(forms, "u8");
  add_type<int32_t, int16_t>(forms, "s16");
  add_type<uint32_t, uint16_t>(forms, "u16");
  add_type<uint16_t, uint16_t>(forms, "b16");
  add_type<uint32_t, uint32_t>(forms, "b32");
  add_type<uint32_t, uint32_t>(forms, "f32");
  add_type<uint64_t, uint64_t>(forms, "b64");
  add_type<uint64_t, uint64_t>(forms, "f64");
  add_reductions<int32_t>(forms, "s32");
  add_reductions<uint32_t>(forms, "u32");
  add_reductions<int64_t>(forms, "s64");
  add_reductions<uint64_t>(forms, "u64");
  // Sums of two's complement are those of unsigned numbers, and only these have the instruction.
  forms.erase("red.global.add.s64");
  forms.erase("red.shared.add.s64");
  add_bits<uint32_t>(forms, "b32");
  add_bits<uint64_t>(forms, "b64");
}

}  // namespace ptx
