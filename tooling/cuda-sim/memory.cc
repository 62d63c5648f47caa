/**
 * Memory: of a device, ordered by streams or not, of pools, pinned; copies and fills.
 *
 * What a stream has not allocated yet, or has freed, is out of bounds for all others: whoever leaves out a wait is found.
 */
#include <cstring>

#include "aligned.h"
#include "sim.h"

using sim::Device;
using sim::Find;
using sim::handles;

namespace sim {

void Device::SetLive(uint64_t at, bool live) {
  const std::lock_guard<std::mutex> lock(guard);
  const auto found = blocks.find(at);
  if (found == blocks.end()) return;
  found->second->live = live;
  ranges = nullptr;
}

std::shared_ptr<const std::vector<ptx_range>> Device::Ranges() {
  const std::lock_guard<std::mutex> lock(guard);
  if (ranges == nullptr) {
    auto made = std::make_shared<std::vector<ptx_range>>();
    for (const auto& [at, block] : blocks)
      if (block->live) made->push_back({at, block->bytes});
    ranges = made;
  }
  return ranges;
}

namespace {
/** The block that holds a range, or null; under the lock. `slack`: so many bytes more belong to it. */
Block* BlockOf(Device& device, uint64_t at, size_t bytes, size_t slack) {
  auto next = device.blocks.upper_bound(at);
  if (next == device.blocks.begin()) return nullptr;
  --next;
  const uint64_t offset = at - next->first;
  Block& block = *next->second;
  const size_t all = block.bytes + slack;
  return offset <= all && bytes <= all - offset ? &block : nullptr;
}
}  // namespace

bool Device::Knows(uint64_t at, size_t bytes) {
  const std::lock_guard<std::mutex> lock(guard);
  // Memory that is handed on may be a little longer than what the stream has not freed yet.
  return BlockOf(*this, at, bytes, 511) != nullptr;
}

bool Device::Holds(uint64_t at, size_t bytes) {
  const std::lock_guard<std::mutex> lock(guard);
  const Block* block = BlockOf(*this, at, bytes, 0);
  return block != nullptr && block->live;
}

}  // namespace sim

namespace {

constexpr size_t kAlign = 512;
/** New memory holds this: no kernel gets zeros that were not written. */
constexpr int kPoison = 0xa5;

size_t Rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/** Memory of the host for a block, or 0; under the lock of the device. */
uint64_t Reserve(Device& device, size_t bytes) {
  if (bytes > sim::settings().memory || device.reserved + bytes > sim::settings().memory) return 0;
  void* memory = AlignedAlloc(kAlign, bytes);
  if (memory == nullptr) return 0;
  device.reserved += bytes;
  return reinterpret_cast<uint64_t>(memory);
}

void GiveBack(Device& device, uint64_t at, size_t bytes) {
  device.reserved -= bytes;
  AlignedFree(reinterpret_cast<void*>(at));
}

/** Waits for all streams of a device. */
void Settle(Device* device) {
  std::vector<std::shared_ptr<sim::Stream>> all;
  {
    const std::lock_guard<std::mutex> lock(handles().guard);
    for (const auto& [_, stream] : handles().streams)
      if (stream->device == device) all.push_back(stream);
  }
  for (const auto& stream : all) stream->Wait();
}

bool IsPinned(const void* at, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(at);
  const std::lock_guard<std::mutex> lock(handles().guard);
  auto next = handles().pinned.upper_bound(address);
  if (next == handles().pinned.begin()) return false;
  --next;
  return address + bytes <= next->first + next->second;
}

}  // namespace

SIM_API cuMemGetInfo_v2(size_t* free, size_t* total) {
  SIM_DEVICE("cuMemGetInfo");
  const std::lock_guard<std::mutex> lock(device->guard);
  *total = sim::settings().memory;
  *free = *total - device->reserved;
  return 0;
}

SIM_API cuMemAlloc_v2(CUdeviceptr* made, size_t bytes) {
  SIM_DEVICE("cuMemAlloc");
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(device->guard);
  const uint64_t at = Reserve(*device, Rounded(bytes));
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(reinterpret_cast<void*>(at), kPoison, bytes);
  auto block = std::make_shared<sim::Block>();
  block->bytes = bytes;
  block->live = true;
  device->blocks[at] = block;
  device->ranges = nullptr;
  *made = at;
  return 0;
}

