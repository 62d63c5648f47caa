/* Threads of Windows, Linux (whose futex is asked for directly) and other systems with POSIX threads. */
#define _GNU_SOURCE
#include "threads.h"

#include <stdlib.h>

/* What a new thread runs. */
struct start {
  void (*work)(void *);
  void *given;
};

static void run_start(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  start.work(start.given);
}

static struct start *new_start(void (*work)(void *), void *given) {
  struct start *start = malloc(sizeof *start);
  if (start != NULL) *start = (struct start){work, given};
  return start;
}

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static DWORD WINAPI entry(void *given) {
  run_start(given);
  return 0;
}

int start_thread(thread_handle *thread, void (*work)(void *), void *given) {
  struct start *start = new_start(work, given);
  *thread = start == NULL ? NULL : CreateThread(NULL, 0, entry, start, 0, NULL);
  if (*thread != NULL) return 0;
  free(start);
  return -1;
}

void join_thread(thread_handle thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

void sleep_on(atomic_uint *word, uint32_t value) { WaitOnAddress((volatile void *)word, &value, sizeof value, INFINITE); }
void wake_all(atomic_uint *word) { WakeByAddressAll((void *)word); }

#else
#include <signal.h>

static void *entry(void *given) {
  run_start(given);
  return NULL;
}

int start_thread(thread_handle *thread, void (*work)(void *), void *given) {
  struct start *start = new_start(work, given);
  if (start == NULL) return -1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(thread, NULL, entry, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) free(start);
  return failed;
}

void join_thread(thread_handle thread) { pthread_join(thread, NULL); }

#if defined(__linux__) && !defined(POLYGRAD_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void sleep_on(atomic_uint *word, uint32_t value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
void wake_all(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0); }

#else

/* One place to sleep for all words: threads that were not meant look at theirs and sleep on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void sleep_on(atomic_uint *word, uint32_t value) {
  pthread_mutex_lock(&lock);
  if (atomic_load(word) == value) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

void wake_all(atomic_uint *word) {
  (void)word;
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

#endif
#endif
