// Sequence layers compared: our attention, oneDNN's recurrent layers and its convolution.
#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <unordered_map>

#include "base/clock.h"
#include "base/philox.h"
#include "bench/library_threads.h"
#include "bench/row.h"
#include "heed/bench.h"
#include "heed/error.h"
#include "kernels/simd/instruction_set.h"
#include "ops/ops.h"

namespace heed {
namespace {

struct Case {
  const LayersBenchOptions& options;
  int64_t n, d;

  int64_t rows() const { return options.sequences * n; }
  // Multiply-adds of a matrix [d, factor · d] with every row count as two operations.
  double product_flop(int64_t factor) const {
    return 2.0 * static_cast<double>(rows()) * static_cast<double>(factor * d * d);
  }
};

// ---- attention ----------------------------------------------------------------------------------

// Pairs of a query and a key that it sees, in one sequence. window 0: all of them.
double attended_pairs(int64_t n, int64_t window) {
  double pairs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = window > 0 ? std::max<int64_t>(0, i - window) : 0;
    const int64_t last = window > 0 ? std::min(n - 1, i + window) : n - 1;
    pairs += static_cast<double>(last - first + 1);
  }
  return pairs;
}

// Both matmuls: scores, and the sum of values.
double attention_flop(const Case& c, int64_t window) {
  return 4.0 * static_cast<double>(c.options.sequences) * attended_pairs(c.n, window) *
         static_cast<double>(c.d);
}

float* random_floats(Arena& memory, int64_t count, Random& random) {
  constexpr int64_t kDistinct = 4099;
  float* values = memory.allocate<float>(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[i] = i < kDistinct ? 0.1f * (random.uniform() - 0.5f) : values[i - kDistinct];
  }
  return values;
}

struct AttentionKind {
  int64_t window = 0;
  bool projections = false;  // with the q, k, v and output projections
};

double attention_seconds(const Case& c, const AttentionKind& kind, ThreadPool& pool) {
  constexpr int64_t kHeadDim = 64;  // as usual, where the width allows it
  const int64_t heads = c.d % kHeadDim == 0 ? c.d / kHeadDim : 1;
  const int64_t rows = c.rows(), numbers = 3 * rows * c.d + 4 * c.d * c.d;
  Arena inputs(static_cast<size_t>(numbers) * sizeof(float) + 4 * Arena::kAlignment);
  Random random({.seed = c.options.seed, .site = 4});
  const Var x{Mat(random_floats(inputs, 3 * rows * c.d, random), rows, 3 * c.d)};
  const Linear qkv{{ConstMat(random_floats(inputs, 3 * c.d * c.d, random), 3 * c.d, c.d)}};
  const Linear out{{ConstMat(random_floats(inputs, c.d * c.d, random), c.d, c.d)}};
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s <= c.options.sequences; ++s) {
    offsets.push_back(static_cast<int32_t>(s * c.n));
  }
  AttentionOptions options;
  options.heads = options.kv_heads = static_cast<int>(heads);
  options.head_dim = static_cast<int>(c.d / heads);
  options.window = kind.window, options.symmetric = kind.window > 0;
  const auto run = [&](Ctx& ctx) {
    const Var first{Mat(x.value.data, rows, c.d)};
    const Var made = kind.projections ? linear(ctx, first, qkv) : x;
    const auto [q, k, v] = split<3>(ctx, made, {c.d, c.d, c.d});
    const Var mixed = attention(ctx, {q, k, v, offsets, offsets}, options);
    if (kind.projections) linear(ctx, mixed, out);
  };
  Arena plan = Arena::measuring();
  Ctx measuring{pool, plan};
  run(measuring);
  Arena arena(plan.peak_bytes());
  return bench::best_seconds(c.options.seconds_per_row, [&] {
    arena.rewind({0});
    Ctx ctx{pool, arena};
    const Clock::time_point start = Clock::now();
    run(ctx);
    return seconds_since(start);
  });
}

// ---- oneDNN's layers ----------------------------------------------------------------------------

using dnnl::memory;

// A primitive and its operands, whose values and layout do not affect the time.
class LibraryLayer {
 public:
  explicit LibraryLayer(uint64_t seed) : random_({.seed = seed, .site = 5}) {}

