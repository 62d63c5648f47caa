/** Graphs of kernels: made, made ready, changed, launched. */
#include "sim.h"

using sim::Find;
using sim::handles;

namespace {

/** The place of a node in a graph, or -1. */
int64_t PlaceOf(const sim::Graph& graph, const void* node) {
  for (size_t i = 0; i < graph.nodes.size(); i++)
    if (&graph.nodes[i] == node) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace

SIM_API cuGraphCreate(CUgraph* made, unsigned flags) {
  SIM_DEVICE("cuGraphCreate");
  if (!sim::settings().graphs) return CUDA_ERROR_NOT_SUPPORTED;
  if (made == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<sim::Graph>();
  *made = reinterpret_cast<CUgraph>(graph.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().graphs[graph.get()] = graph;
  return 0;
}

SIM_API cuGraphDestroy(CUgraph handle) {
  SIM_CALL("cuGraphDestroy");
  const std::lock_guard<std::mutex> lock(handles().guard);
  return handles().graphs.erase(handle) == 1 ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API cuGraphAddKernelNode(CUgraphNode* made, CUgraph handle, const CUgraphNode* after, size_t count,
                             const CUkernelNodeParams* params) {
  SIM_DEVICE("cuGraphAddKernelNode");
  auto graph = Find(handles().graphs, handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (made == nullptr || params == nullptr || (count > 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (PlaceOf(*graph, after[i]) < 0) return CUDA_ERROR_INVALID_VALUE;
  // Kernels that do not wait for each other may run in any order: the engine has none.
  if (!graph->nodes.empty() && (count != 1 || PlaceOf(*graph, after[0]) + 1 != static_cast<int64_t>(graph->nodes.size())))
    return CUDA_ERROR_INVALID_VALUE;
  sim::Launch launch;
  if (const CUresult code = sim::MakeLaunch(*params, &launch)) return code;
  graph->nodes.push_back(std::move(launch));
  *made = reinterpret_cast<CUgraphNode>(&graph->nodes.back());
  return 0;
}

SIM_API cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph handle, unsigned long long flags) {
  SIM_DEVICE("cuGraphInstantiate");
  auto graph = Find(handles().graphs, handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (made == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<sim::GraphExec>();
  exec->of = graph;
  exec->launches.assign(graph->nodes.begin(), graph->nodes.end());
  *made = reinterpret_cast<CUgraphExec>(exec.get());
  const std::lock_guard<std::mutex> lock(handles().guard);
  handles().execs[exec.get()] = exec;
  return 0;
}

SIM_API cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node, const CUkernelNodeParams* params) {
  SIM_DEVICE("cuGraphExecKernelNodeSetParams");
  auto exec = Find(handles().execs, handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const int64_t place = PlaceOf(*exec->of, node);
  if (place < 0 || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  sim::Launch launch;
  if (const CUresult code = sim::MakeLaunch(*params, &launch)) return code;
  sim::Launch& own = exec->launches[static_cast<size_t>(place)];
  // Older drivers refuse another kernel in the place of one.
  if (launch.function != own.function) return CUDA_ERROR_INVALID_VALUE;
  own = std::move(launch);
  return 0;
}

SIM_API cuGraphLaunch(CUgraphExec handle, CUstream order) {
  SIM_DEVICE("cuGraphLaunch");
  auto exec = Find(handles().execs, handle);
  auto stream = Find(handles().streams, order);
  if (exec == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // A kernel whose module was unloaded.
  for (const sim::Launch& launch : exec->launches)
    if (Find(handles().functions, launch.function.get()) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const sim::Launch& launch : exec->launches) sim::RunLaunch(launch, *stream);
  return 0;
}

SIM_API cuGraphExecDestroy(CUgraphExec handle) {
  SIM_CALL("cuGraphExecDestroy");
  const std::lock_guard<std::mutex> lock(handles().guard);
  return handles().execs.erase(handle) == 1 ? 0 : CUDA_ERROR_INVALID_HANDLE;
}
