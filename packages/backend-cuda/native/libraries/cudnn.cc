#include "cudnn.h"

#include "shared-object.h"

namespace {

struct CudnnTable {
#define CUDNN_MEMBER(name, symbol, arguments) cudnnStatus(CU_CALL* name) arguments = nullptr;
  CUDNN_FUNCTIONS(CUDNN_MEMBER)
#undef CUDNN_MEMBER
};

OpenOnce cudnn;
CudnnTable dnn;

/** Algorithms the library is asked for. */
constexpr int kMostAlgorithms = 16;
/** The first version that computes float32 without TF32 where it is told to. */
constexpr size_t kLeastVersion = 8000;

void CheckCudnn(cudnnStatus status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw NativeError{status, call};
}

int DataTypeOf(Element element) {
  switch (element) {
    case Element::float64: return CUDNN_DATA_DOUBLE;
    case Element::float16: return CUDNN_DATA_HALF;
    case Element::bfloat16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

int MathOf(Element element, bool tf32) {
  switch (element) {
    case Element::float64: return CUDNN_DEFAULT_MATH;
    case Element::float32: return tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    default: return CUDNN_TENSOR_OP_MATH;
  }
}

/** True for algorithms whose sums are as exact as loops, and the same every time. */
bool IsInOrder(Pass pass, int algo) {
  switch (pass) {
    case Pass::forward:
      return algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM || algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
             algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
    case Pass::input: return algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
    default: return algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  }
}

/** What a pass is called in errors: where its algorithm is asked for, and where it is computed. */
constexpr const char* kAlgorithmCalls[] = {"cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                           "cudnnGetConvolutionBackwardFilterAlgorithm_v7"};
constexpr const char* kPassCalls[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"};

}  // namespace

std::string OpenCudnn(const std::string& path) {
  return cudnn.Open({path}, [&](void* library) -> std::string {
    CudnnTable table;
#define CUDNN_FIND(name, symbol, arguments)                                          \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, #symbol)); \
  if (table.name == nullptr) return path + " lacks " #symbol ": cuDNN 8 or 9 is needed";
    CUDNN_FUNCTIONS(CUDNN_FIND)
#undef CUDNN_FIND
    const auto versionOf = reinterpret_cast<size_t(CU_CALL*)()>(FindSymbol(library, "cudnnGetVersion"));
    const size_t version = versionOf == nullptr ? 0 : versionOf();
    if (version < kLeastVersion) return path + " is cuDNN " + std::to_string(version / 1000) + ": cuDNN 8 or 9 is needed";
    dnn = table;
    return "";
  });
}

void NeedCudnn() {
  if (!cudnn.IsOpen()) throw NativeError{CUDA_ERROR_INVALID_VALUE, "cudnn", -1, "openCudnn() comes first"};
}

/** How convolutions of one kind are computed. */
struct Cudnn::Way {
  cudnnTensorDescriptor x = nullptr;
  cudnnTensorDescriptor y = nullptr;
  cudnnFilterDescriptor w = nullptr;
  cudnnConvolutionDescriptor convolution = nullptr;
  int math = CUDNN_FMA_MATH;
  int algo = -1;
  size_t workspaceBytes = 0;

  Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() {
    for (const cudnnTensorDescriptor tensor : {x, y})
      if (tensor != nullptr) dnn.TensorDestroy(tensor);
    if (w != nullptr) dnn.FilterDestroy(w);
    if (convolution != nullptr) dnn.ConvolutionDestroy(convolution);
  }

  void Describe(const Convolution& p, bool tf32) {
    const int type = DataTypeOf(p.element);
    Tensor(&x, type, p.x(), p.input());
    Tensor(&y, type, p.y(), p.output());
    const Convolution::Extents weights = p.weights();
    CheckCudnn(dnn.FilterCreate(&w), "cudnnCreateFilterDescriptor");
    CheckCudnn(dnn.FilterSet(w, type, CUDNN_TENSOR_NCHW, Int(weights[0]), Int(weights[1]), Int(weights[2]), Int(weights[3])),
               "cudnnSetFilter4dDescriptor");
    CheckCudnn(dnn.ConvolutionCreate(&convolution), "cudnnCreateConvolutionDescriptor");
    // Sums of 16-bit floats are of float32.
    CheckCudnn(dnn.ConvolutionSet(convolution, Int(p.padding[0]), Int(p.padding[1]), Int(p.stride[0]), Int(p.stride[1]),
                                  Int(p.dilation[0]), Int(p.dilation[1]), p.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
                                  p.element == Element::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
               "cudnnSetConvolution2dDescriptor");
    CheckCudnn(dnn.ConvolutionGroups(convolution, Int(p.groups)), "cudnnSetConvolutionGroupCount");
    math = MathOf(p.element, tf32);
    CheckCudnn(dnn.ConvolutionMath(convolution, math), "cudnnSetConvolutionMathType");
  }

  /** The fastest algorithm, as the library expects, of those that are in order and need no more memory than there is. */
  void Choose(cudnnHandle handle, Pass pass) {
    cudnnAlgoPerf found[kMostAlgorithms] = {};
    int count = 0;
    const char* call = kAlgorithmCalls[static_cast<int>(pass)];
    switch (pass) {
      case Pass::forward:
        CheckCudnn(dnn.ForwardAlgorithm(handle, x, w, convolution, y, kMostAlgorithms, &count, found), call);
        break;
      case Pass::input:
        CheckCudnn(dnn.InputAlgorithm(handle, w, y, convolution, x, kMostAlgorithms, &count, found), call);
        break;
      case Pass::kernel:
        CheckCudnn(dnn.KernelAlgorithm(handle, x, y, convolution, w, kMostAlgorithms, &count, found), call);
        break;
    }
    for (int i = 0; i < count && i < kMostAlgorithms; i++) {
      const cudnnAlgoPerf& one = found[i];
      if (one.status != CUDNN_STATUS_SUCCESS || one.determinism != CUDNN_DETERMINISTIC || !IsInOrder(pass, one.algo)) continue;
      if (one.memory > kConvolutionWorkspace) continue;
      // Where float32 is wanted, an algorithm by tiles of matrices would round it.
      if (math == CUDNN_FMA_MATH && one.mathType != CUDNN_FMA_MATH && one.mathType != CUDNN_DEFAULT_MATH) continue;
      algo = one.algo;
      workspaceBytes = one.memory;
      return;
    }
    throw NativeError{CUDNN_STATUS_NOT_SUPPORTED, call};
  }

 private:
  /** Extents, strides and steps are checked to fit. */
  static int Int(size_t value) { return static_cast<int>(std::min(value, static_cast<size_t>(product_cells::kMostExtent))); }

  static void Tensor(cudnnTensorDescriptor* made, int type, const Image& image, const Convolution::Extents& n) {
    CheckCudnn(dnn.TensorCreate(made), "cudnnCreateTensorDescriptor");
    CheckCudnn(dnn.TensorSet(*made, type, Int(n[0]), Int(n[1]), Int(n[2]), Int(n[3]), Int(image.strides[0]), Int(image.strides[1]),
                             Int(image.strides[2]), Int(image.strides[3])),
               "cudnnSetTensor4dDescriptorEx");
  }
};

Cudnn::Cudnn(bool tf32) : tf32_(tf32) {
  NeedCudnn();
  CheckCudnn(dnn.Create(&handle_), "cudnnCreate");
}

Cudnn::~Cudnn() {
  ways_.Clear();
  if (handle_ != nullptr) dnn.Destroy(handle_);
}

const Cudnn::Way& Cudnn::WayOf(const Convolution& p) {
  Key key = {static_cast<uint64_t>(p.element), static_cast<uint64_t>(p.pass), p.images, p.groups, p.channels, p.features, p.flipped};
  for (const Pair* pair : {&p.size, &p.kernel, &p.positions, &p.stride, &p.padding, &p.dilation}) key.insert(key.end(), pair->begin(), pair->end());
  for (const Image* image : {&p.a, &p.b, &p.c}) key.insert(key.end(), image->strides.begin(), image->strides.end());
  if (const Way* found = ways_.Find(key)) return *found;
  auto way = std::make_unique<Way>();
  way->Describe(p, tf32_);
  way->Choose(handle_, p.pass);
  return ways_.Keep(key, std::move(way));
}

size_t Cudnn::Decide(const Convolution& convolution) { return WayOf(convolution).workspaceBytes; }

void Cudnn::Enqueue(const Convolution& p, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace, CUstream stream) {
  const Way& way = WayOf(p);
  CheckCudnn(dnn.SetStream(handle_, stream), "cudnnSetStream");
  const float one = 1, zero = 0;
  const double oneOfDouble = 1, zeroOfDouble = 0;
  const bool isDouble = p.element == Element::float64;
  const void* alpha = isDouble ? static_cast<const void*>(&oneOfDouble) : &one;
  const void* beta = isDouble ? static_cast<const void*>(&zeroOfDouble) : &zero;
  const auto at = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  const char* call = kPassCalls[static_cast<int>(p.pass)];
  switch (p.pass) {
    case Pass::forward:
      CheckCudnn(dnn.Forward(handle_, alpha, way.x, at(a), way.w, at(b), way.convolution, way.algo, at(workspace), way.workspaceBytes, beta,
                             way.y, at(c)),
                 call);
      break;
    case Pass::input:
      CheckCudnn(dnn.Input(handle_, alpha, way.w, at(b), way.y, at(a), way.convolution, way.algo, at(workspace), way.workspaceBytes, beta,
                           way.x, at(c)),
                 call);
      break;
    case Pass::kernel:
      CheckCudnn(dnn.Kernel(handle_, alpha, way.x, at(a), way.y, at(b), way.convolution, way.algo, at(workspace), way.workspaceBytes, beta,
                            way.w, at(c)),
                 call);
      break;
  }
}
