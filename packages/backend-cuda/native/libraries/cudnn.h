/**
 * cuDNN, NVIDIA's library for convolutions, opened at run time where it is installed. Names and values are those of its interface for C with
 * descriptors, of versions 8 and 9.
 */
#pragma once
#include <memory>
#include <string>

#include "context.h"
#include "convolution.h"
#include "ways.h"

using cudnnStatus = int;
using cudnnHandle = struct cudnnContext*;
using cudnnTensorDescriptor = struct cudnnTensorStruct*;
using cudnnFilterDescriptor = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor = struct cudnnConvolutionStruct*;

/** An algorithm with what the library knows of it; algorithms of the three passes count separately. */
struct cudnnAlgoPerf {
  int algo;
  cudnnStatus status;
  float time;
  size_t memory;
  int determinism;
  int mathType;
  int reserved[3];
};

constexpr cudnnStatus CUDNN_STATUS_SUCCESS = 0;
constexpr cudnnStatus CUDNN_STATUS_ALLOC_FAILED = 2;
constexpr cudnnStatus CUDNN_STATUS_BAD_PARAM = 3;
constexpr cudnnStatus CUDNN_STATUS_NOT_SUPPORTED = 9;
constexpr int CUDNN_DATA_FLOAT = 0;
constexpr int CUDNN_DATA_DOUBLE = 1;
constexpr int CUDNN_DATA_HALF = 2;
constexpr int CUDNN_DATA_BFLOAT16 = 9;
constexpr int CUDNN_TENSOR_NCHW = 0;
constexpr int CUDNN_CONVOLUTION = 0;
constexpr int CUDNN_CROSS_CORRELATION = 1;
/** TF32 for float32 where the card has it. */
constexpr int CUDNN_DEFAULT_MATH = 0;
/** Tiles of matrices for 16-bit floats. */
constexpr int CUDNN_TENSOR_OP_MATH = 1;
/** float32 throughout. */
constexpr int CUDNN_FMA_MATH = 3;
constexpr int CUDNN_DETERMINISTIC = 1;
/** Sums in order: no transforms (Winograd, Fourier), whose errors are relative to whole tiles, and no atomic additions. */
constexpr int CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0;
constexpr int CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1;
constexpr int CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2;
constexpr int CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1;
constexpr int CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1;

/** Every function in use: name here, symbol in the library, arguments. All give a status. */
#define CUDNN_FUNCTIONS(X)                                                                                                   \
  X(Create, cudnnCreate, (cudnnHandle*))                                                                                     \
  X(Destroy, cudnnDestroy, (cudnnHandle))                                                                                    \
  X(SetStream, cudnnSetStream, (cudnnHandle, CUstream))                                                                      \
  X(TensorCreate, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor*))                                                     \
  X(TensorSet, cudnnSetTensor4dDescriptorEx, (cudnnTensorDescriptor, int, int, int, int, int, int, int, int, int))           \
  X(TensorDestroy, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor))                                                    \
  X(FilterCreate, cudnnCreateFilterDescriptor, (cudnnFilterDescriptor*))                                                     \
  X(FilterSet, cudnnSetFilter4dDescriptor, (cudnnFilterDescriptor, int, int, int, int, int, int))                            \
  X(FilterDestroy, cudnnDestroyFilterDescriptor, (cudnnFilterDescriptor))                                                    \
  X(ConvolutionCreate, cudnnCreateConvolutionDescriptor, (cudnnConvolutionDescriptor*))                                      \
  X(ConvolutionSet, cudnnSetConvolution2dDescriptor, (cudnnConvolutionDescriptor, int, int, int, int, int, int, int, int))   \
  X(ConvolutionGroups, cudnnSetConvolutionGroupCount, (cudnnConvolutionDescriptor, int))                                     \
  X(ConvolutionMath, cudnnSetConvolutionMathType, (cudnnConvolutionDescriptor, int))                                         \
  X(ConvolutionDestroy, cudnnDestroyConvolutionDescriptor, (cudnnConvolutionDescriptor))                                     \
  X(ForwardAlgorithm, cudnnGetConvolutionForwardAlgorithm_v7,                                                                \
    (cudnnHandle, cudnnTensorDescriptor, cudnnFilterDescriptor, cudnnConvolutionDescriptor, cudnnTensorDescriptor, int,      \
     int*, cudnnAlgoPerf*))                                                                                                  \
  X(InputAlgorithm, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                             \
    (cudnnHandle, cudnnFilterDescriptor, cudnnTensorDescriptor, cudnnConvolutionDescriptor, cudnnTensorDescriptor, int,      \
     int*, cudnnAlgoPerf*))                                                                                                  \
  X(KernelAlgorithm, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                          \
    (cudnnHandle, cudnnTensorDescriptor, cudnnTensorDescriptor, cudnnConvolutionDescriptor, cudnnFilterDescriptor, int,      \
     int*, cudnnAlgoPerf*))                                                                                                  \
  X(Forward, cudnnConvolutionForward,                                                                                        \
    (cudnnHandle, const void*, cudnnTensorDescriptor, const void*, cudnnFilterDescriptor, const void*,                       \
     cudnnConvolutionDescriptor, int, void*, size_t, const void*, cudnnTensorDescriptor, void*))                             \
  X(Input, cudnnConvolutionBackwardData,                                                                                     \
    (cudnnHandle, const void*, cudnnFilterDescriptor, const void*, cudnnTensorDescriptor, const void*,                       \
     cudnnConvolutionDescriptor, int, void*, size_t, const void*, cudnnTensorDescriptor, void*))                             \
  X(Kernel, cudnnConvolutionBackwardFilter,                                                                                  \
    (cudnnHandle, const void*, cudnnTensorDescriptor, const void*, cudnnTensorDescriptor, const void*,                       \
     cudnnConvolutionDescriptor, int, void*, size_t, const void*, cudnnFilterDescriptor, void*))

/** Opens the library, once per process; an empty string, or why it could not. Thread-safe. */
std::string OpenCudnn(const std::string& path);

/** Throws where the library is not open. */
void NeedCudnn();

/** Most bytes a convolution may use while it runs. */
constexpr size_t kConvolutionWorkspace = size_t{256} << 20;

/** The library for one engine, or one thread: its handle, and what it has decided for convolutions. */
class Cudnn {
 public:
  /** `tf32`: float32 may be rounded to TF32. */
  explicit Cudnn(bool tf32);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /** Decides how a convolution is computed, and gives the bytes of memory that takes; throws where the library has no way. */
  size_t Decide(const Convolution& convolution);
  /** Addresses of the first elements of a, b, c; everything has been checked. `workspace` has the bytes that Decide said. */
  void Enqueue(const Convolution& convolution, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace, CUstream stream);

 private:
  struct Way;
  /** Everything but places in memory. */
  using Key = Ways<Way>::Key;
  const Way& WayOf(const Convolution& convolution);

  const bool tf32_;
  cudnnHandle handle_ = nullptr;
  Ways<Way> ways_;
};
