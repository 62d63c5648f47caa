/**
 * ptx-run: kernels run from standard input, results to standard output, for tests without a driver.
 *
 * Input, little-endian words of 32 bits unless said: how many buffers, and the contents of each (length, bytes); how many launches; for each
 * its text and the entry's name (length, bytes), grid, block (three words each), bytes of dynamic shared memory, 1 to check races, how
 * many arguments, and for each 1, number of a buffer, first byte and bytes the kernel may touch, or 0 and a number (length, bytes).
 * Output: 0 and the bytes of all buffers, or the number of the launch that failed, from 1, and why (length, bytes).
 *
 * With the argument `--counts` the contents of a buffer are its length alone, and are zeros. Output is then text: for each launch a line `launch N`,
 * or `launch N failed: why`, and a line for each instruction that ran: times, lanes, space, bytes of a lane, what memory did, the least, the text.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ptx.h"

namespace {

[[noreturn]] void stop(const char *what) {
  std::fprintf(stderr, "ptx-run: %s\n", what);
  std::exit(2);
}

std::vector<uint8_t> read_all() {
  std::vector<uint8_t> all;
  uint8_t part[1 << 16];
  for (size_t got; (got = std::fread(part, 1, sizeof part, stdin)) > 0;) all.insert(all.end(), part, part + got);
  return all;
}

class Input {
 public:
  explicit Input(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}

  uint32_t word() {
    uint32_t value = 0;
    take(&value, 4);
    return value;
  }

  std::vector<uint8_t> block() {
    std::vector<uint8_t> bytes(word());
    take(bytes.data(), bytes.size());
    return bytes;
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;

  void take(void *to, size_t count) {
    if (count > bytes_.size() - at_) stop("the input ends too early");
    std::copy_n(bytes_.data() + at_, count, static_cast<uint8_t *>(to));
    at_ += count;
  }
};

void put(uint32_t word) { std::fwrite(&word, 1, 4, stdout); }

/** A buffer with room around it that the kernel may not touch, at a multiple of 256. */
struct Buffer {
  // Untouched zeros take no memory.
  std::unique_ptr<void, void (*)(void *)> memory;
  uint8_t *start;
  size_t bytes;

  explicit Buffer(size_t count) : memory(std::calloc(count + 512, 1), std::free), bytes(count) {
    if (memory == nullptr) stop("there is no memory for a buffer");
    const uint64_t at = (reinterpret_cast<uint64_t>(memory.get()) + 255) / 256 * 256;
    start = reinterpret_cast<uint8_t *>(at);
  }

  explicit Buffer(const std::vector<uint8_t> &contents) : Buffer(contents.size()) {
    std::copy(contents.begin(), contents.end(), start);
  }
};

struct Failure {
  std::string why;
};

bool counting = false;

void print_counts(const ptx_entry *entry, const std::vector<ptx_count> &counts) {
  for (size_t i = 0; i < counts.size(); i++) {
    const ptx_count &c = counts[i];
    if (c.warps == 0) continue;
    std::printf("%llu %llu %c %u %llu %llu %s\n", (unsigned long long)c.warps, (unsigned long long)c.lanes,
                c.space == 0 ? '-' : c.space, c.bytes, (unsigned long long)c.done, (unsigned long long)c.least,
                ptx_instruction_text(entry, i));
  }
}

/** Sorted, and as one where they overlap: arguments may share memory. */
std::vector<ptx_range> joined(std::vector<ptx_range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ptx_range &a, const ptx_range &b) { return a.start < b.start; });
  std::vector<ptx_range> out;
  for (const ptx_range &r : ranges) {
    if (!out.empty() && r.start < out.back().start + out.back().bytes)
      out.back().bytes = std::max(out.back().start + out.back().bytes, r.start + r.bytes) - out.back().start;
    else if (r.bytes > 0)
      out.push_back(r);
  }
  return out;
}

void launch(Input &input, const std::vector<Buffer> &buffers) {
  const std::vector<uint8_t> text = input.block();
  const std::vector<uint8_t> name = input.block();
  unsigned grid[3], block[3];
  for (unsigned &x : grid) x = input.word();
  for (unsigned &x : block) x = input.word();
  const uint32_t dynamic = input.word();
  const uint32_t races = input.word();
  std::vector<std::vector<uint8_t>> arguments(input.word());
  std::vector<ptx_range> ranges;
  for (std::vector<uint8_t> &bytes : arguments) {
    if (input.word() == 0) {
      bytes = input.block();
      continue;
    }
    const Buffer &buffer = buffers.at(input.word());
    const uint32_t first = input.word();
    const uint32_t count = input.word();
    if (first > buffer.bytes || count > buffer.bytes - first) stop("an argument leaves its buffer");
    const uint64_t address = reinterpret_cast<uint64_t>(buffer.start) + first;
    bytes.resize(8);
    std::copy_n(reinterpret_cast<const uint8_t *>(&address), 8, bytes.data());
    ranges.push_back({address, count});
  }
  std::string message(1024, 0);
  const std::unique_ptr<ptx_module, void (*)(ptx_module *)> module(
      ptx_parse(std::string(text.begin(), text.end()).c_str(), &message[0], message.size()), ptx_free);
  if (module == nullptr) throw Failure{message.c_str()};
  const ptx_entry *entry = ptx_find(module.get(), std::string(name.begin(), name.end()).c_str());
  if (entry == nullptr) throw Failure{"no such entry"};
  if (ptx_parameter_count(entry) != arguments.size()) throw Failure{"another number of arguments than parameters"};
  std::vector<uint8_t> parameters(ptx_parameter_bytes(entry) + 8);
  for (size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i].size() != ptx_parameter_size(entry, i)) throw Failure{"an argument has another size than its parameter"};
    std::copy(arguments[i].begin(), arguments[i].end(), parameters.data() + ptx_parameter_offset(entry, i));
  }
  const std::vector<ptx_range> allowed = joined(ranges);
  std::vector<ptx_count> counts(counting ? ptx_instruction_count(entry) : 0);
  const ptx_memory memory{allowed.data(), allowed.size(), int(races), counting ? counts.data() : nullptr};
  if (ptx_run(entry, grid, block, dynamic, parameters.data(), &memory, &message[0], message.size()) != 0)
    throw Failure{message.c_str()};
  print_counts(entry, counts);
}

}  // namespace

int main(int count_of_words, char **words) {
  counting = count_of_words > 1 && std::string(words[1]) == "--counts";
  Input input(read_all());
  std::vector<Buffer> buffers;
  const uint32_t count = input.word();
  buffers.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    if (counting)
      buffers.emplace_back(size_t(input.word()));
    else
      buffers.emplace_back(input.block());
  }
  const uint32_t launches = input.word();
  for (uint32_t i = 0; i < launches; i++) {
    try {
      if (counting) std::printf("launch %u\n", i + 1);
      launch(input, buffers);
    } catch (const Failure &failure) {
      if (counting) {
        std::printf("launch %u failed: %s\n", i + 1, failure.why.c_str());
        continue;
      }
      put(i + 1);
      put(uint32_t(failure.why.size()));
      std::fwrite(failure.why.data(), 1, failure.why.size(), stdout);
      return 0;
    }
  }
  if (counting) return 0;
  put(0);
  for (const Buffer &b : buffers) std::fwrite(b.start, 1, b.bytes, stdout);
  return 0;
}
