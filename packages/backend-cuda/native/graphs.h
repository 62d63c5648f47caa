/**
 * Batches that come again and again, as graphs: one call launches all their kernels. A batch is known by its kernels; where bindings, scalars
 * or groups differ from those of the last time, the graph's kernels are told. Where the driver has no graphs, or fails, everything is
 * launched kernel by kernel as before.
 */
#pragma once
#include <memory>
#include <vector>

#include "context.h"

/** A kernel with everything a launch needs. */
struct Launch {
  CUfunction function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned group[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
  std::vector<char> parameters;

  bool operator==(const Launch& other) const;
};

class Graphs {
 public:
  /** `wanted`: they may be used. */
  Graphs(std::shared_ptr<const Context> context, bool wanted);
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  class Graph;
  /** The graph of a batch of these kernels, to be launched, or null where they are launched one by one. Counts how often it was asked. */
  Graph* Find(const std::vector<uint32_t>& kernels);
  /** Launches the batch; false if that failed and nothing was launched. Throws a fault of the device. */
  bool Run(Graph* graph, const std::vector<Launch>& launches, CUstream stream);
  /** Forgets the graphs that hold a kernel, which goes. */
  void Forget(uint32_t kernel);

  /** Graphs made, batches launched as one, kernels told of something new. */
  uint64_t made = 0, launched = 0, updated = 0;
  /** The driver's error after which none is used, 0 for none; -1: not wanted, -2: the driver has none. */
  int off = 0;

 private:
  /** False, and none is used from now on, where the call failed. */
  bool Succeeded(CUresult code);
  bool Make(Graph* graph, const std::vector<Launch>& launches);

  const std::shared_ptr<const Context> context_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  uint64_t clock_ = 0;
};
