#include "bench/limits.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/arena.h"
#include "base/philox.h"
#include "bench/read_pass.h"
#include "bench/row.h"
#include "kernels/matmul/gemm.h"
#include "kernels/rows/elementwise.h"

namespace heed::bench {
namespace {

int64_t cache_bytes(int name, int64_t guess) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : guess;
}

void fill(float* data, int64_t count) {
  Random random({1, 2, 3});
  constexpr int64_t kDistinct = 4099;
  for (int64_t i = 0; i < std::min(count, kDistinct); ++i) data[i] = random.uniform() - 0.5f;
  for (int64_t i = kDistinct; i < count; ++i) data[i] = data[i - kDistinct];
}

int64_t far_floats() { return far_bytes() / static_cast<int64_t>(sizeof(float)); }

struct Stream {
  int64_t floats = 0;   // of one array of one thread
  double moves = 0;     // how many arrays a pass reads, and how many it writes, together
  int64_t repeats = 1;  // passes in one call
};

// GB/s of all threads together running pass(arrays), each on separate arrays.
template <size_t arrays, class Pass>
double stream_gbs(ThreadPool& pool, const Stream& stream, double seconds, const Pass& pass) {
  const int64_t floats = stream.floats;
  using Share = std::array<float*, arrays>;
  const int64_t threads = pool.threads();
  std::vector<Share> shares(static_cast<size_t>(threads));
  Arena memory(arrays * shares.size() *
               (static_cast<size_t>(floats) * sizeof(float) + Arena::kAlignment));
  for (Share& share : shares) {
    for (float*& data : share) data = memory.allocate<float>(static_cast<size_t>(floats));
  }
  const auto on_all_threads = [&](const auto& work) {
    pool.parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) work(shares[static_cast<size_t>(t)]);
    });
  };
  on_all_threads([&](const Share& share) {
    for (float* data : share) fill(data, floats);
  });
  const double time = best_seconds(seconds, [&] {
    const Clock::time_point start = Clock::now();
    on_all_threads([&](const Share& share) {
      for (int64_t repeat = 0; repeat < stream.repeats; ++repeat) pass(share);
    });
    return seconds_since(start);
  });
  return sizeof(float) * stream.moves * static_cast<double>(floats * threads * stream.repeats) /
         time / 1e9;
}

// A copy with an ordinary vector loop, as ops write: their results stay in cache for the next op.
// (A store to an uncached line first loads it; that traffic is not counted. memcpy bypasses the
// caches and is faster.)
double copy_gbs(ThreadPool& pool, int64_t floats, int64_t repeats, double seconds) {
  const Stream stream{.floats = floats, .moves = 2, .repeats = repeats};
  return stream_gbs<2>(pool, stream, seconds, [floats](const std::array<float*, 2>& a) {
    kernels::scale(1.0f, a[0], a[1], floats);
  });
}

// Three arrays read and written in place, as an optimizer does.
double update_gbs(ThreadPool& pool, int64_t floats, double seconds) {
  const Stream stream{.floats = floats, .moves = 6};
  return stream_gbs<3>(pool, stream, seconds, [floats](const std::array<float*, 3>& a) {
    constexpr int64_t kPiece = 256;  // of each array alternately, so that all three stream
    for (int64_t i = 0; i < floats; i += kPiece) {
      const int64_t n = std::min(kPiece, floats - i);
      for (float* data : a) kernels::scale(1.0f, data + i, data + i, n);
    }
  });
}

}  // namespace

int64_t l2_cache_bytes() { return cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10); }
int64_t last_cache_bytes() { return cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 << 20); }

int64_t far_bytes(int64_t last_cache_bytes) {
  constexpr int64_t kLeast = 256 << 20, kMost = 512 << 20;
  return std::clamp(4 * last_cache_bytes, kLeast, kMost);
}

namespace {

constexpr int64_t kGemmSizes[] = {1024, 1536, 2048};  // square and large
constexpr int64_t kLargestGemm = 2048;

// Speeds of pass(), in 1e9 units of `work` per second: repeated for `seconds`, at least twice.
template <class Pass>
std::vector<double> speeds(double seconds, double work, const Pass& pass) {
  std::vector<double> found;
  best_seconds(seconds, [&] {
    const Clock::time_point start = Clock::now();
    pass();
    const double time = seconds_since(start);
    found.push_back(work / time);
    return time;
  });
  return found;
}

double best(const std::vector<double>& speeds) { return *std::ranges::max_element(speeds); }

}  // namespace

