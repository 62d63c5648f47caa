/*
 * Threads that take groups. They spin for a while after a job, because the next one mostly follows at once, then sleep. The calling thread takes
 * groups too and returns when the last one is done.
 */
#include "native.h"
#include "threads.h"

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
  thread_handle thread;
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
  _Alignas(64) _Atomic int64_t next;
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

static void take_groups(struct pool *pool, uint8_t *scratch) {
  for (;;) {
    int64_t from = atomic_fetch_add(&pool->next, pool->chunk);
    if (from >= pool->groups) return;
    int64_t to = from + pool->chunk < pool->groups ? from + pool->chunk : pool->groups;
    int32_t fault = pool->code(pool->args, from, to, scratch);
    if (fault != 0) atomic_store(&pool->fault, fault);
  }
}

static void work(void *given) {
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
      if (!atomic_load(&pool->stop)) sleep_on(&pool->job, last);
      atomic_fetch_sub(&pool->sleepers, 1);
      continue;
    }
    last = job;
    /* The caller waits for workers counted before the job was closed. */
    atomic_fetch_add(&pool->inside, 1);
    if (atomic_load(&pool->open) == job) take_groups(pool, self->scratch);
    if (atomic_fetch_sub(&pool->inside, 1) == 1) wake_all(&pool->inside);
  }
}

struct pool *start_pool(int32_t workers) {
  struct pool *pool = map_pages(sizeof *pool);
  if (pool == NULL) return NULL;
  for (int32_t i = 0; i < workers && i < most_threads; i++) {
    struct worker *w = &pool->workers[pool->count];
    w->pool = pool;
    w->scratch = map_pages(scratch_bytes);
    if (w->scratch == NULL) break;
    if (wanted("threads") || start_thread(&w->thread, work, w) != 0) {
      unmap_pages(w->scratch, scratch_bytes);
      break;
    }
    pool->count++;
  }
  return pool;
}

void stop_pool(struct pool *pool) {
  if (pool == NULL) return;
  atomic_store(&pool->stop, 1);
  atomic_fetch_add(&pool->job, 1);
  wake_all(&pool->job);
  for (int32_t i = 0; i < pool->count; i++) {
    join_thread(pool->workers[i].thread);
    unmap_pages(pool->workers[i].scratch, scratch_bytes);
  }
  unmap_pages(pool, sizeof *pool);
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
  if (atomic_load(&pool->sleepers) > 0) wake_all(&pool->job);
  take_groups(pool, scratch);
  atomic_store(&pool->open, 0);
  for (int i = 0;; i++) {
    uint32_t inside = atomic_load(&pool->inside);
    if (inside == 0) break;
    if (i < caller_spins) relax();
    else sleep_on(&pool->inside, inside);
  }
  return atomic_load(&pool->fault);
}
