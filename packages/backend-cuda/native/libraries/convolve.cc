/** Convolutions by cuDNN, as commands. */
#include "driver.h"

void Driver::Convolve(const double* cells) {
  const Convolution p = ConvolutionOf(cells);
  const auto place = [&](const Image& image, const Convolution::Extents& extents) -> Memory& {
    return Within(image.buffer, 0, ReachOf(image, p.element, extents), kConvolutionCall);
  };
  const bool isInput = p.pass == Pass::input, isKernel = p.pass == Pass::kernel;
  Memory& a = place(p.a, isInput ? p.output() : p.input());
  Memory& b = place(p.b, isKernel ? p.output() : p.weights());
  Memory& c = place(p.c, isInput ? p.input() : isKernel ? p.weights() : p.output());
  if (convolutions_ == nullptr) convolutions_ = std::make_unique<Cudnn>(tf32_);
  const size_t bytes = convolutions_->Decide(p);
  const CUdeviceptr workspace = bytes == 0 ? 0 : ConvolutionWorkspace(bytes);
  const auto release = [&] {
    if (workspace == 0) return;
    if (pool_ != nullptr) {
      cu.MemFreeAsync(workspace, compute_);
      return;
    }
    cu.StreamSynchronize(compute_);
    cu.MemFree(workspace);
  };
  try {
    const auto at = [&](Memory& memory, const Image& image) { return Use(memory) + image.offset * BytesOf(p.element); };
    convolutions_->Enqueue(p, at(a, p.a), at(b, p.b), at(c, p.c), workspace, compute_);
  } catch (...) {
    release();
    throw;
  }
  release();
}

/** Memory that is given back behind the convolution. Where there is none, it is the library that fails: kernels need less. */
CUdeviceptr Driver::ConvolutionWorkspace(size_t bytes) {
  try {
    return AllocBytes(bytes);
  } catch (const NativeError& error) {
    if (error.code != CUDA_ERROR_OUT_OF_MEMORY) throw;
    throw NativeError{CUDNN_STATUS_ALLOC_FAILED, "cudnn's workspace"};
  }
}

std::shared_ptr<Job> Driver::PrepareConvolution(const double* cells) {
  const Convolution convolution = ConvolutionOf(cells);
  NeedCudnn();
  context_->Enter();
  const auto job = std::make_shared<Job>();
  threads_->Add(job, [context = context_, convolution, tf32 = tf32_](Job&, OfThread&) {
    context->Enter();
    Cudnn(tf32).Decide(convolution);
  });
  return job;
}
