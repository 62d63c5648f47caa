/* Threads, and words of memory on which they sleep, of each system. */
#ifndef POLYGRAD_THREADS_H
#define POLYGRAD_THREADS_H

#include <stdatomic.h>
#include <stdint.h>

#ifdef _WIN32
typedef void *thread_handle;
#else
#include <pthread.h>
typedef pthread_t thread_handle;
#endif

/* Starts a thread that takes no signals, which are for the other threads of the process. 0 on success. */
int start_thread(thread_handle *thread, void (*work)(void *), void *given);
void join_thread(thread_handle thread);

/* Sleeps while a word has this value; may return earlier. */
void sleep_on(atomic_uint *word, uint32_t value);
/* Wakes all that sleep on a word, which was changed before. */
void wake_all(atomic_uint *word);

#endif