  const dnnl::engine& engine() const { return engine_; }
  void set(dnnl::primitive primitive) { primitive_ = std::move(primitive); }
  void add(int name, const memory::desc& desc) {
    memory operand(desc, engine_);
    auto* values = static_cast<float*>(operand.get_data_handle());
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) {
      values[i] = 0.1f * (random_.uniform() - 0.5f);
    }
    operands_.emplace(name, std::move(operand));
  }
  double seconds(double budget) {
    return bench::best_seconds(budget, [&] {
      const Clock::time_point start = Clock::now();
      primitive_.execute(stream_, operands_);
      stream_.wait();
      return seconds_since(start);
    });
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> operands_;
  Random random_;
};

memory::desc floats(const memory::dims& dims, memory::format_tag tag) {
  return {dims, memory::data_type::f32, tag};
}

// The operands that both kinds have: inputs and outputs [time, sequences, d], a matrix for the
// inputs and one for the state before, and a bias.
template <class Descriptor>
void add_recurrent_operands(LibraryLayer& layer, const Descriptor& descriptor) {
  layer.add(DNNL_ARG_SRC_LAYER, descriptor.src_layer_desc());
  layer.add(DNNL_ARG_WEIGHTS_LAYER, descriptor.weights_layer_desc());
  layer.add(DNNL_ARG_WEIGHTS_ITER, descriptor.weights_iter_desc());
  layer.add(DNNL_ARG_BIAS, descriptor.bias_desc());
  layer.add(DNNL_ARG_DST_LAYER, descriptor.dst_layer_desc());
}

struct RecurrentShapes {
  memory::desc sequence, weights, bias, none;

  RecurrentShapes(const Case& c, int64_t gates)
      : sequence(floats({c.n, c.options.sequences, c.d}, memory::format_tag::tnc)),
        weights(floats({1, 1, c.d, gates, c.d}, memory::format_tag::any)),
        bias(floats({1, 1, gates, c.d}, memory::format_tag::ldgo)) {}
};

constexpr auto kInference = dnnl::prop_kind::forward_inference;
constexpr auto kForwards = dnnl::rnn_direction::unidirectional_left2right;

double lstm_seconds(const Case& c) {
  using Lstm = dnnl::lstm_forward;
  LibraryLayer layer(c.options.seed);
  const RecurrentShapes s(c, 4);
  const Lstm::desc shape(kInference, kForwards, s.sequence, s.none, s.none, s.weights, s.weights,
                         s.bias, s.sequence, s.none, s.none);
  const Lstm::primitive_desc descriptor(shape, layer.engine());
  add_recurrent_operands(layer, descriptor);
  layer.set(Lstm(descriptor));
  return layer.seconds(c.options.seconds_per_row);
}

double gru_seconds(const Case& c) {
  using Gru = dnnl::gru_forward;
  LibraryLayer layer(c.options.seed);
  const RecurrentShapes s(c, 3);
  const Gru::desc shape(kInference, kForwards, s.sequence, s.none, s.weights, s.weights, s.bias,
                        s.sequence, s.none);
  const Gru::primitive_desc descriptor(shape, layer.engine());
  add_recurrent_operands(layer, descriptor);
  layer.set(Gru(descriptor));
  return layer.seconds(c.options.seconds_per_row);
}

double convolution_seconds(const Case& c) {
  using Convolution = dnnl::convolution_forward;
  LibraryLayer layer(c.options.seed);
  const int64_t kernel = c.options.kernel, left = (kernel - 1) / 2;
  const memory::desc sequence = floats({c.options.sequences, c.d, c.n}, memory::format_tag::any);
  const Convolution::desc shape(kInference, dnnl::algorithm::convolution_auto, sequence,
                                floats({c.d, c.d, kernel}, memory::format_tag::any),
                                floats({c.d}, memory::format_tag::x), sequence, /*strides=*/{1},
                                /*padding_l=*/{left}, /*padding_r=*/{kernel - 1 - left});
  const Convolution::primitive_desc descriptor(shape, layer.engine());
  layer.add(DNNL_ARG_SRC, descriptor.src_desc());
  layer.add(DNNL_ARG_WEIGHTS, descriptor.weights_desc());
  layer.add(DNNL_ARG_BIAS, descriptor.bias_desc());
  layer.add(DNNL_ARG_DST, descriptor.dst_desc());
  layer.set(Convolution(descriptor));
  return layer.seconds(c.options.seconds_per_row);
}

