/** The state of the simulated driver: devices, streams, events, memory. Everything is found by address, and checked to be there. */
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cu.h"
#include "ptx/ptx.h"

namespace sim {

/** What POLYGRAD_CUDA_SIM says, as `name=value` separated by semicolons, read by the first cuInit. */
struct Settings {
  int devices = 1;
  /** Major times ten and minor. */
  int computeCapability = 80;
  int driver = 13000;
  std::string name = "Polygrad simulated card";
  uint64_t memory = uint64_t{4} << 30;
  uint64_t sharedOptIn = 163 * 1024;
  bool pools = true;
  bool graphs = true;
  /** Milliseconds that compiling a module takes at least. */
  int compileMs = 0;
  int computeMode = 0;
  /** Threads that touch the same shared byte between two barriers are a fault. */
  bool races = true;
};
const Settings& settings();

/** What an API call begins with: the failure it was told to have (POLYGRAD_CUDA_SIM_FAIL), or 0. */
CUresult Planned(const char* call);
/** True if cuInit went well. */
extern std::atomic<bool> started;

struct Block {
  size_t bytes = 0;
  /** Allocated, or to be, in the order of its stream. */
  std::atomic<bool> live{false};
  /** Null for memory without a pool. */
  struct Pool* pool = nullptr;
};

struct Device {
  int index = 0;
  std::mutex guard;
  int users = 0;
  uint64_t reserved = 0;
  /** The error that ended its context, 0 for none. */
  std::atomic<int> fault{0};
  std::map<uint64_t, std::shared_ptr<Block>> blocks;
  /** The live blocks as the interpreter wants them; null when that has changed. */
  std::shared_ptr<const std::vector<ptx_range>> ranges;

  std::shared_ptr<const std::vector<ptx_range>> Ranges();
  /** True if a live block holds the range. */
  bool Holds(uint64_t at, size_t bytes);
  bool Knows(uint64_t at, size_t bytes);
  void SetLive(uint64_t at, bool live);
};
Device* DeviceOf(int index);

struct Pool {
  Device* device = nullptr;
  /** Memory that was freed in the order of a stream, by size. */
  std::multimap<size_t, std::pair<uint64_t, void*>> free;
  uint64_t threshold = 0;
  uint64_t reserved = 0;
};

struct Event {
  std::mutex guard;
  std::condition_variable changed;
  /** Recordings asked for and carried out. */
  uint64_t asked = 0;
  uint64_t done = 0;
  std::chrono::steady_clock::time_point time;

  void Finish(uint64_t recording);
  void Wait(uint64_t recording);
};

/** Work in order, on a thread. */
class Stream {
 public:
  explicit Stream(Device* device) : device(device), thread_([this] { Run(); }) {}
  ~Stream();
  /** A task gives an error code; one that is not 0 ends the context. */
  void Add(std::function<int()> task);
  /** Tells waiters, whatever became of the context. */
  void AddAlways(std::function<void()> task);
  void Wait();

  Device* const device;

 private:
  void Run();
  std::mutex guard_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

struct Module {
  ptx_module* parsed = nullptr;
  Device* device = nullptr;
  ~Module() { ptx_free(parsed); }
};

struct Function {
  std::shared_ptr<Module> module;
  const ptx_entry* entry = nullptr;
  size_t dynamicShared = 48 * 1024;
};

/** A kernel with everything a launch needs. */
struct Launch {
  std::shared_ptr<Function> function;
  unsigned grid[3] = {1, 1, 1};
  unsigned group[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<char> parameters;
};

/** A launch with everything checked, or an error. */
CUresult MakeLaunch(const CUkernelNodeParams& params, Launch* launch);
void RunLaunch(const Launch& launch, Stream& stream);

/** Kernels in an order: each after those it was said to wait for, which were added before it. */
struct Graph {
  /** Their addresses are their handles. */
  std::deque<Launch> nodes;
};

/** A graph as it was when it was made ready. */
struct GraphExec {
  std::shared_ptr<Graph> of;
  std::vector<Launch> launches;
};

/** Handles that were given out and not taken back. */
struct Handles {
  std::mutex guard;
  std::map<void*, std::shared_ptr<Stream>> streams;
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<void*, std::shared_ptr<Pool>> pools;
  std::map<void*, std::shared_ptr<Module>> modules;
  std::map<void*, std::shared_ptr<Function>> functions;
  std::map<void*, std::shared_ptr<Graph>> graphs;
  std::map<void*, std::shared_ptr<GraphExec>> execs;
  std::map<uint64_t, size_t> pinned;
};
Handles& handles();

template <typename T>
std::shared_ptr<T> Find(std::map<void*, std::shared_ptr<T>>& among, const void* handle) {
  const std::lock_guard<std::mutex> lock(handles().guard);
  const auto found = among.find(const_cast<void*>(handle));
  return found == among.end() ? nullptr : found->second;
}

/** The device of the thread's context, or null. */
Device* Current();
void SetCurrent(Device* device);

}  // namespace sim

/** Begins an API call: its planned failure, an ended context. */
#define SIM_CALL(name)                                           \
  if (const CUresult planned = sim::Planned(name)) return planned; \
  if (!sim::started) return 3

/** The same, for calls that need a context. */
#define SIM_DEVICE(name)                       \
  SIM_CALL(name);                              \
  sim::Device* const device = sim::Current();  \
  if (device == nullptr) return 201;           \
  if (const int fault = device->fault) return fault

#if defined(_WIN32)
#define SIM_API extern "C" __declspec(dllexport) CUresult CU_CALL
#else
#define SIM_API extern "C" __attribute__((visibility("default"))) CUresult
#endif
