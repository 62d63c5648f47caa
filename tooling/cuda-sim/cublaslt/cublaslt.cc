/**
 * A cuBLASLt for tests: the functions that the engine calls, on the simulated driver's streams. It refuses what the library documents as
 * wrong: handles it did not make, matrices that do not fit each other, another way than the one it chose, memory that was freed.
 *
 * POLYGRAD_CUDA_SIM_FAIL plans its failures too: `cublasLtMatmul@1=13`.
 */
#include <cstring>

#include "cublaslt.h"
#include "../fake-library.h"
#include "../ptx/floats.h"

#define FAKE_API extern "C" __attribute__((visibility("default"))) cublasStatus

struct cublasLtContext {};

struct cublasLtMatmulDescOpaque {
  int compute, scale;
  int32_t firstOp = CUBLAS_OP_N, secondOp = CUBLAS_OP_N;
};

struct cublasLtMatrixLayoutOpaque {
  int type;
  uint64_t rows, columns;
  int64_t stride;
  int32_t batch = 1;
  int64_t distance = 0;
};

struct cublasLtMatmulPreferenceOpaque {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

using fake::IsMade;
using fake::Simulator;
using fake::simulator;

template <typename T>
cublasStatus Make(T** to, T* thing) {
  fake::Made(thing);
  *to = thing;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus Unmake(T* thing) {
  if (!fake::Unmade(thing)) return CUBLAS_STATUS_INVALID_VALUE;
  delete thing;
  return CUBLAS_STATUS_SUCCESS;
}

/** Copies an attribute that must have these bytes. */
template <typename T>
cublasStatus Set(T* to, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

constexpr cublasStatus kNotInitialized = 1;
/** Bytes of workspace its one way needs. */
constexpr size_t kWorkspace = 1024;

/** A product that was checked; columns first, as the library counts. */
struct Task {
  cublasLtMatmulDescOpaque desc;
  cublasLtMatrixLayoutOpaque first, second, result;
  CUdeviceptr a, b, d, workspace;
  CUstream stream;
};

size_t ElementBytes(int type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

uint64_t RowsOf(const cublasLtMatrixLayoutOpaque& m, int32_t op) { return op == CUBLAS_OP_N ? m.rows : m.columns; }
uint64_t ColumnsOf(const cublasLtMatrixLayoutOpaque& m, int32_t op) { return op == CUBLAS_OP_N ? m.columns : m.rows; }

/** Bytes up to the last element. */
size_t Reach(const cublasLtMatrixLayoutOpaque& m) {
  const uint64_t elements = static_cast<uint64_t>(m.batch - 1) * static_cast<uint64_t>(m.distance) +
                            (m.columns - 1) * static_cast<uint64_t>(m.stride) + m.rows;
  return elements * ElementBytes(m.type);
}

/** 0 where the matrices fit each other and the description. */
cublasStatus Fit(const cublasLtMatmulDescOpaque& desc, const cublasLtMatrixLayoutOpaque& a, const cublasLtMatrixLayoutOpaque& b,
                 const cublasLtMatrixLayoutOpaque& d) {
  const bool isDouble = desc.compute == CUBLAS_COMPUTE_64F;
  if (!isDouble && desc.compute != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const int type = isDouble ? CUDA_R_64F : CUDA_R_32F;
  if (desc.scale != type || a.type != b.type || (d.type != a.type && d.type != CUDA_R_32F)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((a.type == CUDA_R_64F) != isDouble) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const auto* m : {&a, &b, &d}) {
    if (m->rows == 0 || m->columns == 0 || m->stride < static_cast<int64_t>(m->rows) || m->batch != d.batch || m->batch < 1)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool fits = RowsOf(a, desc.firstOp) == d.rows && ColumnsOf(b, desc.secondOp) == d.columns &&
                    ColumnsOf(a, desc.firstOp) == RowsOf(b, desc.secondOp);
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/** What a way was chosen for. */
uint64_t MarkOf(const cublasLtMatmulDescOpaque& desc, const cublasLtMatrixLayoutOpaque& a, const cublasLtMatrixLayoutOpaque& b,
                const cublasLtMatrixLayoutOpaque& d) {
  uint64_t mark = 1469598103934665603u;
  const auto mix = [&](uint64_t value) { mark = (mark ^ value) * 1099511628211u; };
  for (const auto* m : {&a, &b, &d}) {
    mix(static_cast<uint64_t>(m->type));
    mix(m->rows);
    mix(m->columns);
    mix(static_cast<uint64_t>(m->stride));
    mix(static_cast<uint64_t>(m->batch));
    mix(static_cast<uint64_t>(m->distance));
  }
  mix(static_cast<uint64_t>(desc.firstOp * 2 + desc.secondOp));
  return mark;
}

double Get(int type, CUdeviceptr from, uint64_t at) {
  if (type == CUDA_R_64F) return reinterpret_cast<const double*>(from)[at];
  if (type == CUDA_R_32F) return reinterpret_cast<const float*>(from)[at];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(from)[at];
  return type == CUDA_R_16F ? ptx::half_to_float(bits) : ptx::bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

void Put(int type, CUdeviceptr to, uint64_t at, double value) {
  if (type == CUDA_R_64F) reinterpret_cast<double*>(to)[at] = value;
  else if (type == CUDA_R_32F) reinterpret_cast<float*>(to)[at] = static_cast<float>(value);
  else reinterpret_cast<uint16_t*>(to)[at] = type == CUDA_R_16F ? ptx::double_to_half(value) : ptx::float_to_bfloat(static_cast<float>(value));
}

/** Sums are of T: float32 for all but float64. */
template <typename T>
void Multiply(const Task& task) {
  const uint64_t depth = ColumnsOf(task.first, task.desc.firstOp);
  const auto at = [](const cublasLtMatrixLayoutOpaque& m, int32_t op, uint64_t z, uint64_t i, uint64_t j) {
    const uint64_t row = op == CUBLAS_OP_N ? i : j, column = op == CUBLAS_OP_N ? j : i;
    return z * static_cast<uint64_t>(m.distance) + column * static_cast<uint64_t>(m.stride) + row;
  };
  for (uint64_t z = 0; z < static_cast<uint64_t>(task.result.batch); z++)
    for (uint64_t j = 0; j < task.result.columns; j++)
      for (uint64_t i = 0; i < task.result.rows; i++) {
        T sum = 0;
        for (uint64_t s = 0; s < depth; s++)
          sum += static_cast<T>(Get(task.first.type, task.a, at(task.first, task.desc.firstOp, z, i, s))) *
                 static_cast<T>(Get(task.second.type, task.b, at(task.second, task.desc.secondOp, z, s, j)));
        Put(task.result.type, task.d, at(task.result, CUBLAS_OP_N, z, i, j), sum);
      }
}

/** On the stream's thread; 700 where memory is not there by then. */
int Run(void* data) {
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  const Simulator& sim = simulator();
  if (sim.holds(task->stream, task->a, Reach(task->first)) == 0 || sim.holds(task->stream, task->b, Reach(task->second)) == 0 ||
      sim.holds(task->stream, task->d, Reach(task->result)) == 0 || sim.holds(task->stream, task->workspace, kWorkspace) == 0)
    return 700;
  if (task->desc.compute == CUBLAS_COMPUTE_64F) Multiply<double>(*task);
  else Multiply<float>(*task);
  return 0;
}

}  // namespace

/** Begins a call: the simulated driver is there, and no failure is planned. */
#define FAKE_CALL(name)                                                 \
  if (simulator().work == nullptr) return kNotInitialized;              \
  if (const cublasStatus planned = simulator().planned(name)) return planned

FAKE_API cublasLtCreate(cublasLtHandle* handle) {
  FAKE_CALL("cublasLtCreate");
  return Make(handle, new cublasLtContext);
}
FAKE_API cublasLtDestroy(cublasLtHandle handle) { return Unmake(handle); }

FAKE_API cublasLtMatmulDescCreate(cublasLtMatmulDesc* desc, int compute, int scale) {
  FAKE_CALL("cublasLtMatmulDescCreate");
  return Make(desc, new cublasLtMatmulDescOpaque{compute, scale});
}
FAKE_API cublasLtMatmulDescDestroy(cublasLtMatmulDesc desc) { return Unmake(desc); }
FAKE_API cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc desc, int what, const void* value, size_t bytes) {
  FAKE_CALL("cublasLtMatmulDescSetAttribute");
  if (!IsMade(desc)) return CUBLAS_STATUS_INVALID_VALUE;
  if (what == CUBLASLT_MATMUL_DESC_TRANSA) return Set(&desc->firstOp, value, bytes);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB) return Set(&desc->secondOp, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

FAKE_API cublasLtMatrixLayoutCreate(cublasLtMatrixLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  FAKE_CALL("cublasLtMatrixLayoutCreate");
  return Make(layout, new cublasLtMatrixLayoutOpaque{type, rows, columns, stride});
}
FAKE_API cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout layout) { return Unmake(layout); }
FAKE_API cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout layout, int what, const void* value, size_t bytes) {
  FAKE_CALL("cublasLtMatrixLayoutSetAttribute");
  if (!IsMade(layout)) return CUBLAS_STATUS_INVALID_VALUE;
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return Set(&layout->batch, value, bytes);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return Set(&layout->distance, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

FAKE_API cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference* preference) {
  FAKE_CALL("cublasLtMatmulPreferenceCreate");
  return Make(preference, new cublasLtMatmulPreferenceOpaque);
}
FAKE_API cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference preference) { return Unmake(preference); }
FAKE_API cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference preference, int what, const void* value, size_t bytes) {
  FAKE_CALL("cublasLtMatmulPreferenceSetAttribute");
  if (!IsMade(preference)) return CUBLAS_STATUS_INVALID_VALUE;
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return Set(&preference->workspace, value, bytes);
  if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return Set(&preference->reductions, value, bytes);
  const int matrix = what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (matrix < 0 || matrix > 3) return CUBLAS_STATUS_INVALID_VALUE;
  return Set(&preference->alignment[matrix], value, bytes);
}

FAKE_API cublasLtMatmulAlgoGetHeuristic(cublasLtHandle handle, cublasLtMatmulDesc desc, cublasLtMatrixLayout a,
                                        cublasLtMatrixLayout b, cublasLtMatrixLayout c, cublasLtMatrixLayout d,
                                        cublasLtMatmulPreference preference, int wanted, cublasLtMatmulHeuristicResult* results,
                                        int* count) {
  FAKE_CALL("cublasLtMatmulAlgoGetHeuristic");
  for (const void* thing : {static_cast<const void*>(handle), static_cast<const void*>(desc), static_cast<const void*>(a),
                            static_cast<const void*>(b), static_cast<const void*>(c), static_cast<const void*>(d),
                            static_cast<const void*>(preference)})
    if (!IsMade(thing)) return CUBLAS_STATUS_INVALID_VALUE;
  if (wanted < 1 || results == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  if (const cublasStatus status = Fit(*desc, *a, *b, *d)) return status;
  // Ways that add in any order are not for engines whose results never depend on threads.
  if ((preference->reductions & 1) != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  // Nor are those that keep parts of sums in 16 bits.
  if ((preference->reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) != 0 && ElementBytes(d->type) == 2) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (preference->workspace < kWorkspace) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].algo.data[0] = MarkOf(*desc, *a, *b, *d);
  for (int i = 0; i < 4; i++) results[0].algo.data[1 + i] = preference->alignment[i];
  results[0].workspaceSize = kWorkspace;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasLtMatmul(cublasLtHandle handle, cublasLtMatmulDesc desc, const void* alpha, const void* a,
                        cublasLtMatrixLayout first, const void* b, cublasLtMatrixLayout second, const void* beta, const void* c,
                        cublasLtMatrixLayout before, void* d, cublasLtMatrixLayout result, const cublasLtMatmulAlgo* algo,
                        void* workspace, size_t workspaceBytes, CUstream stream) {
  FAKE_CALL("cublasLtMatmul");
  for (const void* thing : {static_cast<const void*>(handle), static_cast<const void*>(desc), static_cast<const void*>(first),
                            static_cast<const void*>(second), static_cast<const void*>(before), static_cast<const void*>(result)})
    if (!IsMade(thing)) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus status = Fit(*desc, *first, *second, *result)) return status;
  if (algo == nullptr || algo->data[0] != MarkOf(*desc, *first, *second, *result) || workspaceBytes < kWorkspace || before != result)
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* matrices[] = {a, b, c, d};
  for (int i = 0; i < 4; i++)
    if (matrices[i] == nullptr || reinterpret_cast<uint64_t>(matrices[i]) % algo->data[1 + i] != 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (c != d || workspace == nullptr || reinterpret_cast<uint64_t>(workspace) % 16 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const bool isDouble = desc->compute == CUBLAS_COMPUTE_64F;
  const double factor = isDouble ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double kept = isDouble ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (factor != 1 || kept != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto at = [](const void* pointer) { return static_cast<CUdeviceptr>(reinterpret_cast<uint64_t>(pointer)); };
  auto* task = new Task{*desc, *first, *second, *result, at(a), at(b), at(d), at(workspace), stream};
  const int code = simulator().work(stream, Run, task);
  if (code == 0) return CUBLAS_STATUS_SUCCESS;
  delete task;
  return code;
}
