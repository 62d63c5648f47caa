/**
 * A cuDNN for tests: the functions that the engine calls, on the simulated driver's streams, in plain loops. It refuses what the library documents as wrong:
 * handles it did not make, tensors that do not fit each other, another algorithm than one it named, memory that was freed. It is stricter where
 * the engine must be: float32 with TF32 unless that is the setting of the process, and algorithms that add in any order, are refused.
 *
 * POLYGRAD_CUDA_SIM_FAIL plans its failures: `cudnnConvolutionForward@1=8`. POLYGRAD_CUDNN_SIM is `name=value` by semicolons: `version` (90100);
 * `tf32` (1: it is expected); `algorithms` (0: none that is deterministic); `workspace` (bytes its algorithms want, 1024).
 */
#include "cudnn.h"

#include <cstring>
#include <memory>
#include <sstream>

#include "../fake-library.h"
#include "../ptx/floats.h"

#define FAKE_API extern "C" __attribute__((visibility("default"))) cudnnStatus

struct cudnnContext {
  CUstream stream = nullptr;
};

struct cudnnTensorStruct {
  int type = -1;
  int extents[4] = {0, 0, 0, 0};
  int strides[4] = {0, 0, 0, 0};
};

struct cudnnFilterStruct {
  int type = -1;
  int extents[4] = {0, 0, 0, 0};
};

struct cudnnConvolutionStruct {
  int padding[2] = {0, 0};
  int stride[2] = {0, 0};
  int dilation[2] = {0, 0};
  int mode = -1, compute = -1, groups = 1, math = CUDNN_DEFAULT_MATH;
};

