#include "ops/table/op_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace heed::reference {
namespace {

// kernels/rows/dropout.h in the reader's own words: 128 elements share 16 blocks of 128 bits. Each
// block holds eight 16-bit numbers; the n-th of them (from the lowest of word 0) goes to element
// 16 n + (block's place among the 16).
double dropout_factor(const RandomKey& key, float p, uint64_t element) {
  const uint64_t group = element / 128, within = element % 128;
  const std::array<uint32_t, 4> words = random_block(key, 16 * group + within % 16);
  const uint64_t half = within / 16;
  const uint32_t word = words[half / 2];
  const uint32_t bits = half % 2 == 0 ? word & 0xFFFF : word >> 16;
  const auto threshold = static_cast<uint32_t>(std::lround(65536.0 * double{p}));
  return bits >= threshold ? 65536.0 / (65536.0 - threshold) : 0.0;
}

// Each row of probabilities, numbered by (query row, head), has 2^20 groups of 128 keys to itself.
double attention_factor(const RandomKey& key, float p, uint64_t probability_row, uint64_t at) {
  return dropout_factor(key, p, (probability_row << 27) + at);
}

// -log softmax(z / temperature) of one row.
std::vector<double> surprises(const Matrix& z, int64_t row, double temperature) {
  std::vector<double> result(static_cast<size_t>(z.cols));
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < z.cols; ++c) max = std::max(max, z.at(row, c) / temperature);
  double sum = 0;
  for (int64_t c = 0; c < z.cols; ++c) sum += std::exp(z.at(row, c) / temperature - max);
  for (int64_t c = 0; c < z.cols; ++c) {
    result[static_cast<size_t>(c)] = max + std::log(sum) - z.at(row, c) / temperature;
  }
  return result;
}

// Raffel et al. 2020, as Hugging Face computes it: the logarithm in float.
int relative_bucket(int64_t key_minus_query, const T5Buckets& rule) {
  const bool ahead = key_minus_query > 0;
  if (!rule.bidirectional && ahead) return 0;
  const int64_t distance = std::abs(key_minus_query);
  const int per_direction = rule.bidirectional ? rule.buckets / 2 : rule.buckets;
  const int base = rule.bidirectional && ahead ? per_direction : 0;
  const int exact = per_direction / 2;
  if (distance < exact) return base + static_cast<int>(distance);
  const float numerator = std::log(static_cast<float>(distance) / static_cast<float>(exact));
  const auto denominator =
      static_cast<float>(std::log(static_cast<double>(rule.max_distance) / exact));
  const auto beyond =
      static_cast<int>(numerator / denominator * static_cast<float>(per_direction - exact));
  return base + std::min(exact + beyond, per_direction - 1);
}

// Whether the query at position i may look at key j, both counted within their sequence.
struct Visibility {
  const AttentionOptions& options;
  int64_t first_query_row, first_key_row;

  bool operator()(int64_t query, int64_t i, int64_t j) const {
    if (options.causal && j > i) return false;
    if (options.window == 0) return true;
    if (is_global(first_query_row + query) || is_global(first_key_row + j)) return true;
    if (options.symmetric) return std::abs(i - j) <= options.window;
    return j > i - options.window;
  }
  bool is_global(int64_t row) const {
    return !options.global_tokens.empty() && options.global_tokens[static_cast<size_t>(row)] != 0;
  }
};

double score_bias(const AttentionInputs& in, const AttentionOptions& o, int head,
                  int64_t key_minus_query) {
  if (o.t5_bias) return in.t5_table->at(relative_bucket(key_minus_query, o.t5_bias->rule), head);
  if (o.alibi_slopes.empty()) return 0;
  return -double{o.alibi_slopes[static_cast<size_t>(head)]} *
         static_cast<double>(std::abs(key_minus_query));
}

}  // namespace

Matrix::Matrix(ConstMat view) : Matrix(view.rows, view.cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) at(r, c) = view.row(r)[c];
  }
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

Matrix activate(const Matrix& x, Activation activation) {
  Matrix y = x;
  for (double& value : y.values) value = activate(activation, value);
  return y;
}

Matrix add(const Matrix& a, const Matrix& b) {
  Matrix y = a;
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += b.values[i];
  return y;
}

Matrix scale(const Matrix& x, double factor) {
  Matrix y = x;
  for (double& value : y.values) value *= factor;
  return y;
}

Matrix columns(const Matrix& x, int64_t begin, int64_t count) {
  Matrix y(x.rows, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < count; ++c) y.at(r, c) = x.at(r, begin + c);
  }
  return y;
}

