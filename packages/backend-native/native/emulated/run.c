/*
 * Runs one piece of machine code for tests, as a program of its own that an emulator of another processor runs: code and memory come from standard
 * input, what the memory holds afterwards goes to standard output. Regions end where pages end that nobody may touch.
 *
 * Input, as uint64: bytes of the code, number of regions and the bytes of each, number of parameters and of each its region and offset, number of
 * scalars and the bits of each, groups; then the code and the regions. Output: what the code gave, and the regions.
 */
#define _GNU_SOURCE
#include "../native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { page_bytes = 65536, most_regions = 1024 };

static void fail(const char *text) {
  if (write(2, text, strlen(text)) < 0) _exit(3);
  _exit(2);
}

static void take(void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = read(0, (char *)to + done, bytes - done);
    if (n <= 0) fail("the input is cut short\n");
    done += (size_t)n;
  }
}

static void give(const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(1, (const char *)from + done, bytes - done);
    if (n <= 0) fail("the output cannot be written\n");
    done += (size_t)n;
  }
}

static uint64_t number(void) {
  uint64_t value;
  take(&value, sizeof value);
  return value;
}

/* Memory that ends before a page that may not be touched. */
static uint8_t *region(size_t bytes) {
  size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  uint8_t *at = mmap(NULL, whole + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(at + whole, page_bytes, PROT_NONE) != 0) fail("no memory\n");
  return at + whole - bytes;
}

int main(void) {
  static uint8_t *regions[most_regions];
  static size_t sizes[most_regions];
  static uint64_t args[2 * arg_slots];
  size_t code_bytes = number();
  size_t count = number();
  if (count > most_regions) fail("too many regions\n");
  for (size_t i = 0; i < count; i++) sizes[i] = number();
  for (size_t i = 0; i < count; i++) regions[i] = region(sizes[i]);
  size_t params = number();
  for (size_t i = 0; i < params; i++) {
    uint64_t of = number();
    uint64_t offset = number();
    if (i >= arg_slots || of >= count) fail("bad parameters\n");
    args[i] = (uint64_t)(uintptr_t)(regions[of] + offset);
  }
  size_t scalars = number();
  if (scalars > arg_slots) fail("too many scalars\n");
  take(&args[arg_slots], scalars * 8);
  int64_t groups = (int64_t)number();
  uint8_t *bytes = malloc(code_bytes);
  if (bytes == NULL) fail("no memory\n");
  take(bytes, code_bytes);
  for (size_t i = 0; i < count; i++) take(regions[i], sizes[i]);
  void *code = map_code(bytes, code_bytes);
  uint8_t *scratch = map_scratch();
  if (code == NULL || scratch == NULL) fail("no memory for code\n");
  kernel_function function;
  memcpy(&function, &code, sizeof function);
  int64_t result = groups > 0 ? function(args, 0, groups, scratch) : 0;
  give(&result, sizeof result);
  for (size_t i = 0; i < count; i++) give(regions[i], sizes[i]);
  return 0;
}
