// What the tests of element-wise kernels share; for *_test.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace heed::kernels {

// Around the lengths of vectors and groups, where loops go wrong.
inline constexpr int64_t kOddSizes[] = {0, 1, 7, 17, 63, 64, 65, 127, 128, 129, 1000};

// n floats from a normal distribution, the same for the same seed.
inline std::vector<float> random_floats(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(generator);
  return values;
}

// Values at an address that no vector is aligned to, in a heap block that ends with them: a
// sanitizer sees a step beyond the end.
class Unaligned {
 public:
  explicit Unaligned(const std::vector<float>& values) {
    memory_.reserve(values.size() + 1);
    memory_.push_back(0);
    memory_.insert(memory_.end(), values.begin(), values.end());
  }
  float* data() { return memory_.data() + 1; }
  std::vector<float> values() const { return {memory_.begin() + 1, memory_.end()}; }

 private:
  std::vector<float> memory_;
};

}  // namespace heed::kernels