Matrix take_rows(const Matrix& x, std::span<const int32_t> indices) {
  Matrix y(static_cast<int64_t>(indices.size()), x.cols);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) y.at(r, c) = x.at(indices[static_cast<size_t>(r)], c);
  }
  return y;
}

Matrix dropout(const Matrix& x, const DropoutKey& key, float p) {
  Matrix y = x;
  if (!key || p <= 0) return y;
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] *= dropout_factor(*key, p, i);
  return y;
}

Matrix gated(const Matrix& gate, const Matrix& up, Activation activation) {
  Matrix y = activate(gate, activation);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] *= up.values[i];
  return y;
}

Matrix linear(const Matrix& x, const Matrix& weight, const Matrix* bias) {
  Matrix y(x.rows, weight.rows);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t o = 0; o < y.cols; ++o) {
      double sum = bias ? bias->at(0, o) : 0;
      for (int64_t i = 0; i < x.cols; ++i) sum += x.at(r, i) * weight.at(o, i);
      y.at(r, o) = sum;
    }
  }
  return y;
}

Matrix norm(const Matrix& x, const NormOptions& options) {
  const bool centred = options.kind == NormKind::layer_norm;
  const auto width = static_cast<double>(x.cols);
  Matrix y(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    double mean = 0, square = 0;
    for (int64_t c = 0; centred && c < x.cols; ++c) mean += x.at(r, c) / width;
    for (int64_t c = 0; c < x.cols; ++c) square += std::pow(x.at(r, c) - mean, 2) / width;
    for (int64_t c = 0; c < x.cols; ++c) {
      y.at(r, c) = (x.at(r, c) - mean) / std::sqrt(square + options.eps) *
                       (options.gamma_offset + options.gamma->at(0, c)) +
                   (options.beta ? options.beta->at(0, c) : 0);
    }
  }
  return y;
}

double sinusoid(int64_t position, int64_t column, int64_t width, SinusoidLayout layout) {
  const bool interleaved = layout == SinusoidLayout::interleaved;
  const int64_t pair = interleaved ? column / 2 : column % (width / 2);
  const bool sine = interleaved ? column % 2 == 0 : column < width / 2;
  const double angle =
      static_cast<double>(position) /
      std::pow(10000.0, 2 * static_cast<double>(pair) / static_cast<double>(width));
  return sine ? std::sin(angle) : std::cos(angle);
}

Matrix rope(const Matrix& x, const RopeOptions& o) {
  Matrix y = x;
  const int pairs = o.rotary_dim / 2;
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int i = 0; i < pairs; ++i) {
      // Models are trained with the angle rounded to float, so that is part of the definition.
      const auto frequency = static_cast<float>(std::pow(o.base, -2.0 * i / o.rotary_dim));
      const double angle = static_cast<float>(o.positions[static_cast<size_t>(r)]) * frequency;
      const double cosine = o.magnitude * std::cos(angle), sine = o.magnitude * std::sin(angle);
      const bool half = o.layout == RopeLayout::half;
      for (int head = 0; head < o.heads; ++head) {
        const int64_t first = int64_t{head} * o.head_dim + (half ? i : 2 * i);
        const int64_t second = half ? first + pairs : first + 1;
        y.at(r, first) = x.at(r, first) * cosine - x.at(r, second) * sine;
        y.at(r, second) = x.at(r, first) * sine + x.at(r, second) * cosine;
      }
    }
  }
  return y;
}

