/**
 * A kernel as it is run: compact instructions over a register file, and what a warp is while it runs.
 *
 * A warp is 32 lanes in lock-step. A register is 32 values of 2, 4 or 8 bytes one behind the other in the file of the warp, a predicate one
 * word of 32 bits. Literals and special registers are registers too, so every instruction has registers alone.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ptx.h"

namespace ptx {

constexpr unsigned lanes = 32;
constexpr uint32_t all_lanes = 0xffffffffu;

struct Instruction;
struct Warp;
using Handler = void (*)(Warp &, const Instruction &, uint32_t mask);

/** A barrier for warps that wait, and one for the lanes of a warp, which waits for nobody else. */
enum class Kind : uint8_t { plain, branch, barrier, warp_barrier, stop };

struct Instruction {
  Handler run = nullptr;
  Kind kind = Kind::plain;
  bool negated = false;
  /** The predicate it stands under; -1 where there is none. */
  int32_t predicate = -1;
  /** Where destination and sources lie in the file, in bytes; the number of predicates. */
  uint32_t d = 0, a = 0, b = 0, c = 0;
  /** Registers of a vector. */
  uint32_t vector[4] = {};
  /** Registers of the tiles of a product: of the result, of both factors, of what is added; or of a fragment. */
  uint32_t tiles[4][4] = {};
  /** Constant part of an address. */
  int64_t offset = 0;
  /** Where a branch goes; the place of an access in the table of ranges met last. */
  uint32_t target = 0;
  uint32_t line = 0;
  /** Of an access: 'g' device memory, 's' shared memory, 'c' a copy from one to the other, 'm' lines of matrices in shared memory; 0: none. */
  char space = 0;
  /** Bytes of a lane; of lines of matrices how many of those there are. */
  uint32_t bytes = 0;
};

struct Parameter {
  size_t bytes;
  size_t offset;
};

/** A literal in the file: `bytes` of `bits` in every lane. */
struct Literal {
  uint32_t at;
  uint32_t bytes;
  uint64_t bits;
};

/** Special registers that change from thread to thread or from group to group. */
struct Special {
  enum Name { tid, ctaid, ntid, nctaid, laneid } name;
  unsigned axis;
  uint32_t at;
};

}  // namespace ptx

struct ptx_entry {
  std::string name;
  std::vector<ptx::Parameter> parameters;
  std::map<std::string, size_t> parameter_numbers;
  size_t parameter_bytes = 0;
  size_t shared_bytes = 0;
  unsigned max_threads = 0;
  uint32_t file_bytes = 0;
  uint32_t predicates = 0;
  uint32_t accesses = 0;
  /** Races are looked for in units of shared memory: 1, 2, 4, 8 or 16 bytes, the least that an instruction touches. This is the logarithm. */
  uint32_t unit_shift = 4;
  /** True if some threads meet without the others. */
  bool in_parts = false;
  std::vector<ptx::Instruction> code;
  /** The text of each instruction, for faults. */
  std::vector<std::string> texts;
  std::vector<ptx::Literal> literals;
  std::vector<ptx::Special> specials;
};

struct ptx_module {
  unsigned version = 0;
  unsigned target = 0;
  std::map<std::string, ptx_entry> entries;
};

namespace ptx {

/** Who touched a unit of shared memory since the last barrier. Accesses lie at multiples of their size, so none touches half a unit. */
struct Touched {
  uint32_t written = 0;
  uint32_t read = 0;
  uint16_t writer = 0;
  uint16_t reader = 0;
  /** A copy to it is under way. */
  bool pending = false;
};

/** A thread that touched a unit, 0xffff for several of a warp, and the interval between two barriers of its warp in which it did; 0: never. */
struct Touch {
  uint32_t interval = 0;
  uint16_t thread = 0;
};

/**
 * What is in order in a kernel whose threads do not all meet at every barrier. Each warp counts its intervals between barriers, and knows up to which
 * one of each other warp it has met, by itself or through others (vector clocks).
 */
struct Order {
  /** `known[w][v]`: the intervals of warp v that come before what warp w does now; those of w itself up to the one before. */
  std::vector<std::vector<uint32_t>> known;
  /** The last write of each unit, and for each warp its last read of it. */
  std::vector<Touch> writes, reads;

