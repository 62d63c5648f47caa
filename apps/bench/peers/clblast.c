/*
 * CLBlast's matrix product on the first OpenCL device: opens both libraries when it runs, so that nothing need be installed to
 * compile it. Takes requests as lines (apps/bench/src/peers/protocol.ts, wordRequest), answers with JSON behind a mark.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inputs.h"

typedef void *handle;

static handle context, queue, a, b, y;
static int (*finish)(handle);
static int (*release_memory)(handle);
static int (*read_buffer)(handle, handle, uint32_t, size_t, size_t, void *, uint32_t, void *, void *);
static handle (*create_buffer)(handle, uint64_t, size_t, void *, int *);
static int (*sgemm)(int, int, int, size_t, size_t, size_t, float, handle, size_t, size_t, handle, size_t, size_t, float, handle,
                    size_t, size_t, handle *, handle *);
static size_t m, n, k;
static long count = 1;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int fail(const char *what) {
  printf("@bench {\"error\":\"%s\"}\n", what);
  fflush(stdout);
  return 1;
}

static handle filled(uint32_t seed, size_t size) {
  const uint64_t copy_host = 1 << 5;
  int code;
  float *data = malloc(size * sizeof(float));
  for (size_t i = 0; i < size; i++) data[i] = element(seed, (uint32_t)i, -1, 1);
  handle made = create_buffer(context, copy_host | 1, size * sizeof(float), data, &code);
  free(data);
  return made;
}

/* Nanoseconds of one product, of `times` that are enqueued one after the other; negative if CLBlast refuses. */
static double run(long times) {
  double t = now_ns();
  for (long i = 0; i < times; i++)
    if (sgemm(101, 111, 111, m, n, k, 1, a, 0, k, b, 0, n, 0, y, 0, n, &queue, NULL) != 0) return -1;
  finish(queue);
  return (now_ns() - t) / times;
}

static void forget(void) {
  if (a != NULL) release_memory(a), release_memory(b), release_memory(y);
  a = b = y = NULL;
}

static void prepare(double warm_ms) {
  int code;
  forget();
  a = filled(1, m * k);
  b = filled(2, k * n);
  y = create_buffer(context, 1, m * n * sizeof(float), NULL, &code);
  double best = 1e300, end = now_ns() + warm_ms * 1e6;
  count = 1;
  do {
    double t = run(count);
    if (t < 0) {
      fail("CLBlast refuses the product");
      return;
    }
    if (t < best) best = t;
    count = best < 200000 ? (long)(200000 / best + 0.5) : 1;
  } while (now_ns() < end);
  float *values = malloc(m * n * sizeof(float));
  read_buffer(queue, y, 1, 0, m * n * sizeof(float), values, 0, NULL, NULL);
  printf("@bench {\"probe\":[");
  for (size_t j = 0; j < 8; j++) printf("%s%.9g", j ? "," : "", values[j * (m * n - 1) / 7]);
  printf("],\"count\":%ld,\"opNs\":%.1f}\n", count, best);
  free(values);
}

static void measure(double budget_ms, int most) {
  double end = now_ns() + budget_ms * 1e6;
  printf("@bench {\"samples\":[");
  for (int s = 0; s < most; s++) {
    printf("%s%.1f", s ? "," : "", run(count));
    if (now_ns() >= end) break;
  }
  printf("]}\n");
}

int main(void) {
  char line[256], name[64];
  double budget;
  int most, code;
  uint32_t found = 0;
  handle platform, device;
  handle opencl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL), clblast = dlopen("libclblast.so.1", RTLD_NOW);
  if (opencl == NULL) return fail("no libOpenCL.so.1");
  if (clblast == NULL) return fail("no libclblast.so.1 (Debian: apt-get install libclblast1)");
  int (*platforms)(uint32_t, handle *, uint32_t *) = dlsym(opencl, "clGetPlatformIDs");
  int (*devices)(handle, uint64_t, uint32_t, handle *, uint32_t *) = dlsym(opencl, "clGetDeviceIDs");
  handle (*create_context)(void *, uint32_t, handle *, void *, void *, int *) = dlsym(opencl, "clCreateContext");
  handle (*create_queue)(handle, handle, uint64_t, int *) = dlsym(opencl, "clCreateCommandQueue");
  create_buffer = dlsym(opencl, "clCreateBuffer");
  release_memory = dlsym(opencl, "clReleaseMemObject");
  read_buffer = dlsym(opencl, "clEnqueueReadBuffer");
  finish = dlsym(opencl, "clFinish");
  sgemm = dlsym(clblast, "CLBlastSgemm");
  if (platforms(1, &platform, &found) != 0 || found == 0 || devices(platform, 0xffffffff, 1, &device, NULL) != 0)
    return fail("no OpenCL device");
  context = create_context(NULL, 1, &device, NULL, NULL, &code);
  queue = create_queue(context, device, 0, &code);
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  printf("@bench {\"version\":\"CLBlast\"}\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "prepare %63s %zu %lf %zu %zu", name, &n, &budget, &m, &k) == 5) prepare(budget);
    else if (sscanf(line, "prepare %63s", name) == 1) printf("@bench {\"unsupported\":\"matrix products only\"}\n");
    else if (sscanf(line, "measure %lf %d", &budget, &most) == 2) measure(budget, most);
    else if (strncmp(line, "finish", 6) == 0) {
      forget();
      printf("@bench {}\n");
    } else break;
    fflush(stdout);
  }
  return 0;
}