SIM_API cuMemFree_v2(CUdeviceptr at) {
  SIM_DEVICE("cuMemFree");
  Settle(device);
  const std::lock_guard<std::mutex> lock(device->guard);
  const auto found = device->blocks.find(at);
  if (found == device->blocks.end() || found->second->pool != nullptr) return CUDA_ERROR_INVALID_VALUE;
  GiveBack(*device, at, Rounded(found->second->bytes));
  device->blocks.erase(found);
  device->ranges = nullptr;
  return 0;
}

SIM_API cuMemPoolCreate(CUmemoryPool* made, const CUmemPoolProps* props) {
  SIM_CALL("cuMemPoolCreate");
  Device* device = props == nullptr ? nullptr : sim::DeviceOf(props->locationId);
  if (device == nullptr || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props->locationType != CU_MEM_LOCATION_TYPE_DEVICE || !sim::settings().pools)
    return CUDA_ERROR_INVALID_VALUE;
  auto pool = std::make_shared<sim::Pool>();
  pool->device = device;
  *made = reinterpret_cast<CUmemoryPool>(pool.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().pools[pool.get()] = pool;
  return 0;
}

SIM_API cuMemPoolDestroy(CUmemoryPool handle) {
  SIM_CALL("cuMemPoolDestroy");
  auto pool = Find(handles().pools, handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Device& device = *pool->device;
  {
    const std::lock_guard<std::mutex> lock(device.guard);
    for (const auto& [bytes, place] : pool->free) {
      device.blocks.erase(place.first);
      GiveBack(device, place.first, bytes);
    }
    pool->free.clear();
    device.ranges = nullptr;
  }
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().pools.erase(handle);
  return 0;
}

SIM_API cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void* value) {
  SIM_CALL("cuMemPoolSetAttribute");
  auto pool = Find(handles().pools, handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return CUDA_ERROR_INVALID_VALUE;
  pool->threshold = *static_cast<uint64_t*>(value);
  return 0;
}

SIM_API cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void* value) {
  SIM_CALL("cuMemPoolGetAttribute");
  auto pool = Find(handles().pools, handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(pool->device->guard);
  *static_cast<uint64_t*>(value) = pool->reserved;
  return 0;
}

SIM_API cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  SIM_CALL("cuMemPoolTrimTo");
  auto pool = Find(handles().pools, handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Device& device = *pool->device;
  const std::lock_guard<std::mutex> lock(device.guard);
  for (auto at = pool->free.begin(); at != pool->free.end() && pool->reserved > keep;) {
    const auto block = device.blocks.find(at->second.first);
    // Freed by a stream that has not come so far.
    if (block != device.blocks.end() && block->second->live) {
      ++at;
      continue;
    }
    if (block != device.blocks.end()) device.blocks.erase(block);
    pool->reserved -= at->first;
    GiveBack(device, at->second.first, at->first);
    at = pool->free.erase(at);
  }
  device.ranges = nullptr;
  return 0;
}

SIM_API cuMemAllocFromPoolAsync(CUdeviceptr* made, size_t bytes, CUmemoryPool handle, CUstream order) {
  SIM_DEVICE("cuMemAllocFromPoolAsync");
  auto pool = Find(handles().pools, handle);
  auto stream = Find(handles().streams, order);
  if (pool == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t size = Rounded(bytes);
  uint64_t at = 0;
  std::shared_ptr<sim::Block> block;
  {
    const std::lock_guard<std::mutex> lock(device->guard);
    for (auto [from, to] = pool->free.equal_range(size); from != to; ++from) {
      // What the same stream has freed before it may have again, though it has not come so far.
      if (from->second.second != stream.get() && device->blocks[from->second.first]->live) continue;
      at = from->second.first;
      pool->free.erase(from);
      break;
    }
    if (at == 0) {
      at = Reserve(*device, size);
      if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
      pool->reserved += size;
    }
    block = std::make_shared<sim::Block>();
    block->bytes = bytes;
    block->pool = pool.get();
  }
  // The block is known from here on, and live when the stream comes so far.
  auto taken = std::make_shared<std::shared_ptr<sim::Block>>(block);
  {
    const std::lock_guard<std::mutex> lock(device->guard);
    auto& place = device->blocks[at];
    // A block that is still live keeps its size until the stream has freed it.
    if (place == nullptr || !place->live) place = block;
    device->ranges = nullptr;
  }
  stream->AddAlways([device, at, taken, bytes] {
    std::memset(reinterpret_cast<void*>(at), kPoison, bytes);
    const std::lock_guard<std::mutex> lock(device->guard);
    device->blocks[at] = *taken;
    (*taken)->live = true;
    device->ranges = nullptr;
  });
  *made = at;
  return 0;
}

SIM_API cuMemFreeAsync(CUdeviceptr at, CUstream order) {
  SIM_DEVICE("cuMemFreeAsync");
  auto stream = Find(handles().streams, order);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard<std::mutex> lock(device->guard);
  const auto found = device->blocks.find(at);
  if (found == device->blocks.end() || found->second->pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [_, place] : found->second->pool->free)
    if (place.first == at) return CUDA_ERROR_INVALID_VALUE;
  // In this order: whoever is given the memory next must find it live until the stream has come so far.
  stream->AddAlways([device, at] { device->SetLive(at, false); });
  found->second->pool->free.emplace(Rounded(found->second->bytes), std::make_pair(at, static_cast<void*>(stream.get())));
  return 0;
}

SIM_API cuMemHostAlloc(void** made, size_t bytes, unsigned) {
  SIM_DEVICE("cuMemHostAlloc");
  *made = AlignedAlloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().pinned[reinterpret_cast<uint64_t>(*made)] = bytes;
  return 0;
}

SIM_API cuMemFreeHost(void* at) {
  SIM_CALL("cuMemFreeHost");
  {
    const std::lock_guard<std::mutex> lock(handles().guard);
    if (handles().pinned.erase(reinterpret_cast<uint64_t>(at)) == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  AlignedFree(at);
  return 0;
}

SIM_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream handle) {
  SIM_DEVICE("cuMemcpyHtoDAsync");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!device->Knows(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<char> copy;
  if (!IsPinned(from, bytes)) {
    copy = std::shared_ptr<char>(new char[bytes], std::default_delete<char[]>());
    std::memcpy(copy.get(), from, bytes);
    from = copy.get();
  }
  stream->Add([=] {
    if (!device->Holds(to, bytes)) return 700;
    std::memcpy(reinterpret_cast<void*>(to), copy == nullptr ? from : copy.get(), bytes);
    return 0;
  });
  return 0;
}

SIM_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream handle) {
  SIM_DEVICE("cuMemcpyDtoHAsync");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!device->Knows(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  stream->Add([=] {
    if (!device->Holds(from, bytes)) return 700;
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return 0;
  });
  if (!IsPinned(to, bytes)) stream->Wait();
  return 0;
}

SIM_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  SIM_DEVICE("cuMemcpyDtoDAsync");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!device->Knows(from, bytes) || !device->Knows(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (from < to + bytes && to < from + bytes && bytes > 0) return CUDA_ERROR_INVALID_VALUE;
  stream->Add([=] {
    if (!device->Holds(from, bytes) || !device->Holds(to, bytes)) return 700;
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return 0;
  });
  return 0;
}

SIM_API cuMemsetD32Async(CUdeviceptr to, unsigned pattern, size_t count, CUstream handle) {
  SIM_DEVICE("cuMemsetD32Async");
  auto stream = Find(handles().streams, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (to % 4 != 0 || !device->Knows(to, 4 * count)) return CUDA_ERROR_INVALID_VALUE;
  stream->Add([=] {
    if (!device->Holds(to, 4 * count)) return 700;
    auto* words = reinterpret_cast<uint32_t*>(to);
    for (size_t i = 0; i < count; i++) words[i] = pattern;
    return 0;
  });
  return 0;
}
