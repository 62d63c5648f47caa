/* The native part of the engine `native`: what its files share. C without libraries; all symbols come from the process. */
#ifndef POLYGRAD_NATIVE_H
#define POLYGRAD_NATIVE_H

#include <stddef.h>
#include <stdint.h>

/* Generated code has the calling convention of System V everywhere: on Windows the compiler saves at each call what differs. */
#if defined(_WIN32) && defined(__x86_64__)
#define CALLED __attribute__((sysv_abi))
#else
#define CALLED
#endif

/* Generated code: args, first group, end of groups, scratch. 0, or the number of the check that failed. */
typedef CALLED int32_t (*kernel_function)(const uint64_t *args, int64_t from, int64_t to, uint8_t *scratch);

enum { scratch_bytes = 1 << 20, arg_slots = 1024, most_threads = 64 };

/* Instruction sets that processor and system support: 1 for x86-64-v3, 2 for x86-64-v4, 4 for arm64. */
int32_t find_features(void);

/* Memory for code: written first, executable afterwards, never both. NULL if the system refuses. */
void *map_code(const uint8_t *bytes, size_t length);
void unmap_code(void *code, size_t length);

/* Zeroed pages, of the threads' scratch memory and others; NULL if there are none. */
void *map_pages(size_t bytes);
void unmap_pages(void *pages, size_t bytes);

/* Asks for pages of 2 MiB if the system gives them on request; otherwise nothing changes. */
void use_large_pages(void *memory, size_t length);

struct pool;

/* Threads besides the calling one; NULL if none could be started. */
struct pool *start_pool(int32_t workers);
void stop_pool(struct pool *pool);

/* Runs all groups, `chunk` at a time, on this thread and the pool's. Returns the first nonzero result of the code, or 0. */
int32_t run_groups(struct pool *pool, kernel_function code, const uint64_t *args, int64_t groups, int64_t chunk, uint8_t *scratch);

/* Sets rounding to nearest with denormal numbers; returns the setting before. */
uint32_t plain_arithmetic(void);
void restore_arithmetic(uint32_t before);

/* True if a test has requested this failure (faults.c). The addon of users has none of them. */
#ifdef POLYGRAD_FAULTS
int wanted(const char *fault);
/* Makes whole pages inaccessible, or accessible again: an access meanwhile ends the process. 0 on success. */
int close_pages(void *at, size_t bytes, int closed);
#else
#define wanted(fault) 0
#endif

#endif
