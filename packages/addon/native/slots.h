/** A table of objects that JavaScript knows by number. A released number may be used again. */
#pragma once
#include <cstdint>
#include <vector>

template <typename T>
class Slots {
 public:
  uint32_t Add(T value) {
    if (free_.empty()) {
      items_.push_back({std::move(value), true});
      return static_cast<uint32_t>(items_.size() - 1);
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    items_[index] = {std::move(value), true};
    return index;
  }

  /** The thing behind a number, or null. */
  T* Find(double index) {
    if (!(index >= 0 && index < static_cast<double>(items_.size()))) return nullptr;
    const auto at = static_cast<size_t>(index);
    if (static_cast<double>(at) != index) return nullptr;
    Item& item = items_[at];
    return item.used ? &item.value : nullptr;
  }

  void Remove(uint32_t index) {
    items_[index] = {T(), false};
    free_.push_back(index);
  }

  template <typename F>
  void Clear(F release) {
    for (Item& item : items_) {
      if (item.used) release(item.value);
    }
    items_.clear();
    free_.clear();
  }

 private:
  struct Item {
    T value;
    bool used;
  };
  std::vector<Item> items_;
  std::vector<uint32_t> free_;
};
