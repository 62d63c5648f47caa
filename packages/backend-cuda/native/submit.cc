/** Batches: one native call enqueues them all. */
#include <cstring>
#include <utility>

#include "driver.h"

namespace {

/** A mark is made behind a batch of so many commands, or so many batches: making one takes a microsecond. */
constexpr size_t kMarkedCommands = 8;

}  // namespace

void Driver::Submit(const double* cells, size_t count) {
  context_->Enter();
  int64_t command = 0;
  try {
    if (Replay(cells, count)) {
      command = static_cast<int64_t>(launches_.size());
      count = 0;
    }
    for (size_t at = 0; at < count; command++) {
      const size_t length = LengthOf(cells + at, count - at);
      try {
        Enqueue(cells + at, length);
      } catch (const NativeError& error) {
        if (error.code != CUDA_ERROR_OUT_OF_MEMORY) throw;
        Trim();
        Enqueue(cells + at, length);
      }
      at += length;
    }
  } catch (NativeError& error) {
    error.command = command;
    throw;
  }
  marked_ += static_cast<size_t>(command) + 1;
  if (marked_ < kMarkedCommands) return;
  marked_ = 0;
  Computed();
}

std::vector<double> Driver::SubmitTimed(const double* cells, size_t count) {
  context_->Enter();
  std::vector<CUevent> events;
  const auto mark = [&] {
    CUevent event = nullptr;
    context_->Check(cu.EventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    events.push_back(event);
    context_->Check(cu.EventRecord(event, compute_), "cuEventRecord");
  };
  const auto release = [&] {
    for (CUevent event : events) cu.EventDestroy(event);
  };
  std::vector<double> times;
  try {
    for (size_t at = 0; at < count;) {
      const size_t length = LengthOf(cells + at, count - at);
      mark();
      Enqueue(cells + at, length);
      mark();
      at += length;
    }
    context_->Check(cu.StreamSynchronize(compute_), "cuStreamSynchronize");
    for (size_t i = 0; i + 1 < events.size(); i += 2) {
      float milliseconds = -1;
      const CUresult code = cu.EventElapsedTime(&milliseconds, events[i], events[i + 1]);
      times.push_back(code == CUDA_SUCCESS && milliseconds >= 0 ? static_cast<double>(milliseconds) * 1e6 : -1);
    }
  } catch (NativeError& error) {
    cu.StreamSynchronize(compute_);
    error.command = events.empty() ? 0 : static_cast<int64_t>((events.size() - 1) / 2);
    release();
    throw;
  }
  release();
  return times;
}

void Driver::Enqueue(const double* cells, size_t length) {
  unmarked_ = true;
  switch (Whole(cells[0], "submit", "the kind of a command", kConvolution)) {
    case kDispatch:
      Dispatch(cells, length);
      return;
    case kCopy:
      Copy(CopyOf(cells, length));
      return;
    case kFill:
      Fill(FillOf(cells, length));
      return;
    case kProduct:
      Expect(length, kProductCells, kProductCall);
      Multiply(cells);
      return;
    case kConvolution:
      Expect(length, kConvolutionCells, kConvolutionCall);
      Convolve(cells);
      return;
    default:
      Refuse("submit", "there is no such command");
  }
}

void Driver::Fill(const FillCommand& fill) {
  const size_t offset = fill.offset, bytes = fill.bytes;
  Memory& memory = Within(fill.buffer, offset, bytes, "fill");
  if (bytes == 0) return;
  if (offset % 4 != 0 || bytes % 4 != 0) Refuse("fill", "offset and bytes are no multiples of four");
  context_->Check(cu.MemsetD32Async(Use(memory) + offset, fill.pattern, bytes / 4, compute_), "cuMemsetD32Async");
}

void Driver::Prepare(const double* cells, size_t length, Launch* launch) {
  if (length < 6) Refuse("dispatch", "the kernel is not said");
  Kernel* k = kernels_.Find(cells[2]);
  if (k == nullptr) Refuse("dispatch", "there is no such kernel");
  Expect(length, k->cells, "dispatch");
  for (int axis = 0; axis < 3; axis++) {
    const size_t groups = Whole(cells[3 + axis], "dispatch", "the groups", static_cast<double>(k->grid[axis]));
    launch->grid[axis] = groups == 0 ? k->grid[axis] : static_cast<unsigned>(groups);
    launch->group[axis] = k->group[axis];
  }
  launch->function = k->function;
  launch->sharedBytes = k->sharedBytes;
  // What lies between arguments counts where launches are compared.
  launch->parameters.assign(k->parameterBytes, 0);
  const double* cell = cells + 6;
  for (const Argument& argument : k->arguments) {
    if (argument.bytes > 0) {
      std::memcpy(launch->parameters.data() + argument.at, cell++, argument.bytes);
      continue;
    }
    const size_t offset = Whole(cell[1], "dispatch", "an offset");
    Memory& memory = Within(cell[0], offset, Whole(cell[2], "dispatch", "the bytes of a binding"), "dispatch");
    const CUdeviceptr at = Use(memory) + offset;
    std::memcpy(launch->parameters.data() + argument.at, &at, sizeof at);
    cell += 3;
  }
}

void Driver::Dispatch(const double* cells, size_t length) {
  Launch& launch = launch_;
  Prepare(cells, length, &launch);
  size_t bytes = launch.parameters.size();
  void* extra[] = {LaunchParamPointer(), launch.parameters.data(), LaunchParamSize(), &bytes, LaunchParamEnd()};
  context_->Check(cu.LaunchKernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.group[0], launch.group[1],
                                  launch.group[2], launch.sharedBytes, compute_, nullptr, bytes == 0 ? nullptr : extra),
                  "cuLaunchKernel");
}