GemmLimit::GemmLimit(ThreadPool& pool)
    : pool_(pool), memory_(3 * kLargestGemm * kLargestGemm * sizeof(float)) {
  for (float** matrix : {&a_, &b_, &c_}) {
    *matrix = memory_.allocate<float>(kLargestGemm * kLargestGemm);
    fill(*matrix, kLargestGemm * kLargestGemm);
  }
}

std::vector<double> GemmLimit::sample_size(int64_t size, double seconds) {
  const double gflop = 2e-9 * static_cast<double>(size * size) * static_cast<double>(size);
  return speeds(seconds, gflop, [&] {
    kernels::gemm(pool_, {.transpose_b = true,
                          .m = size,
                          .n = size,
                          .k = size,
                          .a = a_,
                          .lda = size,
                          .b = b_,
                          .ldb = size,
                          .c = c_,
                          .ldc = size});
  });
}

std::vector<double> GemmLimit::sample(double seconds) {
  if (best_size_ > 0) return sample_size(best_size_, seconds);
  std::vector<double> fastest;
  for (const int64_t size : kGemmSizes) {
    std::vector<double> found = sample_size(size, seconds);
    if (!fastest.empty() && best(found) <= best(fastest)) continue;
    fastest = std::move(found), best_size_ = size;
  }
  return fastest;
}

// Larger than any cache; a model of many GB needs the rest of the memory.
constexpr int64_t kMostReadBytes = int64_t{1} << 30;

ReadLimit::ReadLimit(ThreadPool& pool, int64_t bytes)
    : pool_(pool),
      share_bytes_((std::min(bytes, kMostReadBytes) / pool.threads() / kReadPiece + 1) *
                   kReadPiece),
      memory_(static_cast<size_t>(share_bytes_ * pool.threads())),
      data_(memory_.allocate<std::byte>(static_cast<size_t>(share_bytes_ * pool.threads()))) {
  pool_.parallel_for(pool_.threads(), 1, [&](int64_t begin, int64_t end) {
    std::fill(data_ + begin * share_bytes_, data_ + end * share_bytes_, std::byte{1});
  });
}

std::vector<double> ReadLimit::sample(double seconds) {
  const int64_t threads = pool_.threads();
  std::vector<uint64_t> sums(static_cast<size_t>(threads));
  return speeds(seconds, 1e-9 * static_cast<double>(share_bytes_ * threads), [&] {
    pool_.parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        sums[static_cast<size_t>(t)] = read_pass(data_ + t * share_bytes_, share_bytes_);
      }
    });
  });
}

Limits better_of(const Limits& a, const Limits& b) {
  return {std::max(a.gemm_gflops, b.gemm_gflops), std::max(a.memory_gbs, b.memory_gbs),
          std::max(a.memory_update_gbs, b.memory_update_gbs),
          std::max(a.memory_read_gbs, b.memory_read_gbs), std::max(a.l2_gbs, b.l2_gbs)};
}

Limits measure_limits(ThreadPool& pool, double seconds) {
  const auto float_bytes = static_cast<int64_t>(sizeof(float));
  const int64_t share = far_floats() / pool.threads();
  Limits limits;
  limits.gemm_gflops = best(GemmLimit(pool).sample(seconds));
  limits.memory_gbs = copy_gbs(pool, share / 2, 1, seconds);
  limits.memory_update_gbs = update_gbs(pool, share / 3, seconds);
  limits.memory_read_gbs = best(ReadLimit(pool, far_bytes()).sample(seconds));
  // The two arrays of a thread fill half of L2. Repeated so that waking the threads is negligible,
  // but not for long: any interruption of a thread spoils a run.
  constexpr int64_t kRepeats = 20;
  limits.l2_gbs = copy_gbs(pool, l2_cache_bytes() / 4 / float_bytes, kRepeats, seconds);
  return limits;
}

}  // namespace heed::bench
