#include "graphs.h"

#include <algorithm>

namespace {

/** A batch of fewer kernels is launched as fast by itself. */
constexpr size_t kLeastKernels = 4;
constexpr size_t kMostKernels = 4096;
/** The third time a batch comes it is made a graph: two are common, for warming up. */
constexpr uint64_t kTimes = 3;
constexpr size_t kMostGraphs = 64;

/** What the driver is given for a launch. It points into the launch and into itself. */
struct NodeParams {
  size_t bytes;
  void* extra[5];
  CUkernelNodeParams node;

  explicit NodeParams(const Launch& launch)
      : bytes(launch.parameters.size()),
        extra{LaunchParamPointer(), const_cast<char*>(launch.parameters.data()), LaunchParamSize(), &bytes, LaunchParamEnd()},
        node{launch.function, launch.grid[0],     launch.grid[1],     launch.grid[2], launch.group[0],
             launch.group[1], launch.group[2],    launch.sharedBytes, nullptr,        launch.parameters.empty() ? nullptr : extra} {}
  NodeParams(const NodeParams&) = delete;
  NodeParams& operator=(const NodeParams&) = delete;
};

}  // namespace

bool Launch::operator==(const Launch& other) const {
  return function == other.function && sharedBytes == other.sharedBytes && std::equal(grid, grid + 3, other.grid) &&
         std::equal(group, group + 3, other.group) && parameters == other.parameters;
}

class Graphs::Graph {
 public:
  explicit Graph(std::vector<uint32_t> kernels) : kernels(std::move(kernels)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    // Either may be in flight: the driver lets it end first.
    if (exec != nullptr) cu.GraphExecDestroy(exec);
    if (graph != nullptr) cu.GraphDestroy(graph);
  }

  const std::vector<uint32_t> kernels;
  uint64_t times = 0;
  uint64_t last = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<CUgraphNode> nodes;
  /** As the nodes have them. */
  std::vector<Launch> launches;
};

Graphs::Graphs(std::shared_ptr<const Context> context, bool wanted) : context_(std::move(context)) {
  if (!wanted) off = -1;
  else if (!HasGraphs()) off = -2;
}

Graphs::~Graphs() { context_->EnterAnyway(); }

Graphs::Graph* Graphs::Find(const std::vector<uint32_t>& kernels) {
  if (off != 0 || kernels.size() < kLeastKernels || kernels.size() > kMostKernels) return nullptr;
  clock_++;
  const auto found = std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& g) { return g->kernels == kernels; });
  if (found == graphs_.end()) {
    if (graphs_.size() >= kMostGraphs)
      graphs_.erase(std::min_element(graphs_.begin(), graphs_.end(), [](const auto& a, const auto& b) { return a->last < b->last; }));
    graphs_.push_back(std::make_unique<Graph>(kernels));
    graphs_.back()->times = 1;
    graphs_.back()->last = clock_;
    return nullptr;
  }
  (*found)->last = clock_;
  return ++(*found)->times < kTimes ? nullptr : found->get();
}

bool Graphs::Succeeded(CUresult code) {
  if (code == CUDA_SUCCESS) return true;
  // A fault is everybody's; anything else is of graphs alone.
  const CUresult noted = context_->Note(code);
  if (IsFatal(noted)) throw NativeError{noted, "cuGraphLaunch"};
  off = code;
  graphs_.clear();
  return false;
}

bool Graphs::Make(Graph* g, const std::vector<Launch>& launches) {
  if (!Succeeded(cu.GraphCreate(&g->graph, 0))) return false;
  for (const Launch& launch : launches) {
    const NodeParams params(launch);
    CUgraphNode node = nullptr;
    const CUgraphNode* before = g->nodes.empty() ? nullptr : &g->nodes.back();
    if (!Succeeded(cu.GraphAddKernelNode(&node, g->graph, before, before == nullptr ? 0 : 1, &params.node))) return false;
    g->nodes.push_back(node);
  }
  if (!Succeeded(cu.GraphInstantiate(&g->exec, g->graph, 0))) return false;
  g->launches = launches;
  made++;
  return true;
}

bool Graphs::Run(Graph* g, const std::vector<Launch>& launches, CUstream stream) {
  if (g->exec == nullptr) {
    if (!Make(g, launches)) return false;
  } else {
    for (size_t i = 0; i < launches.size(); i++) {
      if (g->launches[i] == launches[i]) continue;
      const NodeParams params(launches[i]);
      if (!Succeeded(cu.GraphExecKernelNodeSetParams(g->exec, g->nodes[i], &params.node))) return false;
      g->launches[i] = launches[i];
      updated++;
    }
  }
  if (!Succeeded(cu.GraphLaunch(g->exec, stream))) return false;
  launched++;
  return true;
}

void Graphs::Forget(uint32_t kernel) {
  const auto has = [&](const auto& g) { return std::find(g->kernels.begin(), g->kernels.end(), kernel) != g->kernels.end(); };
  graphs_.erase(std::remove_if(graphs_.begin(), graphs_.end(), has), graphs_.end());
}