  void start(size_t warps, size_t units);
  uint32_t now(size_t warp) const { return known[warp][warp] + 1; }
  /** Warps pass a barrier together. */
  void meet(const std::vector<size_t> &warps);
  /** Who touched the unit out of order with this access of a thread; null if nobody did. */
  const Touch *raced(unsigned warp, uint16_t thread, uint64_t unit, bool writes_now) const;
  void note(unsigned warp, uint16_t thread, uint64_t unit, bool writes_now);
};

/** What all warps of a running group share. */
struct Group {
  const ptx_entry *entry;
  const ptx_memory *memory;
  const uint8_t *parameters;
  std::vector<uint8_t> shared;
  std::vector<Touched> touched;
  /** Which part between barriers it is in, counted from 1. */
  uint32_t epoch = 1;
  /** The range each access met last. */
  std::vector<ptx_range> met;
  /** In place of the epoch, where some barriers are for parts of the group. */
  Order order;
  bool in_parts = false;
};

struct Fragment {
  uint32_t at;
  uint32_t mask;
};

/** A copy that is under way: its bytes, and where they will be. */
struct Copy {
  unsigned lane;
  uint64_t to;
  uint32_t size;
  uint8_t bytes[16];
};

enum class State : uint8_t { running, waiting, done };

struct Warp {
  std::vector<uint64_t> memory;
  uint8_t *file;
  std::vector<uint32_t> predicates;
  Group *group;
  unsigned first_thread;
  uint32_t alive;
  /** Lanes by where they are, in rising order: the first ones run. */
  std::vector<Fragment> fragments;
  State state;
  /** Copies to shared memory in batches; the last batch is still open. */
  std::vector<std::vector<Copy>> copies;
  /** Where it waits: the instruction, the number of the barrier, and how many threads meet there. */
  const Instruction *at = nullptr;
  uint32_t barrier = 0;
  uint32_t meeting = 0;
};

template <class T>
inline T *reg(Warp &w, uint32_t at) {
  return reinterpret_cast<T *>(w.file + at);
}

struct Fault {
  std::string what;
  unsigned lane;
};

/** How an instruction is read: its handler, and its operands as letters; the first is the destination. */
struct Form {
  Handler run = nullptr;
  /**
   * p predicate, h 16 bits, w 32 bits, q 64 bits, D a pair of 16-bit registers in braces, G address in device memory, S address in shared
   * memory, P parameter; 1, 2 and 4 before a letter: a vector of so many; T and a number: as many registers of a tile, in braces;
   * B the number of the barrier of all threads, I the number of one, R how many threads wait at one, V a mask of lanes;
   * A addresses of a copy, in shared memory and in device memory; K its bytes, X if they are 16; C a register of 32 bits as the third source; N a number.
   */
  std::string operands;
  Kind kind = Kind::plain;
};

using Forms = std::map<std::string, Form>;

/** Adds what an access is about to do to the counts of its instruction. */
void count_access(Warp &w, const Instruction &i, uint32_t mask, ptx_count &count);

void add_arithmetic(Forms &forms);
void add_conversions(Forms &forms);
void add_accesses(Forms &forms);
void add_exchanges(Forms &forms);
void add_matrices(Forms &forms);

/** Bytes of shared memory that a lane reads, or writes; a fault where it may not. */
const uint8_t *read_shared(Warp &w, uint64_t address, size_t bytes, unsigned lane);
uint8_t *write_shared(Warp &w, uint64_t address, size_t bytes, unsigned lane);
/** Bytes of device memory that a lane of an instruction reads. */
const uint8_t *read_device(Warp &w, const Instruction &i, uint64_t address, size_t bytes, unsigned lane);
/** A write is in progress: they must not be read until it is complete. */
void forget_shared(Warp &w, uint64_t address, size_t bytes);

}  // namespace ptx
