/** What is in order where not all threads of a group meet at every barrier, and who raced. */
#include <algorithm>

#include "program.h"

namespace ptx {
namespace {

/** In place of a thread: several of a warp. */
constexpr uint16_t many = 0xffff;

}  // namespace

void Order::start(size_t warps, size_t units) {
  known.assign(warps, std::vector<uint32_t>(warps, 0));
  writes.assign(units, {});
  reads.assign(units * warps, {});
}

void Order::meet(const std::vector<size_t> &warps) {
  std::vector<uint32_t> all(known.size(), 0);
  for (const size_t w : warps) known[w][w]++;
  for (const size_t w : warps)
    for (size_t v = 0; v < all.size(); v++) all[v] = std::max(all[v], known[w][v]);
  for (const size_t w : warps) known[w] = all;
}

const Touch *Order::raced(unsigned warp, uint16_t thread, uint64_t unit, bool writes_now) const {
  const auto is_before = [&](const Touch &touch, size_t of) {
    return touch.thread == thread || touch.interval <= known[warp][of];
  };
  if (!is_before(writes[unit], writes[unit].thread / lanes)) return &writes[unit];
  if (!writes_now) return nullptr;
  const size_t warps = known.size();
  for (size_t w = 0; w < warps; w++)
    if (!is_before(reads[unit * warps + w], w)) return &reads[unit * warps + w];
  return nullptr;
}

void Order::note(unsigned warp, uint16_t thread, uint64_t unit, bool writes_now) {
  if (writes_now) {
    writes[unit] = {now(warp), thread};
    return;
  }
  Touch &read = reads[unit * known.size() + warp];
  read = {now(warp), read.interval == now(warp) && read.thread != thread ? many : thread};
}

}  // namespace ptx
