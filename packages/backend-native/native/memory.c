/* Pages of memory, for data and for code, of each system. */
#define _GNU_SOURCE
#include "native.h"

#include <string.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#ifdef _WIN32

void *map_pages(size_t bytes) { return wanted("memory") ? NULL : VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

void unmap_pages(void *pages, size_t bytes) {
  (void)bytes;
  if (pages != NULL) VirtualFree(pages, 0, MEM_RELEASE);
}

void *map_code(const uint8_t *bytes, size_t length) {
  void *at = VirtualAlloc(NULL, length, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (at == NULL) return NULL;
  memcpy(at, bytes, length);
  DWORD before;
  if (wanted("executable") || !VirtualProtect(at, length, PAGE_EXECUTE_READ, &before)) {
    VirtualFree(at, 0, MEM_RELEASE);
    return NULL;
  }
  FlushInstructionCache(GetCurrentProcess(), at, length);
  return at;
}

void unmap_code(void *code, size_t length) { unmap_pages(code, length); }

/* Large pages are for users whom the administrator lets lock memory. */
void use_large_pages(void *memory, size_t length) { (void)memory, (void)length; }

#ifdef POLYGRAD_FAULTS
int close_pages(void *at, size_t bytes, int closed) {
  DWORD before;
  return VirtualProtect(at, bytes, closed ? PAGE_NOACCESS : PAGE_READWRITE, &before) ? 0 : -1;
}
#endif

#else

static size_t whole_pages(size_t length) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (length + page - 1) / page * page;
}

static void *map(size_t size, int access, int more) {
  void *at = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANON | more, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

void *map_pages(size_t bytes) { return wanted("memory") ? NULL : map(whole_pages(bytes), PROT_READ | PROT_WRITE, 0); }

void unmap_pages(void *pages, size_t bytes) {
  if (pages != NULL) munmap(pages, whole_pages(bytes));
}

void unmap_code(void *code, size_t length) { unmap_pages(code, length); }

#if defined(__APPLE__) && defined(__aarch64__)
#include <libkern/OSCacheControl.h>
#include <pthread.h>

/* Each thread may either write such pages or run them. */
void *map_code(const uint8_t *bytes, size_t length) {
  void *at = map(whole_pages(length), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_JIT);
  if (at == NULL) return NULL;
  pthread_jit_write_protect_np(0);
  memcpy(at, bytes, length);
  pthread_jit_write_protect_np(1);
  sys_icache_invalidate(at, length);
  return at;
}

#else

void *map_code(const uint8_t *bytes, size_t length) {
  size_t size = whole_pages(length);
  void *at = map(size, PROT_READ | PROT_WRITE, 0);
  if (at == NULL) return NULL;
  memcpy(at, bytes, length);
  /* Processors with separate caches for data and instructions must be told. */
  __builtin___clear_cache((char *)at, (char *)at + size);
  if (wanted("executable") || mprotect(at, size, PROT_READ | PROT_EXEC) != 0) {
    munmap(at, size);
    return NULL;
  }
  return at;
}

#endif

void use_large_pages(void *memory, size_t length) {
#ifdef MADV_HUGEPAGE
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory / page * page;
  (void)madvise((void *)from, (uintptr_t)memory + length - from, MADV_HUGEPAGE);
#else
  (void)memory, (void)length;
#endif
}

#ifdef POLYGRAD_FAULTS
int close_pages(void *at, size_t bytes, int closed) { return mprotect(at, bytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE); }
#endif

#endif
