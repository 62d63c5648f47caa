/*
 * Sorting, running results and indexing by the C++ standard library and plain loops: `g++ -O3 -march=native`, one thread.
 * Takes requests as lines (apps/bench/src/peers/protocol.ts, wordRequest), answers with JSON behind a mark.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "inputs.h"

using floats = std::vector<float>;

static size_t n, side;
static floats a, b, y;
static std::vector<int32_t> at, order;

static double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void running_sum(const float *x, float *to, size_t count) {
  float s = 0;
  for (size_t i = 0; i < count; i++) to[i] = s += x[i];
}

/* NaN stays, as in the library. */
static void running_max(const float *x, float *to, size_t count) {
  float s = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    s = x[i] > s || x[i] != x[i] ? x[i] : s;
    to[i] = s;
  }
}

static void sorted(const float *x, float *to, size_t count) {
  std::copy(x, x + count, to);
  std::sort(to, to + count);
}

/* Values alone; the library gives positions too. */
static void greatest(const float *x, float *to, size_t count, size_t k) {
  std::partial_sort_copy(x, x + count, to, to + k, std::greater<float>());
}

template <class F> static void rows(F f, size_t out) {
  for (size_t r = 0; r < side; r++) f(&a[r * side], &y[r * out], side);
}

struct work {
  const char *name;
  char out; /* (a)ll, (r)ows of 10, (k) 10, (m) 1000 */
  void (*run)();
};

static const work works[] = {
    {"cum-sum", 'a', [] { running_sum(&a[0], &y[0], n); }},
    {"cum-sum-rows", 'a', [] { rows(running_sum, side); }},
    {"cum-sum-columns", 'a',
     [] {
       std::copy(a.begin(), a.begin() + side, y.begin());
       for (size_t i = side; i < n; i++) y[i] = y[i - side] + a[i];
     }},
    {"cum-max", 'a', [] { running_max(&a[0], &y[0], n); }},
    {"cum-max-rows", 'a', [] { rows(running_max, side); }},
    {"sort", 'a', [] { sorted(&a[0], &y[0], n); }},
    {"sort-rows", 'a', [] { rows(sorted, side); }},
    {"arg-sort", 'a',
     [] {
       std::iota(order.begin(), order.end(), 0);
       std::stable_sort(order.begin(), order.end(), [](int32_t i, int32_t j) { return a[i] < a[j]; });
       for (size_t i = 0; i < n; i++) y[i] = (float)order[i];
     }},
    {"top-10", 'k', [] { greatest(&a[0], &y[0], n, 10); }},
    {"top-1000", 'm', [] { greatest(&a[0], &y[0], n, 1000); }},
    {"top-10-rows", 'r', [] { rows([](const float *x, float *to, size_t c) { greatest(x, to, c, 10); }, 10); }},
    {"scatter", 'a',
     [] {
       std::copy(a.begin(), a.end(), y.begin());
       for (size_t i = 0; i < n; i++) y[at[i]] = b[i];
     }},
    {"scatter-add", 'a',
     [] {
       std::copy(a.begin(), a.end(), y.begin());
       for (size_t i = 0; i < n; i++) y[at[i]] += b[i];
     }},
    {"take", 'a',
     [] {
       for (size_t i = 0; i < n; i++) y[i] = a[at[i]];
     }},
};
static const work *current = nullptr;

static void prepare(const char *name, size_t count, double warm_ms) {
  n = count;
  side = (size_t)std::llround(std::sqrt((double)n));
  current = nullptr;
  for (const work &w : works)
    if (std::strcmp(w.name, name) == 0) current = &w;
  if (current == nullptr || side * side != n) {
    current = nullptr;
    std::printf("@bench {\"unsupported\":\"no loop for %s\"}\n", name);
    return;
  }
  a.resize(n);
  b.resize(n);
  at.resize(n);
  order.resize(n);
  for (size_t i = 0; i < n; i++) {
    a[i] = element(1, (uint32_t)i, -1, 1);
    b[i] = element(2, (uint32_t)i, -1, 1);
    at[i] = (int32_t)element(3, (uint32_t)i, 0, (double)n);
    if (at[i] >= (int32_t)n) at[i] = (int32_t)n - 1;
  }
  size_t out = current->out == 'k' ? 10 : current->out == 'm' ? 1000 : current->out == 'r' ? side * 10 : n;
  y.assign(out, 0);
  double best = 1e300, end = now_ms() + warm_ms;
  do {
    double t = now_ms();
    current->run();
    best = std::min(best, now_ms() - t);
  } while (now_ms() < end);
  std::printf("@bench {\"probe\":[");
  for (size_t j = 0; j < 8; j++) std::printf("%s%.9g", j ? "," : "", y[j * (out - 1) / 7]);
  std::printf("],\"count\":1,\"opNs\":%.1f}\n", best * 1e6);
}

static void measure(double budget_ms, int most) {
  double end = now_ms() + budget_ms;
  std::printf("@bench {\"samples\":[");
  for (int s = 0; s < most; s++) {
    double t = now_ms();
    current->run();
    t = now_ms() - t;
    std::printf("%s%.1f", s ? "," : "", t * 1e6);
    if (now_ms() >= end) break;
  }
  std::printf("]}\n");
}

int main() {
  char line[256], name[64];
  size_t count;
  double budget;
  int most;
  std::printf("@bench {\"version\":\"%s\"}\n", __VERSION__);
  std::fflush(stdout);
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::sscanf(line, "prepare %63s %zu %lf", name, &count, &budget) == 3) prepare(name, count, budget);
    else if (std::sscanf(line, "measure %lf %d", &budget, &most) == 2) measure(budget, most);
    else if (std::strncmp(line, "finish", 6) == 0) std::printf("@bench {}\n");
    else break;
    std::fflush(stdout);
  }
  return 0;
}