AttentionResult attention(const AttentionInputs& in, const AttentionOptions& o) {
  const double scale = o.scale != 0 ? double{o.scale} : 1 / std::sqrt(double(o.head_dim));
  const int group = o.heads / o.kv_heads;
  AttentionResult result{Matrix(in.q->rows, in.q->cols), Matrix()};
  std::vector<double>& all = result.probabilities.values;
  std::vector<double> p;
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    const int64_t first_query = in.query_offsets[s], first_key = in.key_offsets[s];
    const int64_t queries = in.query_offsets[s + 1] - first_query;
    const int64_t keys = in.key_offsets[s + 1] - first_key;
    const Visibility sees{o, first_query, first_key};
    for (int head = 0; head < o.heads; ++head) {
      const int64_t column = int64_t{head} * o.head_dim;
      const int64_t kv_column = int64_t{head / group} * o.head_dim;
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t row = first_query + query, position = query;
        p.assign(static_cast<size_t>(keys), -std::numeric_limits<double>::infinity());
        double max = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          if (!sees(query, position, j)) continue;
          double score = 0;
          for (int d = 0; d < o.head_dim; ++d) {
            score += in.q->at(row, column + d) * in.k->at(first_key + j, kv_column + d);
          }
          score *= scale;
          if (o.soft_cap > 0) score = o.soft_cap * std::tanh(score / o.soft_cap);
          score += score_bias(in, o, head, j - position);
          p[static_cast<size_t>(j)] = score;
          max = std::max(max, score);
        }
        for (double& value : p) {
          value = std::isinf(value) ? 0 : std::exp(value - max);
          sum += value;
        }
        for (int64_t j = 0; j < keys; ++j) {
          double& probability = p[static_cast<size_t>(j)];
          if (probability == 0) continue;
          probability /= sum;
          const uint64_t stream = static_cast<uint64_t>(row * o.heads + head);
          const double kept =
              in.dropout && o.dropout > 0
                  ? attention_factor(*in.dropout, o.dropout, stream, static_cast<uint64_t>(j))
                  : 1;
          for (int d = 0; d < o.head_dim; ++d) {
            result.out.at(row, column + d) +=
                kept * probability * in.v->at(first_key + j, kv_column + d);
          }
        }
        if (o.probabilities) all.insert(all.end(), p.begin(), p.end());
      }
    }
  }
  result.probabilities.rows = 1;
  result.probabilities.cols = static_cast<int64_t>(all.size());
  return result;
}

Matrix pool(const Matrix& x, std::span<const int32_t> offsets, Pooling pooling) {
  Matrix y(static_cast<int64_t>(offsets.size()) - 1, x.cols);
  for (int64_t s = 0; s < y.rows; ++s) {
    const int64_t begin = offsets[static_cast<size_t>(s)];
    const int64_t end = offsets[static_cast<size_t>(s) + 1];
    for (int64_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (int64_t r = begin; r < end; ++r) sum += x.at(r, c);
      y.at(s, c) = pooling == Pooling::first  ? x.at(begin, c)
                   : pooling == Pooling::last ? x.at(end - 1, c)
                                              : sum / static_cast<double>(end - begin);
    }
  }
  return y;
}

double cross_entropy(const Matrix& logits, std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) {
  Matrix z = logits;
  if (options.soft_cap > 0) {
    for (double& value : z.values) value = options.soft_cap * std::tanh(value / options.soft_cap);
  }
  const double smoothing = options.label_smoothing;
  double sum = 0;
  for (int64_t r = 0; r < z.rows; ++r) {
    const int32_t label = labels[static_cast<size_t>(r)];
    if (label == kIgnoreLabel) continue;
    const std::vector<double> surprise = surprises(z, r, 1);
    double average = 0;
    for (const double s : surprise) average += s / static_cast<double>(z.cols);
    sum += (1 - smoothing) * surprise[static_cast<size_t>(label)] + smoothing * average;
  }
  return sum;
}

double kl_divergence(const Matrix& student, const Matrix& teacher, double temperature) {
  double sum = 0;
  for (int64_t r = 0; r < student.rows; ++r) {
    const std::vector<double> s = surprises(student, r, temperature);
    const std::vector<double> t = surprises(teacher, r, temperature);
    for (size_t c = 0; c < s.size(); ++c) sum += std::exp(-t[c]) * (s[c] - t[c]);
  }
  return sum * temperature * temperature;
}

double twin_divergence(const Matrix& logits, std::span<const int32_t> labels) {
  double sum = 0;
  for (int64_t r = 0; r < logits.rows / 2; ++r) {
    if (labels[static_cast<size_t>(r)] == kIgnoreLabel) continue;
    const std::vector<double> p = surprises(logits, r, 1);
    const std::vector<double> q = surprises(logits, logits.rows / 2 + r, 1);
    for (size_t c = 0; c < p.size(); ++c) {
      sum += (std::exp(-p[c]) - std::exp(-q[c])) * (q[c] - p[c]) / 2;
    }
  }
  return sum;
}

double squared_error(const Matrix& x, const Matrix& target) {
  double sum = 0;
  for (size_t i = 0; i < x.values.size(); ++i) sum += std::pow(x.values[i] - target.values[i], 2);
  return sum / static_cast<double>(x.cols);
}

double cosine_distance(const Matrix& x, const Matrix& target) {
  double sum = 0;
  for (int64_t r = 0; r < x.rows; ++r) {
    double xx = 0, tt = 0, xt = 0;
    for (int64_t c = 0; c < x.cols; ++c) {
      xx += x.at(r, c) * x.at(r, c);
      tt += target.at(r, c) * target.at(r, c);
      xt += x.at(r, c) * target.at(r, c);
    }
    sum += 1 - xt / std::sqrt(xx * tt);
  }
  return sum;
}

}  // namespace heed::reference
