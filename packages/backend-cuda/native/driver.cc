/** Memory, modules and life of a Driver. Batches are in submit.cc. */
#include "driver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace {

/** Uploads go through blocks of this size, and so many bytes are on their way at a time. */
constexpr size_t kStageBytes = size_t{4} << 20;
constexpr size_t kMostStaged = size_t{32} << 20;
/** Reads that are waited for go through blocks of this size. */
constexpr size_t kReadBytes = size_t{4} << 20;
/** A read that is waited for asks so long before it sleeps: waking takes as long. */
constexpr std::chrono::microseconds kSpin{50};
constexpr size_t kLogBytes = 1 << 16;
/** Most bytes of parameters of a kernel on every card. */
constexpr size_t kMostParameters = 4096;
/** Shared memory that a kernel has without being asked for. */
constexpr unsigned kUsualShared = 48 * 1024;

}  // namespace

Compiling::~Compiling() {
  if (module == nullptr) return;
  context_->EnterAnyway();
  cu.ModuleUnload(module);
}

Driver::Driver(int device, bool beside, bool graphs, bool tf32) : context_(std::make_shared<const Context>(device)), tf32_(tf32) {
  context_->Enter();
  events_ = std::make_shared<Events>(context_);
  pinned_ = std::make_shared<PinnedPool>(context_);
  const auto attribute = [&](int what) {
    int value = 0;
    context_->Check(cu.DeviceGetAttribute(&value, what, context_->device()), "cuDeviceGetAttribute");
    return value;
  };
  try {
    maxGrid_[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    maxGrid_[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    maxGrid_[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    maxGroup_ = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (CUstream* stream : {&compute_, &uploads_, &reads_})
      context_->Check(cu.StreamCreate(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0) {
      CUmemPoolProps props = {};
      props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
      props.locationType = CU_MEM_LOCATION_TYPE_DEVICE;
      props.locationId = context_->device();
      context_->Check(cu.MemPoolCreate(&pool_, &props), "cuMemPoolCreate");
      // What was freed stays here until `Trim`.
      uint64_t all = UINT64_MAX;
      context_->Check(cu.MemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), "cuMemPoolSetAttribute");
    }
    graphs_ = std::make_unique<Graphs>(context_, graphs);
    threads_ = std::make_unique<JobThreads>(beside);
  } catch (...) {
    Close();
    throw;
  }
}

void Driver::StopBuilding() {
  if (threads_ != nullptr) threads_->Stop();
}

void Driver::Close() {
  if (context_ == nullptr) return;
  StopBuilding();
  context_->EnterAnyway();
  for (CUstream stream : {uploads_, compute_, reads_})
    if (stream != nullptr) cu.StreamSynchronize(stream);
  staged_.clear();
  leaving_.clear();
  stage_ = nullptr;
  marks_.clear();
  // Before the modules of their kernels.
  graphs_ = nullptr;
  kernels_.Clear([](Kernel& k) { k.module = nullptr; });
  modules_.Clear([](std::shared_ptr<Compiling>& m) { m = nullptr; });
  buffers_.Clear([this](Memory& m) {
    if (pool_ != nullptr) cu.MemFreeAsync(m.at, compute_);
    else cu.MemFree(m.at);
    m = Memory();
  });
  products_ = nullptr;
  convolutions_ = nullptr;
  if (productWorkspace_ != 0) {
    if (pool_ != nullptr) cu.MemFreeAsync(productWorkspace_, compute_);
    else cu.MemFree(productWorkspace_);
    productWorkspace_ = 0;
  }
  if (compute_ != nullptr) cu.StreamSynchronize(compute_);
  if (pool_ != nullptr) cu.MemPoolDestroy(pool_);
  for (CUstream* stream : {&compute_, &uploads_, &reads_}) {
    if (*stream != nullptr) cu.StreamDestroy(*stream);
    *stream = nullptr;
  }
  pool_ = nullptr;
  events_ = nullptr;
  pinned_ = nullptr;
  context_ = nullptr;
}

Memory& Driver::Buffer(double number) {
  Memory* found = buffers_.Find(number);
  if (found == nullptr) Refuse("buffer", "there is no such buffer");
  return *found;
}

Memory& Driver::Within(double number, size_t offset, size_t bytes, const char* call) {
  Memory& found = Buffer(number);
  if (bytes > found.bytes || offset > found.bytes - bytes)
    Refuse(call, "offset " + std::to_string(offset) + " and " + std::to_string(bytes) + " bytes leave a buffer of " +
                     std::to_string(found.bytes));
  return found;
}

CUdeviceptr Driver::AllocBytes(size_t bytes) {
  CUdeviceptr at = 0;
  const auto ask = [&] { return pool_ != nullptr ? cu.MemAllocFromPoolAsync(&at, bytes, pool_, compute_) : cu.MemAlloc(&at, bytes); };
  CUresult code = ask();
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    Trim();
    code = ask();
  }
  context_->Check(code, pool_ != nullptr ? "cuMemAllocFromPoolAsync" : "cuMemAlloc");
  unmarked_ = true;
  return at;
}

uint32_t Driver::Alloc(double wanted) {
  const size_t bytes = Whole(wanted, "alloc", "the number of bytes");
  if (bytes == 0) Refuse("alloc", "a buffer has at least one byte");
  context_->Enter();
  Memory made;
  made.at = AllocBytes(bytes);
  made.bytes = bytes;
  // From here on in the order of the kernels' stream.
  made.used = batch_;
  return buffers_.Add(std::move(made));
}

void Driver::Free(double buffer) {
  Memory& found = Buffer(buffer);
  context_->Enter();
  const CUdeviceptr at = Use(found);
  buffers_.Remove(static_cast<uint32_t>(buffer));
  if (pool_ != nullptr) {
    context_->Check(cu.MemFreeAsync(at, compute_), "cuMemFreeAsync");
    unmarked_ = true;
    return;
  }
  context_->Check(cu.StreamSynchronize(compute_), "cuStreamSynchronize");
  context_->Check(cu.MemFree(at), "cuMemFree");
}

void Driver::Trim() {
  context_->Check(cu.StreamSynchronize(compute_), "cuStreamSynchronize");
  if (pool_ != nullptr) context_->Check(cu.MemPoolTrimTo(pool_, 0), "cuMemPoolTrimTo");
  pinned_->Trim();
}

std::vector<double> Driver::GraphFacts() {
  return {static_cast<double>(graphs_->made), static_cast<double>(graphs_->launched), static_cast<double>(graphs_->updated),
          static_cast<double>(graphs_->off)};
}

std::vector<double> Driver::MemoryInfo() {
  context_->Enter();
  size_t free = 0, total = 0;
  context_->Check(cu.MemGetInfo(&free, &total), "cuMemGetInfo");
  uint64_t reserved = 0;
  if (pool_ != nullptr)
    context_->Check(cu.MemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved), "cuMemPoolGetAttribute");
  return {static_cast<double>(free), static_cast<double>(total), static_cast<double>(reserved)};
}

void Driver::WaitIn(CUstream stream, const Mark& mark) {
  if (!IsOver(mark)) context_->Check(cu.StreamWaitEvent(stream, mark.get(), 0), "cuStreamWaitEvent");
}

Mark Driver::Computed() {
  if (unmarked_ || marks_.empty()) {
    marks_.emplace_back(batch_, events_->Record(compute_));
    batch_++;
    unmarked_ = false;
  }
  return marks_.back().second;
}

Mark Driver::Used(const Memory& memory) {
  Unload();
  if (memory.used <= done_) return nullptr;
  for (const auto& [batch, mark] : marks_)
    if (batch >= memory.used) return mark;
  return Computed();
}

CUdeviceptr Driver::Use(Memory& memory) {
  if (memory.upload != nullptr) WaitIn(compute_, std::exchange(memory.upload, nullptr));
  if (memory.reading != nullptr) WaitIn(compute_, std::exchange(memory.reading, nullptr));
  memory.used = batch_;
  return memory.at;
}

void Driver::Unstage() {
  stagedBytes_ -= staged_.front().bytes;
  staged_.pop_front();
}

std::shared_ptr<Pinned> Driver::Stage(size_t bytes, size_t* offset) {
  while (!staged_.empty() && IsOver(staged_.front().mark)) Unstage();
  while (!staged_.empty() && stagedBytes_ + bytes > kMostStaged) {
    context_->Check(cu.EventSynchronize(staged_.front().mark.get()), "cuEventSynchronize");
    Unstage();
  }
  if (stage_ == nullptr || stage_->bytes - stageUsed_ < bytes) {
    // Blocks are as large as a few uploads need; a program of small ones pins little.
    stage_ = nullptr;
    stage_ = pinned_->Take(std::min(kStageBytes, std::max<size_t>(4 * bytes, 1 << 16)));
    stageUsed_ = 0;
  }
  *offset = stageUsed_;
  // Places of 256 bytes: the device copies those fastest.
  stageUsed_ = std::min(stage_->bytes, (stageUsed_ + bytes + 255) / 256 * 256);
  return stage_;
}

void Driver::Upload(double buffer, double from, const void* data, size_t bytes) {
  const size_t offset = Whole(from, "upload", "the offset");
  Memory& memory = Within(buffer, offset, bytes, "upload");
  context_->Enter();
  if (bytes == 0) return;
  WaitIn(uploads_, Used(memory));
  WaitIn(uploads_, memory.reading);
  for (size_t at = 0; at < bytes; at += kStageBytes) {
    const size_t part = std::min(kStageBytes, bytes - at);
    size_t place = 0;
    const std::shared_ptr<Pinned> stage = Stage(part, &place);
    char* host = static_cast<char*>(stage->data) + place;
    std::memcpy(host, static_cast<const char*>(data) + at, part);
    context_->Check(cu.MemcpyHtoDAsync(memory.at + offset + at, host, part, uploads_), "cuMemcpyHtoDAsync");
    memory.upload = events_->Record(uploads_);
    staged_.push_back({memory.upload, stage, part});
    stagedBytes_ += part;
  }
}

Reading Driver::ReadLater(double buffer, double from, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  Memory& memory = Within(buffer, offset, bytes, "read");
  context_->Enter();
  Reading reading;
  if (bytes == 0) return reading;
  reading.data = pinned_->Take(bytes);
  WaitIn(reads_, Used(memory));
  WaitIn(reads_, memory.upload);
  context_->Check(cu.MemcpyDtoHAsync(reading.data->data, memory.at + offset, bytes, reads_), "cuMemcpyDtoHAsync");
  reading.mark = memory.reading = events_->Record(reads_);
  return reading;
}

void Driver::Read(double buffer, double from, void* into, size_t bytes) {
  const size_t offset = Whole(from, "read", "the offset");
  Within(buffer, offset, bytes, "read");
  std::deque<std::pair<size_t, Reading>> parts;
  const auto finish = [&] {
    const auto [at, reading] = std::move(parts.front());
    parts.pop_front();
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (!IsOver(reading.mark) && std::chrono::steady_clock::now() < until) {
    }
    context_->Check(cu.EventSynchronize(reading.mark.get()), "cuEventSynchronize");
    std::memcpy(static_cast<char*>(into) + at, reading.data->data, std::min(kReadBytes, bytes - at));
  };
  for (size_t at = 0; at < bytes; at += kReadBytes) {
    parts.emplace_back(at, ReadLater(buffer, from + static_cast<double>(at), std::min(kReadBytes, bytes - at)));
    if (parts.size() > 2) finish();
  }
  while (!parts.empty()) finish();
  context_->Enter();
}

std::vector<Mark> Driver::Everything() {
  context_->Enter();
  return {Computed(), events_->Record(uploads_), events_->Record(reads_)};
}

int Driver::WaitFor(const Context& context, const std::vector<Mark>& marks) {
  try {
    context.Enter();
    for (const Mark& mark : marks) context.Check(cu.EventSynchronize(mark.get()), "cuEventSynchronize");
    // A fault of others that share the device.
    context.Enter();
    return CUDA_SUCCESS;
  } catch (const NativeError& error) {
    return error.code;
  }
}

uint32_t Driver::Build(std::string ptx) {
  context_->Enter();
  const auto job = std::make_shared<Compiling>(context_);
  threads_->Add(job, [context = context_, ptx = std::move(ptx)](Job& made, OfThread&) {
    context->Enter();
    std::string info(kLogBytes, '\0'), errors(kLogBytes, '\0');
    int options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                     CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {&info[0], reinterpret_cast<void*>(kLogBytes), &errors[0], reinterpret_cast<void*>(kLogBytes)};
    const CUresult code = cu.ModuleLoadDataEx(&static_cast<Compiling&>(made).module, ptx.c_str(), 4, options, values);
    if (code == CUDA_SUCCESS) return;
    static_cast<Compiling&>(made).module = nullptr;
    errors.back() = '\0';
    throw NativeError{context->Note(code), "cuModuleLoadDataEx", -1, errors.c_str()};
  });
  return modules_.Add(job);
}

std::shared_ptr<Compiling>& Driver::Find(double number) {
  std::shared_ptr<Compiling>* found = modules_.Find(number);
  if (found == nullptr) Refuse("module", "there is no such module");
  return *found;
}

std::shared_ptr<Job> Driver::JobOf(double number) { return Find(number); }

void Driver::Finish(double number) {
  const std::shared_ptr<Compiling> job = Find(number);
  job->Wait();
  if (job->error.code != CUDA_SUCCESS) throw job->error;
}

void Driver::Unload() {
  while (!marks_.empty() && IsOver(marks_.front().second)) {
    done_ = marks_.front().first;
    marks_.pop_front();
  }
  while (!leaving_.empty() && leaving_.front().first <= done_) leaving_.pop_front();
}

void Driver::ReleaseModule(double number) {
  leaving_.emplace_back(batch_, Find(number));
  modules_.Remove(static_cast<uint32_t>(number));
  Unload();
}

uint32_t Driver::MakeKernel(double number, const std::string& name, const double* layout, size_t count) {
  if (count < 8 || count % 2 != 0) Refuse("kernel", "the layout is not eight numbers and two for each argument");
  Kernel made;
  unsigned threads = 1;
  for (int axis = 0; axis < 3; axis++) {
    made.grid[axis] = static_cast<unsigned>(Whole(layout[axis], "kernel", "the groups", maxGrid_[axis]));
    made.group[axis] = static_cast<unsigned>(Whole(layout[3 + axis], "kernel", "the threads of a group", maxGroup_));
    if (made.grid[axis] == 0 || made.group[axis] == 0) Refuse("kernel", "there are no groups, or no threads in them");
    threads = static_cast<unsigned>(std::min<size_t>(Times(threads, made.group[axis], "kernel"), UINT32_MAX));
  }
  made.sharedBytes = static_cast<unsigned>(Whole(layout[6], "kernel", "the bytes of shared memory", 1 << 20));
  made.parameterBytes = Whole(layout[7], "kernel", "the bytes of parameters", kMostParameters);
  for (size_t i = 8; i < count; i += 2) {
    const size_t at = Whole(layout[i], "kernel", "the place of an argument", kMostParameters);
    const size_t bytes = Whole(layout[i + 1], "kernel", "the bytes of an argument", 8);
    if ((bytes & (bytes - 1)) != 0) Refuse("kernel", "an argument has " + std::to_string(bytes) + " bytes, not 1, 2, 4 or 8");
    if (at + (bytes == 0 ? 8 : bytes) > made.parameterBytes) Refuse("kernel", "an argument lies outside of the parameters");
    made.arguments.push_back({at, bytes});
    made.cells += bytes == 0 ? 3 : 1;
  }
  Finish(number);
  context_->Enter();
  made.module = Find(number);
  context_->Check(cu.ModuleGetFunction(&made.function, made.module->module, name.c_str()), "cuModuleGetFunction");
  int most = 0;
  context_->Check(cu.FuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, made.function), "cuFuncGetAttribute");
  if (threads > static_cast<unsigned>(most))
    throw NativeError{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "cuFuncGetAttribute", -1,
                      "the device runs this kernel with at most " + std::to_string(most) + " threads in a group, not " +
                          std::to_string(threads)};
  if (made.sharedBytes > kUsualShared)
    context_->Check(cu.FuncSetAttribute(made.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(made.sharedBytes)),
                    "cuFuncSetAttribute");
  return kernels_.Add(std::move(made));
}

void Driver::ReleaseKernel(double number) {
  Kernel* kernel = kernels_.Find(number);
  if (kernel == nullptr) Refuse("kernel", "there is no such kernel");
  graphs_->Forget(static_cast<uint32_t>(number));
  leaving_.emplace_back(batch_, kernel->module);
  kernels_.Remove(static_cast<uint32_t>(number));
  Unload();
}

std::vector<double> Driver::Facts(double number) {
  Kernel* kernel = kernels_.Find(number);
  if (kernel == nullptr) Refuse("kernel", "there is no such kernel");
  context_->Enter();
  std::vector<double> facts;
  for (const int what : {CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                         CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK}) {
    int value = 0;
    context_->Check(cu.FuncGetAttribute(&value, what, kernel->function), "cuFuncGetAttribute");
    facts.push_back(value);
  }
  return facts;
}
