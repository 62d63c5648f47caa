/*
 * Plain C loops as a yardstick of memory bandwidth: `cc -O3 -march=native`, one thread or several.
 * Takes requests as lines (apps/bench/src/protocol.ts, wordRequest), answers with JSON behind a mark.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 64
#define LANES 64

static int threads = 1;
static pthread_barrier_t start_line, finish_line;
static int quitting = 0;

static char kind = 0; /* 'a'dd, 'c'hain, 's'um */
static size_t n = 0;
static float *a, *b, *y;
static double partial[MAX_THREADS * 16]; /* a cache line each */
static double total;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

/* The same sequence as element() in apps/bench/src/inputs.ts. */
static float element(uint32_t seed, uint32_t i, double low, double high) {
  uint32_t u = i + seed * 0x9e3779b1u;
  u ^= u >> 16;
  u *= 0x7feb352du;
  u ^= u >> 15;
  u *= 0x846ca68bu;
  u ^= u >> 16;
  return (float)(low + (high - low) * ((u >> 8) * 0x1p-24));
}

static void add(const float *restrict a, const float *restrict b, float *restrict y, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) y[i] = a[i] + b[i];
}

static void chain(const float *restrict a, const float *restrict b, float *restrict y, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    float t = a[i] * b[i] + a[i];
    y[i] = (t > 0 ? t : 0) * 0.5f - b[i];
  }
}

/* Many accumulators: C may not reorder float additions by itself, and one chain of them would not reach the bandwidth. */
static double sum(const float *restrict a, size_t from, size_t to) {
  float acc[LANES] = {0};
  size_t i = from;
  for (; i + LANES <= to; i += LANES)
    for (int j = 0; j < LANES; j++) acc[j] += a[i + j];
  double s = 0;
  for (int j = 0; j < LANES; j++) s += acc[j];
  for (; i < to; i++) s += a[i];
  return s;
}

static void part(int thread) {
  size_t chunk = (n / threads + LANES - 1) / LANES * LANES;
  size_t from = (size_t)thread * chunk, to = from + chunk;
  if (from > n) from = n;
  if (to > n || thread == threads - 1) to = n;
  if (kind == 'a') add(a, b, y, from, to);
  else if (kind == 'c') chain(a, b, y, from, to);
  else partial[thread * 16] = sum(a, from, to);
}

static void *helper(void *arg) {
  int thread = (int)(intptr_t)arg;
  for (;;) {
    pthread_barrier_wait(&start_line);
    if (quitting) return NULL;
    part(thread);
    pthread_barrier_wait(&finish_line);
  }
}

static void run_once(void) {
  if (threads > 1) pthread_barrier_wait(&start_line);
  part(0);
  if (threads > 1) pthread_barrier_wait(&finish_line);
  total = 0;
  for (int t = 0; t < threads; t++) total += partial[t * 16];
}

static float *memory(size_t count) {
  void *p = NULL;
  if (posix_memalign(&p, 64, count * sizeof(float) + 64) != 0) exit(3);
  return p;
}

static void release(void) {
  free(a);
  free(b);
  free(y);
  a = b = y = NULL;
  kind = 0;
}

static void prepare(const char *name, size_t count, double warm_ms) {
  release();
  n = count;
  if (strcmp(name, "add") != 0 && strcmp(name, "chain") != 0 && strcmp(name, "sum") != 0) {
    printf("@bench {\"unsupported\":\"no loop for %s\"}\n", name);
    return;
  }
  kind = name[0];
  a = memory(n);
  if (kind == 's') {
    for (size_t i = 0; i < n; i++) a[i] = element(3, (uint32_t)i, 0, 1);
  } else {
    b = memory(n);
    y = memory(n);
    for (size_t i = 0; i < n; i++) a[i] = element(1, (uint32_t)i, -1, 1);
    for (size_t i = 0; i < n; i++) b[i] = element(2, (uint32_t)i, -1, 1);
    memset(y, 0, n * sizeof(float));
  }
  double best = 1e300, end = now_ms() + warm_ms;
  do {
    double t = now_ms();
    run_once();
    t = now_ms() - t;
    if (t < best) best = t;
  } while (now_ms() < end);
  printf("@bench {\"probe\":[");
  if (kind == 's') printf("%.17g", total);
  else
    for (size_t j = 0; j < 8; j++) printf("%s%.9g", j ? "," : "", y[j * (n - 1) / 7]);
  printf("],\"count\":1,\"opNs\":%.1f}\n", best * 1e6);
}

static void measure(double budget_ms, int most) {
  double end = now_ms() + budget_ms;
  printf("@bench {\"samples\":[");
  for (int s = 0; s < most; s++) {
    double t = now_ms();
    run_once();
    t = now_ms() - t;
    printf("%s%.1f", s ? "," : "", t * 1e6);
    if (now_ms() >= end) break;
  }
  printf("]}\n");
}

int main(int argc, char **argv) {
  char line[256], name[64];
  size_t count;
  double budget;
  int most;
  threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > MAX_THREADS) threads = 1;
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  if (threads > 1) {
    pthread_barrier_init(&start_line, NULL, threads);
    pthread_barrier_init(&finish_line, NULL, threads);
    for (int t = 1; t < threads; t++) {
      pthread_t id;
      if (pthread_create(&id, NULL, helper, (void *)(intptr_t)t) != 0) return 3;
    }
  }
  printf("@bench {\"version\":\"%s\"}\n", __VERSION__);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "prepare %63s %zu %lf", name, &count, &budget) == 3) prepare(name, count, budget);
    else if (sscanf(line, "measure %lf %d", &budget, &most) == 2) measure(budget, most);
    else if (strncmp(line, "finish", 6) == 0) {
      release();
      printf("@bench {}\n");
    } else break;
    fflush(stdout);
  }
  return 0;
}
