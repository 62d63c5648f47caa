/*
 * Plain C loops as a yardstick of memory bandwidth: `cc -O3 -march=native`, one thread or several.
 * Takes requests as lines (apps/bench/src/peers/protocol.ts, wordRequest), answers with JSON behind a mark.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inputs.h"

#define MAX_THREADS 64
#define LANES 64

static int threads = 1;
static pthread_barrier_t start_line, finish_line;
static int quitting = 0;

static size_t n = 0, side = 0, cube = 0; /* elements; rows of them as a square, as a cube */
static float *a, *b, *y;
static double partial[MAX_THREADS * 16]; /* a cache line each */
static double total;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static float larger(float x, float y) { return x > y ? x : y; }

static void add(int thread, size_t from, size_t to) {
  const float *restrict p = a, *restrict q = b;
  float *restrict r = y;
  (void)thread;
  for (size_t i = from; i < to; i++) r[i] = p[i] + q[i];
}

static void chain(int thread, size_t from, size_t to) {
  const float *restrict p = a, *restrict q = b;
  float *restrict r = y;
  (void)thread;
  for (size_t i = from; i < to; i++) {
    float t = p[i] * q[i] + p[i];
    r[i] = (t > 0 ? t : 0) * 0.5f - q[i];
  }
}

/* Many accumulators: C may not reorder float additions by itself, and one chain of them would not reach the bandwidth. */
static float sum_of(const float *restrict p, size_t count) {
  float acc[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) acc[j] += p[i + j];
  float s = 0;
  for (int j = 0; j < LANES; j++) s += acc[j];
  for (; i < count; i++) s += p[i];
  return s;
}

static float max_of(const float *restrict p, size_t count) {
  float acc[LANES];
  for (int j = 0; j < LANES; j++) acc[j] = p[0];
  size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) acc[j] = larger(p[i + j], acc[j]);
  float s = acc[0];
  for (int j = 1; j < LANES; j++) s = larger(acc[j], s);
  for (; i < count; i++) s = larger(p[i], s);
  return s;
}

static void sum(int thread, size_t from, size_t to) {
  double s = 0;
  for (size_t i = from; i < to; i += 16384) s += sum_of(a + i, to - i < 16384 ? to - i : 16384);
  partial[thread * 16] = s;
}

/* Rows from .. to of the square. */
static void add_row(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) {
    const float *restrict p = a + i * side, *restrict q = b;
    float *restrict r = y + i * side;
    for (size_t j = 0; j < side; j++) r[j] = p[j] + q[j];
  }
}

static void add_column(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) {
    const float *restrict p = a + i * side;
    float *restrict r = y + i * side, x = b[i];
    for (size_t j = 0; j < side; j++) r[j] = p[j] + x;
  }
}

/* In blocks, so that cache lines of the transposed matrix are used whole. */
static void add_transposed(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i0 = from; i0 < to; i0 += 16)
    for (size_t j0 = 0; j0 < side; j0 += 16)
      for (size_t i = i0; i < i0 + 16 && i < to; i++)
        for (size_t j = j0; j < j0 + 16 && j < side; j++) y[i * side + j] = a[i * side + j] + b[j * side + i];
}

static void add_strided(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) {
    const float *restrict p = a + i * side, *restrict q = b + i * side;
    float *restrict r = y + i * (side / 2);
    for (size_t j = 0; j < side / 2; j++) r[j] = p[2 * j] + q[2 * j];
  }
}

static void add_flipped(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) {
    const float *restrict p = a + i * side, *restrict q = b + (side - 1 - i) * side;
    float *restrict r = y + i * side;
    for (size_t j = 0; j < side; j++) r[j] = p[j] + q[side - 1 - j];
  }
}

static void sum_rows(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) y[i] = sum_of(a + i * side, side);
}

static void max_rows(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) y[i] = max_of(a + i * side, side);
}

/* Columns from .. to of the square. */
static void sum_columns(int thread, size_t from, size_t to) {
  float *restrict r = y;
  (void)thread;
  for (size_t j = from; j < to; j++) r[j] = 0;
  for (size_t i = 0; i < side; i++) {
    const float *restrict p = a + i * side;
    for (size_t j = from; j < to; j++) r[j] += p[j];
  }
}

