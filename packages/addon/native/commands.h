/**
 * Commands of a batch, as cells of eight bytes: [kind, cells in all, ...]. Numbers are doubles, scalar arguments raw bytes. What a dispatch has behind its
 * groups is the driver's own; command-buffer.ts of this package writes them.
 */
#pragma once
#include <cstdint>
#include <string>

#include "checked.h"

enum CommandKind : int {
  kDispatch = 1,  // kernel, groups along each axis (0: all), then the driver's cells for each argument
  kCopy = 2,      // from, offset, to, offset, bytes
  kFill = 3,      // buffer, offset, bytes, pattern
  kProduct = 4,   // see product.h
  kConvolution = 5,  // of CUDA alone; see its convolution.h
};

/** How many cells the command has that begins here. */
inline size_t LengthOf(const double* cells, size_t left) {
  if (left < 2) Refuse("submit", "the last command is cut short");
  const size_t length = Whole(cells[1], "submit", "the length of a command");
  if (length < 2 || length > left)
    Refuse("submit", "a command of " + std::to_string(length) + " cells where " + std::to_string(left) + " are left");
  return length;
}

inline void Expect(size_t length, size_t wanted, const char* call) {
  if (length != wanted)
    Refuse(call, "a command of " + std::to_string(length) + " cells, not " + std::to_string(wanted));
}

/** A fill by a pattern of four bytes; buffers are known by number. */
struct FillCommand {
  double buffer;
  size_t offset;
  size_t bytes;
  uint32_t pattern;
};

inline FillCommand FillOf(const double* cells, size_t length) {
  Expect(length, 6, "fill");
  const size_t offset = Whole(cells[3], "fill", "the offset");
  const size_t bytes = Whole(cells[4], "fill", "the number of bytes");
  return {cells[2], offset, bytes, static_cast<uint32_t>(Whole(cells[5], "fill", "the pattern", 4294967295.0))};
}

/** A copy; ranges of one buffer may overlap. */
struct CopyCommand {
  double from;
  size_t source;
  double to;
  size_t target;
  size_t bytes;
};

inline CopyCommand CopyOf(const double* cells, size_t length) {
  Expect(length, 7, "copy");
  const size_t source = Whole(cells[3], "copy", "an offset");
  const size_t target = Whole(cells[5], "copy", "an offset");
  return {cells[2], source, cells[4], target, Whole(cells[6], "copy", "the number of bytes")};
}
