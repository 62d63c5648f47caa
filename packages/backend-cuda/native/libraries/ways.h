/** What a library of others has decided, by what that hangs on: bounded, because every batch may bring sizes that were not there before. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

/**
 * Two generations in place of an ordered list: when the young one is full it becomes the old one, which is forgotten. What is asked for again moves
 * to the young one.
 */
template <typename Way>
class Ways {
 public:
  using Key = std::vector<uint64_t>;

  /** What was kept under a key, or null. Good until the next call. */
  const Way* Find(const Key& key) {
    const auto young = young_.find(key);
    if (young != young_.end()) return young->second.get();
    const auto old = old_.find(key);
    if (old == old_.end()) return nullptr;
    std::unique_ptr<Way> way = std::move(old->second);
    old_.erase(old);
    return &Keep(key, std::move(way));
  }

  const Way& Keep(const Key& key, std::unique_ptr<Way> way) {
    if (young_.size() >= kMostOfEach) {
      old_ = std::move(young_);
      young_.clear();
    }
    return *(young_[key] = std::move(way));
  }

  void Clear() {
    young_.clear();
    old_.clear();
  }

 private:
  /** Twenty products of a network at fifty sizes. */
  static constexpr size_t kMostOfEach = 1024;
  std::map<Key, std::unique_ptr<Way>> young_, old_;
};