// ---- the table ----------------------------------------------------------------------------------

struct Kind {
  const char* name;
  double (*flop)(const Case&);
  int64_t (*steps)(const Case&);
  int64_t (*path)(const Case&);
  double (*seconds)(const Case&, ThreadPool&);
};

int64_t one(const Case&) { return 1; }
int64_t length_of(const Case& c) { return c.n; }

constexpr Kind kKinds[] = {
    {"self-attention", [](const Case& c) { return attention_flop(c, 0); }, one, one,
     [](const Case& c, ThreadPool& pool) { return attention_seconds(c, {}, pool); }},
    {"self-attention, projections",
     [](const Case& c) { return attention_flop(c, 0) + c.product_flop(4); }, one, one,
     [](const Case& c, ThreadPool& pool) {
       return attention_seconds(c, {.projections = true}, pool);
     }},
    {"restricted self-attention", [](const Case& c) { return attention_flop(c, c.options.window); },
     one, [](const Case& c) { return std::max<int64_t>(1, (c.n - 2) / c.options.window + 1); },
     [](const Case& c, ThreadPool& pool) {
       return attention_seconds(c, {.window = c.options.window}, pool);
     }},
    {"recurrent, LSTM", [](const Case& c) { return c.product_flop(8); }, length_of, length_of,
     [](const Case& c, ThreadPool&) { return lstm_seconds(c); }},
    {"recurrent, GRU", [](const Case& c) { return c.product_flop(6); }, length_of, length_of,
     [](const Case& c, ThreadPool&) { return gru_seconds(c); }},
    {"convolution", [](const Case& c) { return c.product_flop(c.options.kernel); }, one,
     // Dilated: each layer has gaps as wide as the receptive field of the one below.
     [](const Case& c) {
       int64_t layers = 1;
       for (int64_t seen = c.options.kernel; seen < c.n && c.options.kernel > 1; ++layers) {
         seen *= c.options.kernel;
       }
       return layers;
     },
     [](const Case& c, ThreadPool&) { return convolution_seconds(c); }},
};

void check(const LayersBenchOptions& o) {
  constexpr int64_t kMost = 1 << 16;
  const auto fits = [](int64_t size) { return size >= 1 && size <= kMost; };
  const bool fine = !o.lengths.empty() && !o.widths.empty() &&
                    std::all_of(o.lengths.begin(), o.lengths.end(), fits) &&
                    std::all_of(o.widths.begin(), o.widths.end(), fits) && fits(o.window) &&
                    fits(o.kernel) && fits(o.sequences);
  if (fine) return;
  throw Error(
      ErrorCode::invalid_argument,
      "lengths, widths, window, kernel and sequences must be from 1 to " + std::to_string(kMost),
      "for example --length 256 --length 1024 --width 512");
}

}  // namespace

LayersBench bench_layers(const LayersBenchOptions& options) {
  check(options);
  ThreadPool pool(options.threads);
  const bench::LibraryThreads library_threads(pool.threads());
  LayersBench result{.threads = pool.threads(),
                     .instruction_set = kernels::instruction_set(),
                     .options = options,
                     .rows = {}};
  const auto count =
      static_cast<int>(options.widths.size() * options.lengths.size() * std::size(kKinds));
  for (const int64_t width : options.widths) {
    for (const int64_t length : options.lengths) {
      const Case c{options, length, width};
      for (const Kind& kind : kKinds) {
        if (options.progress) {
          options.progress(kind.name, static_cast<int>(result.rows.size()) + 1, count);
        }
        LayersBenchRow row{.layer = kind.name, .length = length, .width = width};
        double seconds = 0;
        try {
          seconds = kind.seconds(c, pool);
        } catch (const dnnl::error& error) {
          throw Error(ErrorCode::unsupported,
                      std::string("oneDNN has no ") + kind.name + " here: " + error.what(),
                      "use other lengths and widths");
        }
        row.ms = 1e3 * seconds;
        row.gflop = kind.flop(c) / 1e9;
        row.gflops = row.gflop / seconds;
        row.sequential_steps = kind.steps(c), row.path_length = kind.path(c);
        result.rows.push_back(std::move(row));
      }
    }
  }
  return result;
}

}  // namespace heed
