/**
 * Groups one after another, the warps of a group in turns from barrier to barrier, the lanes of a warp in lock-step.
 *
 * Where lanes part, those that are furthest behind run first; lanes that get to the same place go on together. In code made of loops and
 * branches that nest, this brings them together where the block ends.
 */
#include <algorithm>
#include <cstdio>

#include "program.h"

namespace ptx {
namespace {

/** What registers and shared memory hold before anything is written: no number that a program expects. */
constexpr int poison = 0xa5;
constexpr int shared_poison = 0xff;

struct Where {
  const Instruction *instruction = nullptr;
  unsigned thread = 0;
};

/** Lanes of a warp that run together go to `to`; the list stays in order, and lanes at one place are one fragment. */
void place(std::vector<Fragment> &fragments, Fragment to) {
  size_t i = 0;
  while (i < fragments.size() && fragments[i].at < to.at) i++;
  if (i < fragments.size() && fragments[i].at == to.at)
    fragments[i].mask |= to.mask;
  else
    fragments.insert(fragments.begin() + long(i), to);
}

void count(Warp &w, const Instruction &i, uint32_t mask) {
  ptx_count &c = w.group->memory->counts[&i - w.group->entry->code.data()];
  c.warps++;
  c.lanes += unsigned(__builtin_popcount(mask));
  if (i.space != 0) count_access(w, i, mask, c);
}

/** Notes which barrier a warp waits at. */
void wait_at(Warp &w, const Instruction &i) {
  w.at = &i;
  w.barrier = 0;
  w.meeting = i.bytes;
  if (i.bytes == 0) return;
  const uint32_t *number = reg<uint32_t>(w, i.a);
  for (unsigned t = 0; t < lanes; t++)
    if ((w.alive >> t & 1) != 0 && number[t] != number[__builtin_ctz(w.alive)]) throw Fault{"lanes wait at different barriers", t};
  w.barrier = number[__builtin_ctz(w.alive)];
  if (w.barrier > 15) throw Fault{"barriers are numbered 0 to 15: got " + std::to_string(w.barrier), 0};
}

/** Runs a warp to the next barrier or its end. */
void run_warp(Warp &w, Where &where) {
  const Instruction *code = w.group->entry->code.data();
  while (!w.fragments.empty()) {
    Fragment now = w.fragments.front();
    w.fragments.erase(w.fragments.begin());
    const uint32_t next = w.fragments.empty() ? 0xffffffffu : w.fragments.front().at;
    for (;;) {
      if (now.at >= next) {
        place(w.fragments, now);
        break;
      }
      const Instruction &i = code[now.at];
      uint32_t mask = now.mask;
      if (i.predicate >= 0) {
        const uint32_t p = w.predicates[uint32_t(i.predicate)];
        mask &= i.negated ? ~p : p;
      }
      where.instruction = &i;
      if (i.kind == Kind::plain) {
        if (mask != 0 && w.group->memory->counts != nullptr) count(w, i, mask);
        if (mask != 0) i.run(w, i, mask);
        now.at++;
        continue;
      }
      if (i.kind == Kind::branch) {
        const uint32_t stay = now.mask & ~mask;
        if (mask == 0) {
          now.at++;
          continue;
        }
        if (stay == 0 && i.target < next) {
          now.at = i.target;
          continue;
        }
        place(w.fragments, {i.target, mask});
        if (stay != 0) place(w.fragments, {now.at + 1, stay});
        break;
      }
      if (i.kind == Kind::barrier) {
        if (mask != w.alive) {
          const uint32_t missing = w.alive & ~mask;
          throw Fault{"the barrier is not reached by all threads", unsigned(__builtin_ctz(missing))};
        }
        w.fragments.push_back({now.at + 1, now.mask});
        w.state = State::waiting;
        wait_at(w, i);
        return;
      }
      if (i.kind == Kind::warp_barrier) {
        if (uint32_t(i.offset) != w.alive || mask != w.alive) {
          const uint32_t other = (uint32_t(i.offset) ^ w.alive) | (w.alive & ~mask);
          throw Fault{"the lanes of the mask are not those that get there", unsigned(__builtin_ctz(other))};
        }
        w.group->order.meet({w.first_thread / lanes});
        now.at++;
        continue;
      }
      w.alive &= ~mask;
      if (mask != now.mask) place(w.fragments, {now.at + 1, now.mask & ~mask});
      break;
    }
  }
  w.state = State::done;
}

/** All warps to their end. */
void run_group(std::vector<Warp> &warps, Group &group, Where &where) {
  for (;;) {
    bool is_waiting = false;
    std::vector<size_t> at[16];
    for (size_t n = 0; n < warps.size(); n++) {
      Warp &w = warps[n];
      where.thread = w.first_thread;
      if (w.state == State::running) run_warp(w, where);
      if (w.state != State::waiting) continue;
      is_waiting = true;
      std::vector<size_t> &others = at[w.barrier];
      where.instruction = w.at;
      if (!others.empty()) {
        const Warp &other = warps[others.front()];
        if (other.meeting != w.meeting)
          throw Fault{"barrier " + std::to_string(w.barrier) + " is for " + std::to_string(w.meeting) + " threads, and others wait there as " +
                          std::to_string(other.meeting),
                      0};
        if (other.at != w.at) throw Fault{"threads wait at different barriers", 0};
      }
      others.push_back(n);
    }
    if (!is_waiting) return;
    bool met = false;
    for (const std::vector<size_t> &together : at) {
      if (together.empty()) continue;
      const Warp &first = warps[together.front()];
      const size_t needed = first.meeting == 0 ? warps.size() : first.meeting / lanes;
      where = {first.at, first.first_thread};
      if (together.size() > needed) throw Fault{"more threads wait at a barrier than it is for", 0};
      if (together.size() < needed) continue;
      met = true;
      group.epoch++;
      if (group.in_parts) group.order.meet(together);
      for (const size_t n : together) warps[n].state = State::running;
    }
    if (!met) throw Fault{"the barrier is not reached by all warps", 0};
  }
}

template <class T>
void spread(Warp &w, uint32_t at, T value) {
  T *to = reg<T>(w, at);
  for (unsigned t = 0; t < lanes; t++) to[t] = value;
}

Warp make_warp(Group &group, unsigned number, const unsigned grid[3], const unsigned block[3]) {
  const ptx_entry &entry = *group.entry;
  Warp w;
  w.memory.assign(entry.file_bytes / 8 + 8, 0);
  w.file = reinterpret_cast<uint8_t *>(w.memory.data());
  std::memset(w.file, poison, entry.file_bytes);
  w.predicates.assign(entry.predicates, 0xa5a5a5a5u);
  w.predicates[0] = 0;
  w.predicates[1] = all_lanes;
  w.group = &group;
  w.first_thread = number * lanes;
  w.alive = 0;
  w.state = State::running;
  for (const Literal &l : entry.literals) {
    if (l.bytes == 2) spread(w, l.at, uint16_t(l.bits));
    if (l.bytes == 4) spread(w, l.at, uint32_t(l.bits));
    if (l.bytes == 8) spread(w, l.at, l.bits);
  }
  for (const Special &s : entry.specials) {
    uint32_t *to = reg<uint32_t>(w, s.at);
    for (unsigned t = 0; t < lanes; t++) {
      const unsigned thread = w.first_thread + t;
      const unsigned own[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
      to[t] = s.name == Special::tid      ? own[s.axis]
              : s.name == Special::ntid   ? block[s.axis]
              : s.name == Special::nctaid ? grid[s.axis]
                                          : t;
    }
  }
  return w;
}

void start(Warp &w, unsigned threads, const unsigned id[3]) {
  const unsigned count = threads - w.first_thread < lanes ? threads - w.first_thread : lanes;
  w.alive = count == lanes ? all_lanes : (1u << count) - 1;
  w.fragments.assign(1, {0, w.alive});
  w.state = State::running;
  w.copies.assign(1, {});
  for (const Special &s : w.group->entry->specials)
    if (s.name == Special::ctaid) spread(w, s.at, uint32_t(id[s.axis]));
}

}  // namespace
}  // namespace ptx

int ptx_run(const ptx_entry *entry, const unsigned grid[3], const unsigned block[3], size_t dynamic_shared_bytes,
            const void *parameters, const ptx_memory *memory, char *fault, size_t fault_bytes) {
  using namespace ptx;
  const unsigned threads = block[0] * block[1] * block[2];
  const auto say = [&](const std::string &what) {
    std::snprintf(fault, fault_bytes, "%s: %s", entry->name.c_str(), what.c_str());
    return 1;
  };
  if (fault_bytes > 0) fault[0] = 0;
  if (threads == 0 || threads > 1024) return say("a group has 1 to 1024 threads: got " + std::to_string(threads));
  if (entry->max_threads != 0 && threads > entry->max_threads)
    return say("the kernel is for " + std::to_string(entry->max_threads) + " threads: got " + std::to_string(threads));
  Group group{entry, memory, static_cast<const uint8_t *>(parameters), {}, {}, 1, {}, {}, false};
  const size_t declared = (entry->shared_bytes + 15) / 16 * 16;
  group.shared.resize(dynamic_shared_bytes == 0 ? entry->shared_bytes : declared + dynamic_shared_bytes);
  group.met.assign(entry->accesses, {0, 0});
  std::vector<Warp> warps;
  for (unsigned w = 0; w * lanes < threads; w++) warps.push_back(make_warp(group, w, grid, block));
  unsigned id[3] = {0, 0, 0};
  Where where;
  try {
    for (id[2] = 0; id[2] < grid[2]; id[2]++)
      for (id[1] = 0; id[1] < grid[1]; id[1]++)
        for (id[0] = 0; id[0] < grid[0]; id[0]++) {
          std::fill(group.shared.begin(), group.shared.end(), uint8_t(shared_poison));
          if (memory->check_races) group.touched.assign((group.shared.size() >> entry->unit_shift) + 1, {});
          group.epoch = 1;
          group.in_parts = entry->in_parts;
          if (group.in_parts) group.order.start(warps.size(), group.touched.size());
          for (Warp &w : warps) start(w, threads, id);
          run_group(warps, group, where);
        }
  } catch (const Fault &f) {
    const size_t number = size_t(where.instruction - entry->code.data());
    const unsigned thread = where.thread + f.lane;
    const unsigned own[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
    char place[160];
    std::snprintf(place, sizeof place, "group (%u, %u, %u), thread (%u, %u, %u)", id[0], id[1], id[2], own[0], own[1],
                  own[2]);
    return say("line " + std::to_string(where.instruction->line) + ": " + entry->texts[number] + " " + place + ": " +
               f.what);
  }
  return 0;
}