namespace {

using fake::IsMade;
using fake::simulator;

constexpr cudnnStatus kNotInitialized = 1;

uint64_t Setting(const std::string& name, uint64_t otherwise) {
  const char* text = std::getenv("POLYGRAD_CUDNN_SIM");
  std::stringstream stream(text == nullptr ? "" : text);
  for (std::string part; std::getline(stream, part, ';');)
    if (part.rfind(name + "=", 0) == 0) return std::strtoull(part.c_str() + name.size() + 1, nullptr, 10);
  return otherwise;
}

template <typename T>
cudnnStatus Make(T** to) {
  if (to == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *to = new T;
  fake::Made(*to);
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus Unmake(T* thing) {
  if (!fake::Unmade(thing)) return CUDNN_STATUS_BAD_PARAM;
  delete thing;
  return CUDNN_STATUS_SUCCESS;
}

size_t ElementBytes(int type) { return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2; }

bool IsType(int type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

/** Bytes up to the last element. */
size_t Reach(const cudnnTensorStruct& t) {
  size_t last = 0;
  for (int i = 0; i < 4; i++) last += static_cast<size_t>(t.extents[i] - 1) * static_cast<size_t>(t.strides[i]);
  return (last + 1) * ElementBytes(t.type);
}

size_t Reach(const cudnnFilterStruct& f) {
  size_t elements = 1;
  for (const int extent : f.extents) elements *= static_cast<size_t>(extent);
  return elements * ElementBytes(f.type);
}

/** 0 where tensors, kernel and description fit each other. */
cudnnStatus Fit(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& c, const cudnnTensorStruct& y) {
  if (!IsType(x.type) || w.type != x.type || y.type != x.type) return CUDNN_STATUS_BAD_PARAM;
  if (c.compute != (x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (x.type == CUDNN_DATA_FLOAT && c.math != (Setting("tf32", 0) == 1 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (x.extents[0] != y.extents[0] || w.extents[1] * c.groups != x.extents[1] || w.extents[0] != y.extents[1]) return CUDNN_STATUS_BAD_PARAM;
  if (w.extents[0] % c.groups != 0) return CUDNN_STATUS_BAD_PARAM;
  for (int i = 0; i < 2; i++) {
    const int window = c.dilation[i] * (w.extents[2 + i] - 1) + 1;
    if ((x.extents[2 + i] + 2 * c.padding[i] - window) / c.stride[i] + 1 != y.extents[2 + i]) return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

double Get(int type, CUdeviceptr from, size_t at) {
  if (type == CUDNN_DATA_DOUBLE) return reinterpret_cast<const double*>(from)[at];
  if (type == CUDNN_DATA_FLOAT) return reinterpret_cast<const float*>(from)[at];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(from)[at];
  return type == CUDNN_DATA_HALF ? ptx::half_to_float(bits) : ptx::bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

void Put(int type, CUdeviceptr to, size_t at, double value) {
  if (type == CUDNN_DATA_DOUBLE) reinterpret_cast<double*>(to)[at] = value;
  else if (type == CUDNN_DATA_FLOAT) reinterpret_cast<float*>(to)[at] = static_cast<float>(value);
  else reinterpret_cast<uint16_t*>(to)[at] = type == CUDNN_DATA_HALF ? ptx::double_to_half(value) : ptx::float_to_bfloat(static_cast<float>(value));
}

/** A convolution that was checked. */
struct Task {
  Pass pass;
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct c;
  CUdeviceptr xAt, wAt, yAt, workspace;
  size_t workspaceBytes;
  CUstream stream;
};

/** Sums of T, float32 for all but float64, in the order of these loops: what goes into an element of the result goes there in order. */
template <typename T>
void Convolve(const Task& t) {
  const auto tensorAt = [](const cudnnTensorStruct& m, int n, int c, int i, int j) {
    return static_cast<size_t>(n) * m.strides[0] + static_cast<size_t>(c) * m.strides[1] + static_cast<size_t>(i) * m.strides[2] +
           static_cast<size_t>(j) * m.strides[3];
  };
  const auto kernelAt = [&](int o, int c, int r, int s) {
    if (t.c.mode == CUDNN_CONVOLUTION) r = t.w.extents[2] - 1 - r, s = t.w.extents[3] - 1 - s;
    return ((static_cast<size_t>(o) * t.w.extents[1] + c) * t.w.extents[2] + r) * t.w.extents[3] + s;
  };
  const int features = t.w.extents[0] / t.c.groups, channels = t.w.extents[1];
  std::map<size_t, T> sums;
  const auto zeros = [&](const cudnnTensorStruct& m) {
    for (int n = 0; n < m.extents[0]; n++)
      for (int c = 0; c < m.extents[1]; c++)
        for (int i = 0; i < m.extents[2]; i++)
          for (int j = 0; j < m.extents[3]; j++) sums[tensorAt(m, n, c, i, j)] = 0;
  };
  if (t.pass == Pass::forward) zeros(t.y);
  else if (t.pass == Pass::input) zeros(t.x);
  else
    for (size_t at = 0; at < Reach(t.w) / ElementBytes(t.w.type); at++) sums[at] = 0;
  for (int n = 0; n < t.x.extents[0]; n++)
    for (int o = 0; o < t.w.extents[0]; o++)
      for (int c = 0; c < channels; c++)
        for (int i = 0; i < t.y.extents[2]; i++)
          for (int j = 0; j < t.y.extents[3]; j++)
            for (int r = 0; r < t.w.extents[2]; r++)
              for (int s = 0; s < t.w.extents[3]; s++) {
                const int row = i * t.c.stride[0] - t.c.padding[0] + r * t.c.dilation[0];
                const int column = j * t.c.stride[1] - t.c.padding[1] + s * t.c.dilation[1];
                if (row < 0 || row >= t.x.extents[2] || column < 0 || column >= t.x.extents[3]) continue;
                const size_t x = tensorAt(t.x, n, o / features * channels + c, row, column), w = kernelAt(o, c, r, s),
                             y = tensorAt(t.y, n, o, i, j);
                const auto of = [&](CUdeviceptr from, size_t at) { return static_cast<T>(Get(t.x.type, from, at)); };
                if (t.pass == Pass::forward) sums[y] += of(t.xAt, x) * of(t.wAt, w);
                else if (t.pass == Pass::input) sums[x] += of(t.yAt, y) * of(t.wAt, w);
                else sums[w] += of(t.xAt, x) * of(t.yAt, y);
              }
  const CUdeviceptr to = t.pass == Pass::forward ? t.yAt : t.pass == Pass::input ? t.xAt : t.wAt;
  for (const auto& [at, sum] : sums) Put(t.x.type, to, at, sum);
}

/** On the stream's thread; 700 where memory is not there by then. */
int Run(void* data) {
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  const auto holds = [&](CUdeviceptr at, size_t bytes) { return simulator().holds(task->stream, at, bytes) != 0; };
  if (!holds(task->xAt, Reach(task->x)) || !holds(task->wAt, Reach(task->w)) || !holds(task->yAt, Reach(task->y))) return 700;
  if (task->workspaceBytes > 0 && !holds(task->workspace, task->workspaceBytes)) return 700;
  if (task->x.type == CUDNN_DATA_DOUBLE) Convolve<double>(*task);
  else Convolve<float>(*task);
  return 0;
}

/** Algorithms in the order in which the library would propose them, the ones that must not be taken first. */
cudnnStatus Propose(cudnnHandle handle, const cudnnTensorStruct* x, const cudnnFilterStruct* w, const cudnnConvolutionStruct* c,
                    const cudnnTensorStruct* y, Pass pass, int wanted, int* count, cudnnAlgoPerf* found) {
  for (const void* thing : {static_cast<const void*>(handle), static_cast<const void*>(x), static_cast<const void*>(w),
                            static_cast<const void*>(c), static_cast<const void*>(y)})
    if (!IsMade(thing)) return CUDNN_STATUS_BAD_PARAM;
  if (wanted < 1 || count == nullptr || found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *count = 0;
  if (const cudnnStatus status = Fit(*x, *w, *c, *y)) return status;
  const size_t workspace = Setting("workspace", 1024);
  // Winograd; tiles of matrices; atomic additions; what is not supported; too much memory; in order.
  const int inOrder = 1, winograd = pass == Pass::forward ? 6 : 4;
  const cudnnAlgoPerf all[] = {{winograd, 0, 1, 0, CUDNN_DETERMINISTIC, c->math, {}},
                               {inOrder, 0, 1, workspace + 1, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH, {}},
                               {0, 0, 2, 0, 0, c->math, {}},
                               {2, CUDNN_STATUS_NOT_SUPPORTED, -1, 0, CUDNN_DETERMINISTIC, c->math, {}},
                               {inOrder, 0, 3, size_t{8} << 30, CUDNN_DETERMINISTIC, c->math, {}},
                               {inOrder, 0, 4, workspace, CUDNN_DETERMINISTIC, c->math, {}}};
  const int known = Setting("algorithms", 1) == 0 ? 5 : 6;
  for (int i = 0; i < known && i < wanted; i++) found[(*count)++] = all[i];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus Enqueue(cudnnHandle handle, Pass pass, const void* alpha, const cudnnTensorStruct* x, const void* xAt, const cudnnFilterStruct* w,
                    const void* wAt, const cudnnConvolutionStruct* c, const cudnnTensorStruct* y, const void* yAt, int algo, void* workspace,
                    size_t bytes, const void* beta) {
  for (const void* thing : {static_cast<const void*>(handle), static_cast<const void*>(x), static_cast<const void*>(w),
                            static_cast<const void*>(c), static_cast<const void*>(y)})
    if (!IsMade(thing)) return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus status = Fit(*x, *w, *c, *y)) return status;
  const size_t needed = Setting("workspace", 1024);
  if (algo != 1 || bytes < needed || (x->type == CUDNN_DATA_FLOAT && c->math == CUDNN_FMA_MATH && bytes != needed) || (needed > 0 && workspace == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  for (const void* at : {xAt, wAt, yAt})
    if (at == nullptr || reinterpret_cast<uint64_t>(at) % ElementBytes(x->type) != 0) return CUDNN_STATUS_BAD_PARAM;
  const bool isDouble = x->type == CUDNN_DATA_DOUBLE;
  const double factor = isDouble ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double kept = isDouble ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (factor != 1 || kept != 0) return CUDNN_STATUS_NOT_SUPPORTED;
  const auto place = [](const void* pointer) { return static_cast<CUdeviceptr>(reinterpret_cast<uint64_t>(pointer)); };
  auto* task = new Task{pass, *x, *y, *w, *c, place(xAt), place(wAt), place(yAt), place(workspace), bytes, handle->stream};
  const int code = simulator().work(handle->stream, Run, task);
  if (code == 0) return CUDNN_STATUS_SUCCESS;
  delete task;
  return code;
}

}  // namespace

/** Begins a call: the simulated driver is there, and no failure is planned. */
#define FAKE_CALL(name)                                    \
  if (simulator().work == nullptr) return kNotInitialized; \
  if (const cudnnStatus planned = simulator().planned(name)) return planned

extern "C" __attribute__((visibility("default"))) size_t cudnnGetVersion() { return Setting("version", 90100); }

FAKE_API cudnnCreate(cudnnHandle* handle) {
  FAKE_CALL("cudnnCreate");
  return Make(handle);
}
FAKE_API cudnnDestroy(cudnnHandle handle) { return Unmake(handle); }
FAKE_API cudnnSetStream(cudnnHandle handle, CUstream stream) {
  FAKE_CALL("cudnnSetStream");
  if (!IsMade(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnCreateTensorDescriptor(cudnnTensorDescriptor* made) {
  FAKE_CALL("cudnnCreateTensorDescriptor");
  return Make(made);
}
FAKE_API cudnnDestroyTensorDescriptor(cudnnTensorDescriptor tensor) { return Unmake(tensor); }
FAKE_API cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor tensor, int type, int n, int c, int h, int w, int nStride, int cStride, int hStride,
                                      int wStride) {
  FAKE_CALL("cudnnSetTensor4dDescriptorEx");
  if (!IsMade(tensor) || !IsType(type)) return CUDNN_STATUS_BAD_PARAM;
  for (const int number : {n, c, h, w, nStride, cStride, hStride, wStride})
    if (number < 1) return CUDNN_STATUS_BAD_PARAM;
  *tensor = {type, {n, c, h, w}, {nStride, cStride, hStride, wStride}};
  return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnCreateFilterDescriptor(cudnnFilterDescriptor* made) {
  FAKE_CALL("cudnnCreateFilterDescriptor");
  return Make(made);
}
FAKE_API cudnnDestroyFilterDescriptor(cudnnFilterDescriptor filter) { return Unmake(filter); }
FAKE_API cudnnSetFilter4dDescriptor(cudnnFilterDescriptor filter, int type, int format, int k, int c, int h, int w) {
  FAKE_CALL("cudnnSetFilter4dDescriptor");
  if (!IsMade(filter) || !IsType(type) || format != CUDNN_TENSOR_NCHW) return CUDNN_STATUS_BAD_PARAM;
  for (const int number : {k, c, h, w})
    if (number < 1) return CUDNN_STATUS_BAD_PARAM;
  *filter = {type, {k, c, h, w}};
  return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor* made) {
  FAKE_CALL("cudnnCreateConvolutionDescriptor");
  return Make(made);
}
FAKE_API cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor convolution) { return Unmake(convolution); }
FAKE_API cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor convolution, int padH, int padW, int u, int v, int dilationH, int dilationW,
                                         int mode, int compute) {
  FAKE_CALL("cudnnSetConvolution2dDescriptor");
  if (!IsMade(convolution) || padH < 0 || padW < 0 || (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION)) return CUDNN_STATUS_BAD_PARAM;
  for (const int number : {u, v, dilationH, dilationW})
    if (number < 1) return CUDNN_STATUS_BAD_PARAM;
  *convolution = {{padH, padW}, {u, v}, {dilationH, dilationW}, mode, compute};
  return CUDNN_STATUS_SUCCESS;
}
FAKE_API cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor convolution, int groups) {
  FAKE_CALL("cudnnSetConvolutionGroupCount");
  if (!IsMade(convolution) || groups < 1) return CUDNN_STATUS_BAD_PARAM;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
FAKE_API cudnnSetConvolutionMathType(cudnnConvolutionDescriptor convolution, int math) {
  FAKE_CALL("cudnnSetConvolutionMathType");
  if (!IsMade(convolution) || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

FAKE_API cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle handle, cudnnTensorDescriptor x, cudnnFilterDescriptor w,
                                                cudnnConvolutionDescriptor c, cudnnTensorDescriptor y, int wanted, int* count,
                                                cudnnAlgoPerf* found) {
  FAKE_CALL("cudnnGetConvolutionForwardAlgorithm_v7");
  return Propose(handle, x, w, c, y, Pass::forward, wanted, count, found);
}
FAKE_API cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle handle, cudnnFilterDescriptor w, cudnnTensorDescriptor y,
                                                     cudnnConvolutionDescriptor c, cudnnTensorDescriptor x, int wanted, int* count,
                                                     cudnnAlgoPerf* found) {
  FAKE_CALL("cudnnGetConvolutionBackwardDataAlgorithm_v7");
  return Propose(handle, x, w, c, y, Pass::input, wanted, count, found);
}
FAKE_API cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle handle, cudnnTensorDescriptor x, cudnnTensorDescriptor y,
                                                       cudnnConvolutionDescriptor c, cudnnFilterDescriptor w, int wanted, int* count,
                                                       cudnnAlgoPerf* found) {
  FAKE_CALL("cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  return Propose(handle, x, w, c, y, Pass::kernel, wanted, count, found);
}

FAKE_API cudnnConvolutionForward(cudnnHandle handle, const void* alpha, cudnnTensorDescriptor x, const void* xAt, cudnnFilterDescriptor w,
                                 const void* wAt, cudnnConvolutionDescriptor c, int algo, void* workspace, size_t bytes, const void* beta,
                                 cudnnTensorDescriptor y, void* yAt) {
  FAKE_CALL("cudnnConvolutionForward");
  return Enqueue(handle, Pass::forward, alpha, x, xAt, w, wAt, c, y, yAt, algo, workspace, bytes, beta);
}
FAKE_API cudnnConvolutionBackwardData(cudnnHandle handle, const void* alpha, cudnnFilterDescriptor w, const void* wAt, cudnnTensorDescriptor y,
                                      const void* yAt, cudnnConvolutionDescriptor c, int algo, void* workspace, size_t bytes,
                                      const void* beta, cudnnTensorDescriptor x, void* xAt) {
  FAKE_CALL("cudnnConvolutionBackwardData");
  return Enqueue(handle, Pass::input, alpha, x, xAt, w, wAt, c, y, yAt, algo, workspace, bytes, beta);
}
FAKE_API cudnnConvolutionBackwardFilter(cudnnHandle handle, const void* alpha, cudnnTensorDescriptor x, const void* xAt, cudnnTensorDescriptor y,
                                        const void* yAt, cudnnConvolutionDescriptor c, int algo, void* workspace, size_t bytes,
                                        const void* beta, cudnnFilterDescriptor w, void* wAt) {
  FAKE_CALL("cudnnConvolutionBackwardFilter");
  return Enqueue(handle, Pass::kernel, alpha, x, xAt, w, wAt, c, y, yAt, algo, workspace, bytes, beta);
}