bool Driver::Replay(const double* cells, size_t count) {
  if (graphs_->off != 0) return false;
  batchKernels_.clear();
  for (size_t at = 0; at < count;) {
    // Errors in a batch are reported when it is enqueued.
    if (count - at < 6 || cells[at] != kDispatch) return false;
    if (!(cells[at + 1] >= 6 && cells[at + 1] <= static_cast<double>(count - at)) || kernels_.Find(cells[at + 2]) == nullptr) return false;
    batchKernels_.push_back(static_cast<uint32_t>(cells[at + 2]));
    at += LengthOf(cells + at, count - at);
  }
  Graphs::Graph* graph = graphs_->Find(batchKernels_);
  if (graph == nullptr) return false;
  unmarked_ = true;
  launches_.resize(batchKernels_.size());
  size_t at = 0;
  for (Launch& launch : launches_) {
    const size_t length = LengthOf(cells + at, count - at);
    Prepare(cells + at, length, &launch);
    at += length;
  }
  return graphs_->Run(graph, launches_, compute_);
}

/** Ranges of one buffer may overlap: those are copied through separate memory. */
void Driver::Copy(const CopyCommand& copy) {
  const size_t source = copy.source, target = copy.target, bytes = copy.bytes;
  Memory& fromMemory = Within(copy.from, source, bytes, "copy");
  Memory& toMemory = Within(copy.to, target, bytes, "copy");
  if (bytes == 0) return;
  const CUdeviceptr from = Use(fromMemory) + source;
  const CUdeviceptr to = Use(toMemory) + target;
  if (from + bytes <= to || to + bytes <= from) {
    context_->Check(cu.MemcpyDtoDAsync(to, from, bytes, compute_), "cuMemcpyDtoDAsync");
    return;
  }
  const CUdeviceptr between = AllocBytes(bytes);
  CUresult code = cu.MemcpyDtoDAsync(between, from, bytes, compute_);
  if (code == CUDA_SUCCESS) code = cu.MemcpyDtoDAsync(to, between, bytes, compute_);
  if (pool_ != nullptr) {
    cu.MemFreeAsync(between, compute_);
  } else {
    cu.StreamSynchronize(compute_);
    cu.MemFree(between);
  }
  context_->Check(code, "cuMemcpyDtoDAsync");
}