static void max_columns(int thread, size_t from, size_t to) {
  float *restrict r = y;
  (void)thread;
  for (size_t j = from; j < to; j++) r[j] = a[j];
  for (size_t i = 1; i < side; i++) {
    const float *restrict p = a + i * side;
    for (size_t j = from; j < to; j++) r[j] = larger(p[j], r[j]);
  }
}

/* Slabs from .. to of the cube, summed over the middle axis. */
static void sum_middle(int thread, size_t from, size_t to) {
  (void)thread;
  for (size_t i = from; i < to; i++) {
    float *restrict r = y + i * cube;
    for (size_t k = 0; k < cube; k++) r[k] = 0;
    for (size_t j = 0; j < cube; j++) {
      const float *restrict p = a + (i * cube + j) * cube;
      for (size_t k = 0; k < cube; k++) r[k] += p[k];
    }
  }
}

/* `units` are what threads share: (e)lements, rows of the (s)quare, slabs of the (c)ube. `second`, `out`: elements of b and y. */
struct loop {
  const char *name;
  void (*run)(int, size_t, size_t);
  char units;
  char second; /* '0', (v)ector of a side, (a)ll */
  char out;    /* '0', (v)ector of a side, (c)ube's face, (h)alf, (a)ll */
};

static const struct loop loops[] = {
    {"add", add, 'e', 'a', 'a'},
    {"chain", chain, 'e', 'a', 'a'},
    {"sum", sum, 'e', '0', '0'},
    {"add-row", add_row, 's', 'v', 'a'},
    {"add-column", add_column, 's', 'v', 'a'},
    {"add-transposed", add_transposed, 's', 'a', 'a'},
    {"add-strided", add_strided, 's', 'a', 'h'},
    {"add-flipped", add_flipped, 's', 'a', 'a'},
    {"sum-rows", sum_rows, 's', '0', 'v'},
    {"max-rows", max_rows, 's', '0', 'v'},
    {"sum-columns", sum_columns, 's', '0', 'v'},
    {"max-columns", max_columns, 's', '0', 'v'},
    {"sum-middle", sum_middle, 'c', '0', 'c'},
};
static const struct loop *current = NULL;

static void part(int thread) {
  size_t units = current->units == 'e' ? n : current->units == 's' ? side : cube;
  size_t unit = current->units == 'c' ? 1 : LANES;
  size_t chunk = (units / threads + unit - 1) / unit * unit;
  size_t from = (size_t)thread * chunk, to = from + chunk;
  if (from > units) from = units;
  if (to > units || thread == threads - 1) to = units;
  current->run(thread, from, to);
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
  current = NULL;
}

static size_t root_of(size_t count, int power) {
  for (size_t r = 1;; r++)
    if ((power == 2 ? r * r : r * r * r) >= count) return r;
}

static void prepare(const char *name, size_t count, double warm_ms) {
  release();
  n = count;
  side = root_of(n, 2);
  cube = root_of(n, 3);
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
    if (strcmp(name, loops[i].name) == 0) current = &loops[i];
  if (current == NULL || (current->units == 's' && side * side != n) || (current->units == 'c' && cube * cube * cube != n)) {
    current = NULL;
    printf("@bench {\"unsupported\":\"no loop for %s\"}\n", name);
    return;
  }
  int sums = strncmp(name, "sum", 3) == 0;
  size_t second = current->second == '0' ? 0 : current->second == 'v' ? side : n;
  size_t out = current->out == '0'   ? 0
               : current->out == 'v' ? side
               : current->out == 'c' ? cube * cube
               : current->out == 'h' ? n / 2
                                     : n;
  a = memory(n);
  b = memory(second);
  y = memory(out);
  for (size_t i = 0; i < n; i++) a[i] = sums ? element(3, (uint32_t)i, 0, 1) : element(1, (uint32_t)i, -1, 1);
  for (size_t i = 0; i < second; i++) b[i] = element(2, (uint32_t)i, -1, 1);
  memset(y, 0, out * sizeof(float));
  double best = 1e300, end = now_ms() + warm_ms;
  do {
    double t = now_ms();
    run_once();
    t = now_ms() - t;
    if (t < best) best = t;
  } while (now_ms() < end);
  printf("@bench {\"probe\":[");
  if (out == 0) printf("%.17g", total);
  else
    for (size_t j = 0; j < 8; j++) printf("%s%.9g", j ? "," : "", y[j * (out - 1) / 7]);
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
