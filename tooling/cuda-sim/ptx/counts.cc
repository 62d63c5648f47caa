/**
 * What the memories of a card would do for an access of a warp: sectors of 32 bytes of device memory, turns of the 32 banks of shared memory.
 *
 * Accesses of 8 bytes go by halves of a warp, those of 16 by quarters (CUDA C Programming Guide, "Shared Memory"); in a turn each bank gives one
 * word of four bytes, to as many lanes as want it. Nothing here says how long that takes.
 */
#include <algorithm>
#include <set>

#include "program.h"

namespace ptx {
namespace {

constexpr unsigned banks = 32;
constexpr unsigned sector = 32;
constexpr unsigned line = 128;

struct Access {
  uint64_t address;
  uint32_t bytes;
};

uint64_t divided(uint64_t x, uint64_t by) { return (x + by - 1) / by; }

/** Turns for lanes that go together, and the words they want. */
uint64_t turns(const std::vector<Access> &accesses, std::set<uint64_t> &words) {
  std::set<uint64_t> own;
  for (const Access &a : accesses)
    for (uint64_t word = a.address / 4; word <= (a.address + a.bytes - 1) / 4; word++) own.insert(word);
  unsigned most = 0, by_bank[banks] = {};
  for (const uint64_t word : own) most = std::max(most, ++by_bank[word % banks]);
  words.insert(own.begin(), own.end());
  return most;
}

void count_shared(const std::vector<Access> &accesses, uint32_t bytes, ptx_count &count) {
  // Lanes keep their places among halves and quarters where others take no part.
  const size_t together = bytes <= 4 ? lanes : bytes == 8 ? lanes / 2 : lanes / 4;
  std::set<uint64_t> words;
  for (size_t first = 0; first < accesses.size(); first += together) {
    std::vector<Access> some;
    for (size_t t = first; t < std::min(accesses.size(), first + together); t++)
      if (accesses[t].bytes != 0) some.push_back(accesses[t]);
    count.done += turns(some, words);
  }
  count.least += divided(words.size() * 4, line);
}

void count_device(const std::vector<Access> &accesses, ptx_count &count) {
  std::set<uint64_t> sectors, words;
  for (const Access &a : accesses) {
    if (a.bytes == 0) continue;
    for (uint64_t at = a.address / sector; at <= (a.address + a.bytes - 1) / sector; at++) sectors.insert(at);
    for (uint64_t byte = a.address; byte < a.address + a.bytes; byte++) words.insert(byte);
  }
  count.done += sectors.size();
  count.least += divided(words.size(), sector);
}

}  // namespace

void count_access(Warp &w, const Instruction &i, uint32_t mask, ptx_count &count) {
  std::vector<Access> accesses(lanes, Access{0, 0});
  const bool is_device = i.space == 'g' || i.space == 'c';
  count.space = is_device ? 'g' : 's';
  count.bytes = i.space == 'm' ? 16 : i.bytes;
  for (unsigned t = 0; t < lanes; t++) {
    if (!(mask >> t & 1)) continue;
    if (i.space == 'g') accesses[t] = {reg<uint64_t>(w, i.a)[t] + uint64_t(i.offset), i.bytes};
    if (i.space == 'c') accesses[t] = {reg<uint64_t>(w, i.b)[t] + reg<uint64_t>(w, i.vector[0])[t], i.bytes};
    // A copy that is closed reads nothing.
    if (i.space == 'c' && i.c != 0 && reg<uint32_t>(w, i.c)[t] == 0) accesses[t].bytes = 0;
    if (!is_device) accesses[t] = {uint32_t(reg<uint32_t>(w, i.a)[t] + uint32_t(i.offset)), count.bytes};
  }
  if (is_device) {
    count_device(accesses, count);
    return;
  }
  // Lanes have the lines of as many matrices, eight each.
  if (i.space == 'm') accesses.resize(8 * i.bytes);
  count_shared(accesses, count.bytes, count);
}

}  // namespace ptx
