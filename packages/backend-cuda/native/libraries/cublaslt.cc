#include "cublaslt.h"

#include "shared-object.h"

namespace {

struct CublasLtTable {
#define CUBLASLT_MEMBER(name, symbol, arguments) cublasStatus(CU_CALL* name) arguments = nullptr;
  CUBLASLT_FUNCTIONS(CUBLASLT_MEMBER)
#undef CUBLASLT_MEMBER
};

OpenOnce cublas;
CublasLtTable lt;

/** Bindings are aligned to this, and the way must not depend on what is better aligned by chance. */
constexpr uint64_t kAlignment = 16;

void CheckStatus(cublasStatus status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw NativeError{status, call};
}

int TypeOf(Element element) {
  switch (element) {
    case Element::float64: return CUDA_R_64F;
    case Element::float16: return CUDA_R_16F;
    case Element::bfloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

uint32_t AlignmentOf(uint64_t at) {
  uint64_t bytes = kAlignment;
  while (at % bytes != 0) bytes /= 2;
  return static_cast<uint32_t>(bytes);
}

}  // namespace

std::string OpenCublasLt(const std::string& path) {
  return cublas.Open({path}, [&](void* library) -> std::string {
    CublasLtTable table;
#define CUBLASLT_FIND(name, symbol, arguments)                                       \
  table.name = reinterpret_cast<decltype(table.name)>(FindSymbol(library, #symbol)); \
  if (table.name == nullptr) return path + " lacks " #symbol ": cuBLASLt of CUDA 11.4 or newer is needed";
    CUBLASLT_FUNCTIONS(CUBLASLT_FIND)
#undef CUBLASLT_FIND
    lt = table;
    return "";
  });
}

void NeedCublasLt() {
  if (!cublas.IsOpen()) throw NativeError{CUDA_ERROR_INVALID_VALUE, "cublasLt", -1, "openCublasLt() comes first"};
}

/**
 * How products of one kind are computed. The library counts columns first: a matrix in rows is its transpose there, so c' = b' a' is asked
 * for, with b as the first factor.
 */
struct CublasLt::Way {
  cublasLtMatmulDesc desc = nullptr;
  cublasLtMatrixLayout first = nullptr;
  cublasLtMatrixLayout second = nullptr;
  cublasLtMatrixLayout result = nullptr;
  cublasLtMatmulAlgo algo = {};
  size_t workspaceBytes = 0;

  Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  ~Way() {
    for (const cublasLtMatrixLayout layout : {first, second, result})
      if (layout != nullptr) lt.LayoutDestroy(layout);
    if (desc != nullptr) lt.DescDestroy(desc);
  }

  /** The layout of a matrix of `down` x `across`, stored in rows. */
  static cublasLtMatrixLayout LayoutOf(Element element, const Operand& o, size_t down, size_t across) {
    if (o.transposed) std::swap(down, across);
    cublasLtMatrixLayout made = nullptr;
    CheckStatus(lt.LayoutCreate(&made, TypeOf(element), across, down, static_cast<int64_t>(o.stride)),
                "cublasLtMatrixLayoutCreate");
    return made;
  }

  static void Batch(cublasLtMatrixLayout layout, size_t batch, size_t distance) {
    const auto count = static_cast<int32_t>(batch);
    const auto offset = static_cast<int64_t>(distance);
    CheckStatus(lt.LayoutSet(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute");
    CheckStatus(lt.LayoutSet(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset),
                "cublasLtMatrixLayoutSetAttribute");
  }
};

CublasLt::CublasLt() {
  NeedCublasLt();
  CheckStatus(lt.Create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  ways_.Clear();
  if (handle_ != nullptr) lt.Destroy(handle_);
}

const CublasLt::Way& CublasLt::WayOf(const Product& p, const uint32_t (&alignment)[3]) {
  const Key key = {static_cast<uint64_t>(p.factor), static_cast<uint64_t>(p.result), p.m,          p.n,        p.k,          p.batch,      p.a.stride,     p.a.distance,
                   p.b.stride,   p.b.distance, p.c.stride, p.c.distance, p.a.transposed, p.b.transposed, alignment[0],
                   alignment[1], alignment[2]};
  if (const Way* found = ways_.Find(key)) return *found;
  auto way = std::make_unique<Way>();
  CheckStatus(lt.DescCreate(&way->desc, p.isDouble() ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, p.isDouble() ? CUDA_R_64F : CUDA_R_32F),
              "cublasLtMatmulDescCreate");
  const int32_t firstOp = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int32_t secondOp = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  CheckStatus(lt.DescSet(way->desc, CUBLASLT_MATMUL_DESC_TRANSA, &firstOp, sizeof firstOp), "cublasLtMatmulDescSetAttribute");
  CheckStatus(lt.DescSet(way->desc, CUBLASLT_MATMUL_DESC_TRANSB, &secondOp, sizeof secondOp), "cublasLtMatmulDescSetAttribute");
  way->first = Way::LayoutOf(p.factor, p.b, p.k, p.n);
  way->second = Way::LayoutOf(p.factor, p.a, p.m, p.k);
  way->result = Way::LayoutOf(p.result, p.c, p.m, p.n);
  if (p.batch > 1) {
    Way::Batch(way->first, p.batch, p.b.distance);
    Way::Batch(way->second, p.batch, p.a.distance);
    Way::Batch(way->result, p.batch, p.c.distance);
  }
  cublasLtMatmulPreference made = nullptr;
  CheckStatus(lt.PreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const std::shared_ptr<cublasLtMatmulPreferenceOpaque> preference(made, [](cublasLtMatmulPreference p) { lt.PreferenceDestroy(p); });
  const auto prefer = [&](int what, const void* value, size_t bytes) {
    CheckStatus(lt.PreferenceSet(made, what, value, bytes), "cublasLtMatmulPreferenceSetAttribute");
  };
  const uint64_t workspace = kProductWorkspace;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  // Parts of a sum are never kept in 16 bits.
  const uint32_t inResults = BytesOf(p.result) == 2 ? 0 : CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | inResults;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions);
  // Of the first factor, the second, and the result as it comes and goes.
  const uint32_t aligned[] = {alignment[1], alignment[0], alignment[2], alignment[2]};
  for (int i = 0; CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, &aligned[i], sizeof aligned[i]);
  cublasLtMatmulHeuristicResult best = {};
  int count = 0;
  CheckStatus(lt.Heuristic(handle_, way->desc, way->first, way->second, way->result, way->result, made, 1, &best, &count),
              "cublasLtMatmulAlgoGetHeuristic");
  if (count < 1) throw NativeError{CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic"};
  CheckStatus(best.state, "cublasLtMatmulAlgoGetHeuristic");
  if (best.workspaceSize > kProductWorkspace) throw NativeError{CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic"};
  way->algo = best.algo;
  way->workspaceBytes = best.workspaceSize;
  return ways_.Keep(key, std::move(way));
}

void CublasLt::Decide(const Product& product) {
  const auto usual = static_cast<uint32_t>(kAlignment);
  WayOf(product, {usual, usual, usual});
}

void CublasLt::Enqueue(const Product& p, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace, CUstream stream) {
  const Way& way = WayOf(p, {AlignmentOf(a), AlignmentOf(b), AlignmentOf(c)});
  const float one = 1, zero = 0;
  const double oneOfDouble = 1, zeroOfDouble = 0;
  const void* alpha = p.isDouble() ? static_cast<const void*>(&oneOfDouble) : &one;
  const void* beta = p.isDouble() ? static_cast<const void*>(&zeroOfDouble) : &zero;
  const auto at = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  CheckStatus(lt.Matmul(handle_, way.desc, alpha, at(b), way.first, at(a), way.second, beta, at(c), way.result, at(c), way.result,
                        &way.algo, at(workspace), way.workspaceBytes, stream),
              "cublasLtMatmul");
}
