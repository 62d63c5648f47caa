/**
 * cuBLASLt, NVIDIA's library for products of matrices, opened at run time where it is installed. Names and values are those of its
 * interface for C, of CUDA 11.4 and newer.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "context.h"
#include "product.h"
#include "ways.h"

using cublasStatus = int;
using cublasLtHandle = struct cublasLtContext*;
using cublasLtMatmulDesc = struct cublasLtMatmulDescOpaque*;
using cublasLtMatrixLayout = struct cublasLtMatrixLayoutOpaque*;
using cublasLtMatmulPreference = struct cublasLtMatmulPreferenceOpaque*;

struct cublasLtMatmulAlgo {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult {
  cublasLtMatmulAlgo algo;
  size_t workspaceSize;
  cublasStatus state;
  float wavesCount;
  int reserved[4];
};

constexpr cublasStatus CUBLAS_STATUS_SUCCESS = 0;
constexpr cublasStatus CUBLAS_STATUS_INVALID_VALUE = 7;
constexpr cublasStatus CUBLAS_STATUS_NOT_SUPPORTED = 15;
constexpr int CUDA_R_32F = 0;
constexpr int CUDA_R_64F = 1;
constexpr int CUDA_R_16F = 2;
constexpr int CUDA_R_16BF = 14;
/** Sums of float32 products, and of 16-bit ones, in float32: no shorter formats in between. */
constexpr int CUBLAS_COMPUTE_32F = 68;
constexpr int CUBLAS_COMPUTE_64F = 70;
constexpr int CUBLAS_OP_N = 0;
constexpr int CUBLAS_OP_T = 1;
constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;
constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
constexpr int CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;
/** Parts of a sum in a fixed order, never by atomic additions. */
constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;
constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4;

/** Every function in use: name here, symbol in the library, arguments. All give a status. */
#define CUBLASLT_FUNCTIONS(X)                                                                                         \
  X(Create, cublasLtCreate, (cublasLtHandle*))                                                                        \
  X(Destroy, cublasLtDestroy, (cublasLtHandle))                                                                       \
  X(DescCreate, cublasLtMatmulDescCreate, (cublasLtMatmulDesc*, int, int))                                            \
  X(DescDestroy, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc))                                                     \
  X(DescSet, cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc, int, const void*, size_t))                          \
  X(LayoutCreate, cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout*, int, uint64_t, uint64_t, int64_t))              \
  X(LayoutDestroy, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout))                                               \
  X(LayoutSet, cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout, int, const void*, size_t))                    \
  X(PreferenceCreate, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference*))                                    \
  X(PreferenceDestroy, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference))                                   \
  X(PreferenceSet, cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference, int, const void*, size_t))        \
  X(Heuristic, cublasLtMatmulAlgoGetHeuristic,                                                                        \
    (cublasLtHandle, cublasLtMatmulDesc, cublasLtMatrixLayout, cublasLtMatrixLayout, cublasLtMatrixLayout,            \
     cublasLtMatrixLayout, cublasLtMatmulPreference, int, cublasLtMatmulHeuristicResult*, int*))                      \
  X(Matmul, cublasLtMatmul,                                                                                           \
    (cublasLtHandle, cublasLtMatmulDesc, const void*, const void*, cublasLtMatrixLayout, const void*,                 \
     cublasLtMatrixLayout, const void*, const void*, cublasLtMatrixLayout, void*, cublasLtMatrixLayout,               \
     const cublasLtMatmulAlgo*, void*, size_t, CUstream))

/** Opens the library, once per process; an empty string, or why it could not. Thread-safe. */
std::string OpenCublasLt(const std::string& path);

/** Throws where the library is not open. */
void NeedCublasLt();

/** Bytes a product may use while it runs. */
constexpr size_t kProductWorkspace = size_t{4} << 20;

/** The library for one engine, or one thread: its handle, and what it has decided for products. */
class CublasLt {
 public:
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /** Addresses of the three matrices' first elements; everything has been checked. `workspace` has kProductWorkspace bytes. */
  void Enqueue(const Product& product, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace, CUstream stream);
  /** Decides how a product is computed; throws where the library has no way. */
  void Decide(const Product& product);

 private:
  struct Way;
  /** Sizes, strides, and how the matrices are aligned: on nothing else may the way depend. */
  using Key = Ways<Way>::Key;
  const Way& WayOf(const Product& product, const uint32_t (&alignment)[3]);

  cublasLtHandle handle_ = nullptr;
  Ways<Way> ways_;
};
