/**
 * Products of tiles of matrices by a warp, their fragments out of shared memory, and copies to shared memory beside other work.
 *
 * Products are exact and sums go step by step, each rounded to nearest: cards promise no order and no rounding of their own.
 */
#include "floats.h"
#include "program.h"

namespace ptx {
namespace {

void check_whole(uint32_t mask) {
  if (mask != all_lanes) throw Fault{"all lanes of a warp multiply together", unsigned(__builtin_ctz(~mask))};
}

float bfloat_to_float(uint16_t x) { return bits_as<float>(uint32_t(x) << 16); }
float tf32_to_float(uint32_t x) { return bits_as<float>(x & ~0x1fffu); }

enum class Kind16 { half, bfloat };

/** Where thread `t` holds what: registers have two elements along the sum, or one of TF32. */
template <unsigned steps, class Read>
void multiply(Warp &w, const Instruction &i, Read read, unsigned per_register) {
  float a[16][steps], b[steps][8], d[lanes][4];
  const unsigned groups = per_register == 2 ? steps / 8 : steps / 4;
  for (unsigned t = 0; t < lanes; t++) {
    const unsigned g = t >> 2, q = t & 3;
    for (unsigned s = 0; s < groups; s++)
      for (unsigned e = 0; e < per_register; e++) {
        const unsigned k = (per_register == 2 ? 2 * q + e + 8 * s : q + 4 * s);
        for (unsigned half = 0; half < 2; half++)
          a[g + 8 * half][k] = read(reg<uint32_t>(w, i.tiles[1][2 * s + half])[t], e);
        b[k][g] = read(reg<uint32_t>(w, i.tiles[2][s])[t], e);
      }
  }
  for (unsigned t = 0; t < lanes; t++) {
    const unsigned g = t >> 2, q = t & 3;
    for (unsigned n = 0; n < 4; n++) {
      const unsigned row = g + 8 * (n >> 1), column = 2 * q + (n & 1);
      float sum = reg<float>(w, i.tiles[3][n])[t];
      for (unsigned k = 0; k < steps; k++) sum = float(double(sum) + double(a[row][k]) * double(b[k][column]));
      d[t][n] = sum;
    }
  }
  for (unsigned t = 0; t < lanes; t++)
    for (unsigned n = 0; n < 4; n++) reg<float>(w, i.tiles[0][n])[t] = d[t][n];
}

template <unsigned steps, Kind16 kind>
void multiply16(Warp &w, const Instruction &i, uint32_t mask) {
  check_whole(mask);
  multiply<steps>(
      w, i,
      [](uint32_t pair, unsigned e) {
        const uint16_t bits = uint16_t(pair >> 16 * e);
        return kind == Kind16::half ? half_to_float(bits) : bfloat_to_float(bits);
      },
      2);
}

void multiply32(Warp &w, const Instruction &i, uint32_t mask) {
  check_whole(mask);
  multiply<8>(w, i, [](uint32_t bits, unsigned) { return tf32_to_float(bits); }, 1);
}

/** Lane 8 m + r has the address of line r of matrix m; lines have 16 bytes. */
template <unsigned count, bool turned>
void load_matrices(Warp &w, const Instruction &i, uint32_t mask) {
  check_whole(mask);
  for (unsigned m = 0; m < count; m++) {
    uint16_t lines[8][8];
    for (unsigned r = 0; r < 8; r++) {
      const unsigned lane = 8 * m + r;
      const uint64_t address = uint32_t(reg<uint32_t>(w, i.a)[lane] + uint32_t(i.offset));
      std::memcpy(lines[r], read_shared(w, address, 16, lane), 16);
    }
    uint32_t *d = reg<uint32_t>(w, i.tiles[0][m]);
    for (unsigned t = 0; t < lanes; t++) {
      const unsigned g = t >> 2, q = 2 * (t & 3);
      d[t] = turned ? lines[q][g] | uint32_t(lines[q + 1][g]) << 16 : lines[g][q] | uint32_t(lines[g][q + 1]) << 16;
    }
  }
}

/** Reads at once and writes when it is waited for. With `some`, c says how many of the bytes are read; the others are zeros. */
template <bool some>
void copy(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    const uint32_t size = i.bytes;
    Copy made{t, uint32_t(reg<uint32_t>(w, i.a)[t] + uint32_t(i.offset)), size, {}};
    const uint32_t bytes = some ? reg<uint32_t>(w, i.c)[t] : size;
    if (bytes != 0 && bytes != size) throw Fault{"a copy reads all of its bytes or none here", t};
    const uint64_t from = reg<uint64_t>(w, i.b)[t] + reg<uint64_t>(w, i.vector[0])[t];
    if (bytes != 0) std::memcpy(made.bytes, read_device(w, i, from, size, t), size);
    write_shared(w, made.to, size, t);
    forget_shared(w, made.to, size);
    w.copies.back().push_back(made);
  }
}

void commit(Warp &w, const Instruction &, uint32_t mask) {
  if (mask != w.alive) throw Fault{"a batch of copies is one of all lanes here", unsigned(__builtin_ctz(w.alive & ~mask))};
  w.copies.push_back({});
}

void wait(Warp &w, const Instruction &i, uint32_t mask) {
  if (mask != w.alive) throw Fault{"all lanes wait for copies here", unsigned(__builtin_ctz(w.alive & ~mask))};
  while (w.copies.size() > size_t(i.offset) + 1) {
    for (const Copy &c : w.copies.front()) std::memcpy(write_shared(w, c.to, c.size, c.lane), c.bytes, c.size);
    w.copies.erase(w.copies.begin());
  }
}

void round_tf32(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    const uint32_t x = reg<uint32_t>(w, i.a)[t];
    // To nearest, ties away from zero.
    reg<uint32_t>(w, i.d)[t] = (x & 0x7f800000u) == 0x7f800000u ? x : (x + 0x1000u) & ~0x1fffu;
  }
}

