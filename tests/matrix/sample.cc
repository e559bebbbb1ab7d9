#include "sample.h"

#include <algorithm>

namespace heed::matrix {
namespace {

using Ids = std::vector<std::vector<int32_t>>;

bool has_logits(const ModelConfig& c) {
  return c.head == Head::language_model || c.head == Head::masked_lm;
}

// Longformer: the first token of each sequence, and the last of every second one, are global.
void add_global_tokens(const ModelConfig& c, Sample& sample) {
  if (c.attention != AttentionSpan::longformer) return;
  std::vector<int32_t> rows;
  for (size_t s = 0; s + 1 < sample.source.offsets.size(); ++s) {
    rows.push_back(sample.source.offsets[s]);
    if (sample.source.tokens[static_cast<size_t>(rows.back())] % 2 == 0) {
      rows.push_back(sample.source.offsets[s + 1] - 1);
    }
  }
  sample.global.emplace(sample.source.batch(), rows);
}

// Output rows that the labels or values belong to.
size_t answers(const ModelConfig& c, const Sample& sample) {
  if (c.family == Family::encoder_decoder) return sample.target.tokens.size();
  const bool by_row = has_logits(c) || c.head == Head::token_classifier;
  return by_row ? sample.source.tokens.size() : sample.source.offsets.size() - 1;
}

int32_t id_below(Random& random, int64_t count) {
  return static_cast<int32_t>(random.below(static_cast<uint64_t>(count)));
}

// A vector for each class: as many +1 as -1, so that the output of a norm can equal it.
float class_value(int32_t the_class, int64_t width, int64_t column) {
  const int64_t period = the_class == 0 ? 2 : the_class == 1 ? 4 : width;
  return column % period < period / 2 ? 1.0f : -1.0f;
}

Var hidden(Ctx& ctx, const Network& model, const Sample& sample) {
  // Batches are borrowed until after the backward, so their spans point into the sample.
  return model.transformer().hidden(ctx, {.source = sample.source.batch(),
                                          .target = sample.target.batch(),
                                          .global_tokens = sample.global_tokens()});
}

}  // namespace

Sample random_sample(const ModelConfig& c, const std::vector<int>& lengths, uint64_t seed) {
  Random random({.seed = seed});
  Sample sample;
  Ids sources, types, targets;
  for (const int length : lengths) {
    auto& source = sources.emplace_back();
    auto& type = types.emplace_back();
    for (int i = 0; i < length; ++i) {
      source.push_back(id_below(random, c.vocabulary));
      type.push_back(c.token_types > 0 ? id_below(random, c.token_types) : 0);
    }
    auto& target = targets.emplace_back();
    // Lengths other than the source's, and 1.
    for (int i = 0; i < length % 4 + 1; ++i)
      target.push_back(id_below(random, c.output_vocabulary()));
  }
  sample.source = PackedBatch(sources, types);
  if (c.family == Family::encoder_decoder) sample.target = PackedBatch(targets);
  add_global_tokens(c, sample);
  const size_t rows = answers(c, sample);
  if (c.head == Head::embedding || c.head == Head::regression) {
    const int64_t width = c.head == Head::embedding ? c.width : c.labels;
    for (size_t i = 0; i < rows * static_cast<size_t>(width); ++i) {
      sample.values.push_back(random.normal());
    }
    return sample;
  }
  const int64_t classes = has_logits(c) ? c.output_vocabulary() : c.labels;
  for (size_t i = 0; i < rows; ++i) {
    const bool ignored = has_logits(c) && i % 5 == 3;
    sample.labels.push_back(ignored ? kIgnoreLabel : id_below(random, classes));
  }
  return sample;
}

Sample part_of(const Sample& sample, const ModelConfig& c, size_t s) {
  const auto cut = [&](const PackedBatch& from) {
    if (from.tokens.empty()) return PackedBatch();
    const ptrdiff_t begin = from.offsets[s], end = from.offsets[s + 1];
    const auto piece = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + begin, all.begin() + end);
    };
    return PackedBatch({piece(from.tokens)}, {piece(from.token_types)});
  };
  Sample part;
  part.source = cut(sample.source), part.target = cut(sample.target);
  add_global_tokens(c, part);
  return part;
}

