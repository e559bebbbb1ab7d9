// Results of heed/c_api.h: a struct and all that it points to, in one allocation.
//
//   Given<heed_vectors> vectors;
//   vectors->values = vectors.copy(numbers);
//   *out = vectors.release();          // owned by the caller, until give_back(*out)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <type_traits>

namespace heed::bindings {

using ResultMemory = std::pmr::monotonic_buffer_resource;

// The pointer to the allocation is stored this far before the struct, so that give_back() finds it
// for any struct.
inline constexpr size_t kResultFront = alignof(std::max_align_t);

template <class T>
class Given {
 public:
  Given() : memory_(std::make_unique<ResultMemory>()) {
    static_assert(std::is_trivially_destructible_v<T>);
    auto* front = static_cast<char*>(memory_->allocate(kResultFront + sizeof(T), kResultFront));
    ResultMemory* memory = memory_.get();
    std::memcpy(front, &memory, sizeof memory);
    value_ = new (front + kResultFront) T{};
  }

  T* operator->() const { return value_; }

  // Room for n of them, all zero; NULL for none.
  template <class Item>
  Item* array(size_t n) {
    static_assert(std::is_trivially_destructible_v<Item>);
    if (n == 0) return nullptr;
    auto* items = static_cast<Item*>(memory_->allocate(n * sizeof(Item), alignof(Item)));
    std::uninitialized_value_construct_n(items, n);
    return items;
  }
  template <class Numbers>
  auto* copy(const Numbers& numbers) {
    auto* items = array<typename Numbers::value_type>(numbers.size());
    std::copy(numbers.begin(), numbers.end(), items);
    return items;
  }
  const char* text(std::string_view text) {
    char* bytes = array<char>(text.size() + 1);
    std::copy(text.begin(), text.end(), bytes);
    return bytes;
  }

  T* release() {
    memory_.release();
    return value_;
  }

 private:
  std::unique_ptr<ResultMemory> memory_;
  T* value_;
};

inline void give_back(const void* result) {
  if (!result) return;
  ResultMemory* memory = nullptr;
  std::memcpy(&memory, static_cast<const char*>(result) - kResultFront, sizeof memory);
  delete memory;
}

}  // namespace heed::bindings