void unpack(Warp &w, const Instruction &i, uint32_t mask) {
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    const uint32_t pair = reg<uint32_t>(w, i.d)[t];
    for (unsigned n = 0; n < 2; n++) reg<uint16_t>(w, i.vector[n])[t] = uint16_t(pair >> 16 * n);
  }
}

}  // namespace

void add_matrices(Forms &forms) {
  forms["mov.b32 {}="] = {unpack, "2hw"};
  const std::string mma = "mma.sync.aligned.";
  forms[mma + "m16n8k8.row.col.f32.f16.f16.f32"] = {multiply16<8, Kind16::half>, "T4T2T1T4"};
  forms[mma + "m16n8k16.row.col.f32.f16.f16.f32"] = {multiply16<16, Kind16::half>, "T4T4T2T4"};
  forms[mma + "m16n8k16.row.col.f32.bf16.bf16.f32"] = {multiply16<16, Kind16::bfloat>, "T4T4T2T4"};
  forms[mma + "m16n8k8.row.col.f32.tf32.tf32.f32"] = {multiply32, "T4T4T2T4"};
  const std::string load = "ldmatrix.sync.aligned.m8n8.x";
  forms[load + "1.shared.b16"] = {load_matrices<1, false>, "T1S"};
  forms[load + "2.shared.b16"] = {load_matrices<2, false>, "T2S"};
  forms[load + "4.shared.b16"] = {load_matrices<4, false>, "T4S"};
  forms[load + "1.trans.shared.b16"] = {load_matrices<1, true>, "T1S"};
  forms[load + "2.trans.shared.b16"] = {load_matrices<2, true>, "T2S"};
  forms[load + "4.trans.shared.b16"] = {load_matrices<4, true>, "T4S"};
  // Those of 16 bytes alone may pass by the first cache.
  forms["cp.async.cg.shared.global"] = {copy<false>, "AAX"};
  forms["cp.async.cg.shared.global 4"] = {copy<true>, "AAXC"};
  forms["cp.async.ca.shared.global"] = {copy<false>, "AAK"};
  forms["cp.async.ca.shared.global 4"] = {copy<true>, "AAKC"};
  forms["cp.async.commit_group"] = {commit, ""};
  forms["cp.async.wait_group"] = {wait, "N"};
  forms["cvt.rna.tf32.f32"] = {round_tf32, "ww"};
}

}  // namespace ptx