Sample lesson(const ModelConfig& c, uint64_t seed, uint32_t step) {
  constexpr int kSequences = 32;
  constexpr int32_t kSeparator = 1, kFirstSymbol = 2, kClasses = 3;
  Random random({.seed = seed, .step = step});
  // Without positions the order cannot be copied, and a bias by distance (ALiBi, KERPLE) distinguishes near from far
  // but not third from fourth: there the text is one repeated symbol.
  const bool has_order =
      c.position != Position::none && (!c.has_relative_bias() || c.position == Position::t5_bias);
  const auto symbols = static_cast<int32_t>(c.vocabulary) - kFirstSymbol;
  const bool by_text = !has_logits(c) && c.head != Head::token_classifier;
  Ids sources, targets;
  Sample sample;
  for (int s = 0; s < kSequences; ++s) {
    std::vector<int32_t> text;
    // A decoder repeats from a fixed distance, which a window of 4 still reaches.
    const int length = has_logits(c) ? 3 : 2 + s % 4;
    const int32_t of_class = id_below(random, kClasses);
    for (int i = 0; i < length; ++i) {
      int32_t id = kFirstSymbol + id_below(random, symbols);
      if (by_text) id = kFirstSymbol + of_class + kClasses * id_below(random, symbols / kClasses);
      text.push_back(!has_order && i > 0 && !by_text ? text.front() : id);
    }
    const std::vector<int32_t> copy = text;
    if (by_text) {
      if (c.head == Head::classifier) sample.labels.push_back(of_class);
      if (c.head == Head::regression) sample.values.push_back(static_cast<float>(of_class - 1));
      for (int64_t i = 0; c.head == Head::embedding && i < c.width; ++i) {
        sample.values.push_back(class_value(of_class, c.width, i));
      }
    } else if (c.family == Family::encoder_decoder) {
      sample.labels.insert(sample.labels.end(), copy.begin(), copy.end());
      std::vector<int32_t> shifted{kSeparator};
      shifted.insert(shifted.end(), copy.begin(), copy.end() - 1);
      targets.push_back(shifted);
    } else if (c.family == Family::decoder_only) {
      text.push_back(kSeparator);
      text.insert(text.end(), copy.begin(), copy.end() - 1);
      sample.labels.insert(sample.labels.end(), copy.size(), kIgnoreLabel);
      sample.labels.insert(sample.labels.end(), copy.begin(), copy.end());
    } else {
      for (const int32_t id : copy) {
        sample.labels.push_back(c.head == Head::masked_lm ? id : id % c.labels);
      }
    }
    sources.push_back(text);
  }
  sample.source = PackedBatch(sources);
  if (!targets.empty()) sample.target = PackedBatch(targets);
  add_global_tokens(c, sample);
  return sample;
}

Var output(Ctx& ctx, const Network& model, const Sample& sample) {
  const Transformer& t = model.transformer();
  const ModelConfig& c = model.config();
  const Var h = hidden(ctx, model, sample);
  if (has_logits(c)) return t.logits(ctx, h);
  if (c.head == Head::embedding) return t.sentence(ctx, h, sample.source.batch());
  return t.classify(ctx, h, sample.source.batch());
}

LossSum loss(Ctx& ctx, const Network& model, const Sample& sample, float gradient_scale) {
  const Transformer& t = model.transformer();
  if (has_logits(model.config())) {
    return t.token_loss(ctx, hidden(ctx, model, sample), sample.labels,
                        {.gradient_scale = gradient_scale});
  }
  const Var answer = output(ctx, model, sample);
  if (sample.has_values()) {
    const ConstMat wanted(sample.values.data(), answer.rows(), answer.cols());
    return squared_error(ctx, answer, wanted, gradient_scale);
  }
  return cross_entropy(ctx, answer, sample.labels, {.gradient_scale = gradient_scale});
}

}  // namespace heed::matrix
