#include "context.h"

#include <algorithm>
#include <atomic>

namespace {

/** Most devices of a process; more are not listed. */
constexpr int kMostDevices = 64;
/** The smallest block of pinned memory. */
constexpr size_t kLeastPinned = 1 << 16;
/** Most unused bytes of it that are kept. */
constexpr size_t kMostKept = size_t{1} << 28;

/** The fatal error of each device, 0 for none. */
std::atomic<int> faults[kMostDevices];

}  // namespace

bool IsFatal(CUresult code) {
  switch (code) {
    case 700:  // illegal address
    case 702:  // launch timeout
    case 710:  // assertion in a kernel
    case 714:  // hardware stack
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 721:  // tensor memory leak
      return true;
    default:
      return false;
  }
}

Context::Context(int device) : index_(device) {
  if (device < 0 || device >= kMostDevices) throw NativeError{CUDA_ERROR_INVALID_DEVICE, "cuDeviceGet"};
  const int fault = faults[index_];
  if (fault != 0) throw NativeError{fault, "the device", -1, "it had a fault before"};
  ::Check(cu.DeviceGet(&device_, device), "cuDeviceGet");
  Check(cu.DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

Context::~Context() {
  if (context_ != nullptr) cu.DevicePrimaryCtxRelease(device_);
}

void Context::Enter() const {
  const int fault = faults[index_];
  if (fault != 0) throw NativeError{fault, "the device", -1, "it had a fault before"};
  Check(cu.CtxSetCurrent(context_), "cuCtxSetCurrent");
}

CUresult Context::Note(CUresult code) const {
  if (IsFatal(code)) {
    int none = 0;
    faults[index_].compare_exchange_strong(none, code);
  }
  const int fault = faults[index_];
  return fault != 0 ? fault : code;
}

void Context::Check(CUresult code, const char* call) const {
  if (code == CUDA_SUCCESS) return;
  throw NativeError{Note(code), call};
}

Events::~Events() {
  context_->EnterAnyway();
  for (CUevent event : free_) cu.EventDestroy(event);
}

Mark Events::Record(CUstream stream) {
  CUevent event = nullptr;
  {
    std::lock_guard<std::mutex> lock(guard_);
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    }
  }
  if (event == nullptr)
    context_->Check(cu.EventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  Mark mark(event, [pool = shared_from_this()](CUevent e) {
    std::lock_guard<std::mutex> lock(pool->guard_);
    pool->free_.push_back(e);
  });
  context_->Check(cu.EventRecord(event, stream), "cuEventRecord");
  return mark;
}

bool IsOver(const Mark& mark) { return mark == nullptr || cu.EventQuery(mark.get()) != CUDA_ERROR_NOT_READY; }

PinnedPool::~PinnedPool() {
  context_->EnterAnyway();
  for (const Pinned& block : free_) cu.MemFreeHost(block.data);
}

std::shared_ptr<Pinned> PinnedPool::Take(size_t bytes) {
  size_t wanted = kLeastPinned;
  while (wanted < bytes) wanted *= 2;
  Pinned block;
  {
    std::lock_guard<std::mutex> lock(guard_);
    const auto found = std::find_if(free_.begin(), free_.end(), [&](const Pinned& b) { return b.bytes == wanted; });
    if (found != free_.end()) {
      block = *found;
      free_.erase(found);
      kept_ -= wanted;
    }
  }
  if (block.data == nullptr) {
    block.bytes = wanted;
    CUresult code = cu.MemHostAlloc(&block.data, wanted, CU_MEMHOSTALLOC_PORTABLE);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
      Trim();
      code = cu.MemHostAlloc(&block.data, wanted, CU_MEMHOSTALLOC_PORTABLE);
    }
    context_->Check(code, "cuMemHostAlloc");
  }
  auto* held = new Pinned(block);
  return std::shared_ptr<Pinned>(held, [pool = shared_from_this()](Pinned* p) {
    pool->Return(*p);
    delete p;
  });
}

void PinnedPool::Return(Pinned block) {
  {
    std::lock_guard<std::mutex> lock(guard_);
    if (kept_ + block.bytes <= kMostKept) {
      free_.push_back(block);
      kept_ += block.bytes;
      return;
    }
  }
  context_->EnterAnyway();
  cu.MemFreeHost(block.data);
}

void PinnedPool::Trim() {
  std::vector<Pinned> unused;
  {
    std::lock_guard<std::mutex> lock(guard_);
    unused.swap(free_);
    kept_ = 0;
  }
  for (const Pinned& block : unused) cu.MemFreeHost(block.data);
}
