/** What the environment tells the simulator, and the failures it plans. */
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "sim.h"

namespace sim {

std::atomic<bool> started{false};

namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

Settings Read() {
  Settings s;
  const char* text = std::getenv("POLYGRAD_CUDA_SIM");
  for (const std::string& part : Split(text == nullptr ? "" : text, ';')) {
    const size_t at = part.find('=');
    if (at == std::string::npos) continue;
    const std::string name = part.substr(0, at), value = part.substr(at + 1);
    const auto number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "devices") s.devices = static_cast<int>(number);
    else if (name == "cc") s.computeCapability = static_cast<int>(number);
    else if (name == "driver") s.driver = static_cast<int>(number);
    else if (name == "name") s.name = value;
    else if (name == "memory") s.memory = number;
    else if (name == "shared") s.sharedOptIn = number;
    else if (name == "compile") s.compileMs = static_cast<int>(number);
    else if (name == "pools") s.pools = number != 0;
    else if (name == "graphs") s.graphs = number != 0;
    else if (name == "mode") s.computeMode = static_cast<int>(number);
    else if (name == "races") s.races = number != 0;
    else std::fprintf(stderr, "cuda-sim: no setting %s\n", name.c_str());
  }
  return s;
}

/** `call@n=code`: the nth call from now fails so; `call@n+=code`: all from the nth on. */
struct Failure {
  std::string call;
  uint64_t at;
  bool on;
  int code;
  uint64_t seen = 0;
};

std::mutex planGuard;
std::string planText;
std::vector<Failure> plan;

}  // namespace

const Settings& settings() {
  static const Settings read = Read();
  return read;
}

CUresult Planned(const char* call) {
  const char* text = std::getenv("POLYGRAD_CUDA_SIM_FAIL");
  if (text == nullptr) text = "";
  const std::lock_guard<std::mutex> lock(planGuard);
  if (planText != text) {
    planText = text;
    plan.clear();
    for (const std::string& part : Split(text, ';')) {
      const size_t at = part.find('@'), is = part.find('=');
      if (at == std::string::npos || is == std::string::npos || is < at) continue;
      plan.push_back({part.substr(0, at), std::strtoull(part.c_str() + at + 1, nullptr, 10), part[is - 1] == '+',
                      std::atoi(part.c_str() + is + 1)});
    }
  }
  for (Failure& f : plan) {
    if (f.call != "*" && f.call != call) continue;
    f.seen++;
    if (f.seen == f.at || (f.on && f.seen > f.at)) return f.code;
  }
  return 0;
}

Handles& handles() {
  // Never destroyed: threads may run while the process ends.
  static auto* all = new Handles;
  return *all;
}

Device* DeviceOf(int index) {
  static auto* all = [] {
    auto* list = new std::vector<std::unique_ptr<Device>>;
    for (int i = 0; i < settings().devices; i++) {
      list->push_back(std::make_unique<Device>());
      list->back()->index = i;
    }
    return list;
  }();
  return index < 0 || index >= static_cast<int>(all->size()) ? nullptr : (*all)[static_cast<size_t>(index)].get();
}

namespace {
thread_local Device* current = nullptr;
}
Device* Current() { return current; }
void SetCurrent(Device* device) { current = device; }

}  // namespace sim
