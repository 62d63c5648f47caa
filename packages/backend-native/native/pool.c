/*
 * Threads that take groups. They spin for a while after a job, because the next one mostly follows at once, then sleep. The calling thread takes
 * groups too and returns when the last one is done.
 */
#define _GNU_SOURCE
#include "native.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define relax() _mm_pause()
#elif defined(__aarch64__)
#define relax() __asm__ volatile("yield")
#else
#define relax() ((void)0)
#endif

/* Spins before a thread sleeps: some tens of microseconds. */
enum { worker_spins = 2000, caller_spins = 1000 };

struct worker {
  struct pool *pool;
  pthread_t thread;
  uint8_t *scratch;
};

struct pool {
  int32_t count;
  struct worker workers[most_threads];
  /* The running job; written before `job` changes. */
  kernel_function code;
  const uint64_t *args;
  int64_t groups;
  int64_t chunk;
  _Alignas(64) atomic_long next;
  /* Number of the last job. */
  _Alignas(64) atomic_uint job;
  /* The job that may be entered, or 0. */
  _Alignas(64) atomic_uint open;
  /* Number of workers that look at the job. */
  _Alignas(64) atomic_uint inside;
  atomic_uint sleepers;
  atomic_int fault;
  atomic_int stop;
};

static void futex_wait(atomic_uint *word, uint32_t value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
static void futex_wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0); }

static void take_groups(struct pool *pool, uint8_t *scratch) {
  for (;;) {
    int64_t from = atomic_fetch_add(&pool->next, pool->chunk);
    if (from >= pool->groups) return;
    int64_t to = from + pool->chunk < pool->groups ? from + pool->chunk : pool->groups;
    int32_t fault = pool->code(pool->args, from, to, scratch);
    if (fault != 0) atomic_store(&pool->fault, fault);
  }
}

static void *work(void *given) {
  struct worker *self = given;
  struct pool *pool = self->pool;
  plain_arithmetic();
  uint32_t last = 0;
  while (!atomic_load(&pool->stop)) {
    uint32_t job = atomic_load(&pool->job);
    for (int i = 0; job == last && i < worker_spins && !atomic_load(&pool->stop); i++) {
      relax();
      job = atomic_load(&pool->job);
    }
    if (job == last) {
      atomic_fetch_add(&pool->sleepers, 1);
      if (!atomic_load(&pool->stop)) futex_wait(&pool->job, last);
      atomic_fetch_sub(&pool->sleepers, 1);
      continue;
    }
    last = job;
    /* The caller waits for workers counted before the job was closed. */
    atomic_fetch_add(&pool->inside, 1);
    if (atomic_load(&pool->open) == job) take_groups(pool, self->scratch);
    if (atomic_fetch_sub(&pool->inside, 1) == 1) futex_wake(&pool->inside);
  }
  return NULL;
}

struct pool *start_pool(int32_t workers) {
  struct pool *pool = aligned_alloc(64, (sizeof(struct pool) + 63) / 64 * 64);
  if (pool == NULL) return NULL;
  __builtin_memset(pool, 0, sizeof *pool);
  /* Signals go to the other threads of the process. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int32_t i = 0; i < workers && i < most_threads; i++) {
    struct worker *w = &pool->workers[pool->count];
    w->pool = pool;
    w->scratch = map_scratch();
    if (w->scratch == NULL) break;
    if (wanted("threads") || pthread_create(&w->thread, NULL, work, w) != 0) {
      unmap_scratch(w->scratch);
      break;
    }
    pool->count++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pool;
}

void stop_pool(struct pool *pool) {
  if (pool == NULL) return;
  atomic_store(&pool->stop, 1);
  atomic_fetch_add(&pool->job, 1);
  futex_wake(&pool->job);
  for (int32_t i = 0; i < pool->count; i++) {
    pthread_join(pool->workers[i].thread, NULL);
    unmap_scratch(pool->workers[i].scratch);
  }
  free(pool);
}

int32_t run_groups(struct pool *pool, kernel_function code, const uint64_t *args, int64_t groups, int64_t chunk, uint8_t *scratch) {
  if (groups <= 0) return 0;
  if (pool == NULL || pool->count == 0 || chunk <= 0 || chunk >= groups) return code(args, 0, groups, scratch);
  pool->code = code;
  pool->args = args;
  pool->groups = groups;
  pool->chunk = chunk;
  atomic_store(&pool->next, 0);
  atomic_store(&pool->fault, 0);
  uint32_t job = atomic_load(&pool->job) + 1;
  if (job == 0) job = 1;
  atomic_store(&pool->open, job);
  atomic_store(&pool->job, job);
  if (atomic_load(&pool->sleepers) > 0) futex_wake(&pool->job);
  take_groups(pool, scratch);
  atomic_store(&pool->open, 0);
  for (int i = 0;; i++) {
    uint32_t inside = atomic_load(&pool->inside);
    if (inside == 0) break;
    if (i < caller_spins) relax();
    else futex_wait(&pool->inside, inside);
  }
  return atomic_load(&pool->fault);
}
