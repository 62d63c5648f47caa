/*
 * Runs pieces of machine code for tests, as a separate program in an emulator of another processor. Code and memory come from standard
 * input, the memory afterwards goes to standard output, until the input ends. Each region ends at an inaccessible page.
 *
 * Input, as uint64: bytes of the code, number of regions and the bytes of each, number of parameters and of each its region and offset, number of
 * scalars and the bits of each, groups; then the code and the regions. Output: the code's return value, and the regions.
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

static size_t whole_bytes(size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes; }

/* Memory that ends at an inaccessible page. */
static uint8_t *open_region(size_t bytes) {
  size_t whole = whole_bytes(bytes);
  uint8_t *at = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(at + whole - page_bytes, page_bytes, PROT_NONE) != 0) fail("no memory\n");
  return at + whole - page_bytes - bytes;
}

static void close_region(uint8_t *at, size_t bytes) {
  size_t whole = whole_bytes(bytes);
  munmap(at + bytes + page_bytes - whole, whole);
}

static uint8_t *regions[most_regions];
static size_t sizes[most_regions];
static uint64_t args[2 * arg_slots];

static void run(size_t code_bytes, uint8_t *scratch) {
  size_t count = number();
  if (count > most_regions) fail("too many regions\n");
  for (size_t i = 0; i < count; i++) sizes[i] = number();
  for (size_t i = 0; i < count; i++) regions[i] = open_region(sizes[i]);
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
  free(bytes);
  if (code == NULL) fail("no memory for code\n");
  kernel_function function;
  memcpy(&function, &code, sizeof function);
  int64_t result = groups > 0 ? function(args, 0, groups, scratch) : 0;
  unmap_code(code, code_bytes);
  give(&result, sizeof result);
  for (size_t i = 0; i < count; i++) {
    give(regions[i], sizes[i]);
    close_region(regions[i], sizes[i]);
  }
}

int main(void) {
  uint8_t *scratch = map_pages(scratch_bytes);
  if (scratch == NULL) fail("no memory\n");
  uint64_t code_bytes;
  for (;;) {
    ssize_t n = read(0, &code_bytes, sizeof code_bytes);
    if (n == 0) return 0;
    if (n != (ssize_t)sizeof code_bytes) fail("the input is cut short\n");
    run(code_bytes, scratch);
  }
}
