#include "axes.h"

#include <algorithm>
#include <set>

#include "base/philox.h"

namespace heed::matrix {
namespace {

bool is_seq2seq(const ModelConfig& c) { return c.family == Family::encoder_decoder; }
bool is_encoder(const ModelConfig& c) { return c.family == Family::encoder_only; }
bool has_logits(const ModelConfig& c) {
  return c.head == Head::language_model || c.head == Head::masked_lm;
}
bool is_pooled(const ModelConfig& c) {
  return c.head == Head::classifier || c.head == Head::regression || c.head == Head::embedding;
}
bool may_have_dense(const ModelConfig& c) {
  return c.head == Head::classifier || c.head == Head::regression || c.head == Head::masked_lm;
}

// Small, so that the whole set runs in seconds; all sizes differ, so that swapped dimensions fail.
ModelConfig smallest() {
  ModelConfig c;
  c.vocabulary = 12, c.width = 16, c.ffn = 24;
  c.encoder_layers = c.decoder_layers = 2;
  c.heads = 2;
  c.max_positions = 20;
  c.position = Position::none;
  c.norm_place = NormPlace::pre;
  c.attention_bias = AttentionBias::none;
  c.ffn_bias = false;
  c.embedding_scale = EmbeddingScale::none;
  c.dropout = c.embedding_dropout = 0;
  c.pad_id = 0;
  return c;
}

// Sets one member.
template <class T>
AxisValue with(const std::string& name, T ModelConfig::*field, std::type_identity_t<T> value) {
  return {name, [=](ModelConfig& c) { c.*field = value; }};
}

template <class T>
Axis enum_axis(const std::string& name, T ModelConfig::*field, const std::vector<T>& values) {
  Axis axis{name, {}};
  for (const T value : values)
    axis.values.push_back(with(std::string(name_of(value)), field, value));
  return axis;
}

Axis switch_axis(const std::string& name, bool ModelConfig::*field) {
  return {name, {with("no", field, false), with("yes", field, true)}};
}

Axis task_axis() {
  const auto task = [](const char* name, Family family, Head head, int labels = 0) {
    return AxisValue{name, [=](ModelConfig& c) {
                       c.family = family, c.head = head, c.labels = labels;
                       if (family == Family::encoder_only) c.decoder_layers = 0;
                       if (family == Family::decoder_only) c.encoder_layers = 0;
                     }};
  };
  return {"task",
          {task("translate", Family::encoder_decoder, Head::language_model),
           task("generate", Family::decoder_only, Head::language_model),
           task("fill", Family::encoder_only, Head::masked_lm),
           task("tag", Family::encoder_only, Head::token_classifier, 4),
           task("classify", Family::encoder_only, Head::classifier, 3),
           task("regress", Family::encoder_only, Head::regression, 1),
           task("embed", Family::encoder_only, Head::embedding),
           task("classify_decoded", Family::decoder_only, Head::classifier, 3)}};
}

Axis position_axis() {
  const auto sinusoids = [](SinusoidLayout layout, int offset) {
    return [=](ModelConfig& c) {
      c.position = Position::sinusoidal;
      c.sinusoid_layout = layout, c.position_offset = offset;
    };
  };
  const auto rope = [](RopeLayout layout, float fraction, RopeScaling scaling) {
    return [=](ModelConfig& c) {
      c.position = Position::rope;
      c.rope_layout = layout, c.rope_fraction = fraction, c.rope_scaling = scaling;
      c.rope_base = 100;
      if (scaling != RopeScaling::none) c.rope_factor = 3;
      // Some frequencies are kept, some scaled, and some blended.
      if (needs_original_positions(scaling)) c.rope_original_positions = 32;
    };
  };
  Axis axis{"position",
            {with("none", &ModelConfig::position, Position::none),
             {"sinusoidal_interleaved", sinusoids(SinusoidLayout::interleaved, 0)},
             {"sinusoidal_half", sinusoids(SinusoidLayout::half, 0)},
             {"sinusoidal_half_inclusive_offset", sinusoids(SinusoidLayout::half_inclusive, 2)},
             with("learned", &ModelConfig::position, Position::learned),
             {"learned_offset",
              [](ModelConfig& c) { c.position = Position::learned, c.position_offset = 2; }},
             {"rope", rope(RopeLayout::half, 1, RopeScaling::none)},
             {"rope_interleaved_partial", rope(RopeLayout::interleaved, 0.5f, RopeScaling::none)},
             {"t5_bias",
              [](ModelConfig& c) {
                c.position = Position::t5_bias, c.t5_buckets = 8, c.t5_max_distance = 12;
              }},
             with("alibi", &ModelConfig::position, Position::alibi),
             with("kerple", &ModelConfig::position, Position::kerple)}};
  for (const auto& [scaling, name] : kEnumNames<RopeScaling>) {
    if (scaling == RopeScaling::none) continue;
    const bool linear = scaling == RopeScaling::linear;
    axis.values.push_back(
        {"rope_" + std::string(name),
         rope(linear ? RopeLayout::interleaved : RopeLayout::half, linear ? 1 : 0.75f, scaling)});
  }
  return axis;
}

Axis norm_axis() {
  return {"norm",
          {with("layer_norm", &ModelConfig::norm, NormKind::layer_norm),
           with("layer_norm_without_bias", &ModelConfig::norm_bias, false),
           {"rms_norm", [](ModelConfig& c) { c.norm = NormKind::rms_norm, c.norm_eps = 1e-6f; }},
           {"rms_norm_offset",
            [](ModelConfig& c) { c.norm = NormKind::rms_norm, c.norm_offset = 1; }}}};
}

Axis block_axis() {
  Axis axis = enum_axis("block", &ModelConfig::norm_place,
                        {NormPlace::pre, NormPlace::post, NormPlace::both});
  axis.values.push_back(with("parallel", &ModelConfig::residual, Residual::parallel));
  return axis;
}

Axis heads_axis() {
  const auto heads = [](int all, int kv, int dim) {
    return [=](ModelConfig& c) { c.heads = all, c.kv_heads = kv, c.head_dim = dim; };
  };
  return {"heads",
          {{"two", heads(2, 0, 0)},
           {"four_share_one", heads(4, 1, 0)},
           {"four_share_two", heads(4, 2, 0)},
           {"three_of_six", heads(3, 0, 6)},
           {"more_in_the_decoder", [](ModelConfig& c) { c.decoder_heads = 4; }, is_seq2seq}}};
}

Axis span_axis() {
  const auto windows = [](AttentionSpan span, std::vector<int64_t> pattern) {
    return [=](ModelConfig& c) { c.attention = span, c.windows = pattern; };
  };
  return {"span",
          {with("full", &ModelConfig::attention, AttentionSpan::full),
           {"window", windows(AttentionSpan::sliding_window, {4})},
           {"every_other", windows(AttentionSpan::sliding_window, {4, 0})},
           {"longformer", windows(AttentionSpan::longformer, {2, 3})}}};
}

Axis tying_axis() {
  const auto two_vocabularies = [](Tying tying) {
    return [=](ModelConfig& c) { c.tying = tying, c.target_vocabulary = 14; };
  };
  return {"tying",
          {with("all", &ModelConfig::tying, Tying::all),
           {"none", [](ModelConfig& c) { c.tying = Tying::none; }, has_logits},
           {"target_output", [](ModelConfig& c) { c.tying = Tying::target_output; }, has_logits},
           {"source_target", [](ModelConfig& c) { c.tying = Tying::source_target; }},
           {"two_vocabularies", two_vocabularies(Tying::none)},
           {"two_vocabularies_output", two_vocabularies(Tying::target_output)}}};
}

Axis output_axis() {
  return {"output",
          {with("plain", &ModelConfig::output_bias, false),
           {"bias", [](ModelConfig& c) { c.output_bias = true; }, has_logits},
           {"scale", [](ModelConfig& c) { c.logits_scale = 0.5f; }, has_logits},
           {"soft_cap", [](ModelConfig& c) { c.logits_soft_cap = 6; }, has_logits}}};
}

Axis pooling_axis() {
  Axis axis =
      enum_axis("pooling", &ModelConfig::pooling, {Pooling::first, Pooling::last, Pooling::mean});
  for (size_t i = 1; i < axis.values.size(); ++i) axis.values[i].acts = is_pooled;
  axis.values.push_back({"pooler", [](ModelConfig& c) { c.pooler = true; },
                         [](const ModelConfig& c) {
                           return is_encoder(c) && is_pooled(c) && c.head != Head::embedding;
                         }});
  return axis;
}

Axis head_layer_axis() {
  return {"head_layer",
          {with("none", &ModelConfig::head_activation, Activation::none),
           {"tanh", [](ModelConfig& c) { c.head_activation = Activation::tanh; }, may_have_dense}}};
}

std::vector<Axis> make_axes() {
  std::vector<Axis> all{task_axis(),    position_axis(),  norm_axis(),  block_axis(),
                        heads_axis(),   span_axis(),      tying_axis(), output_axis(),
                        pooling_axis(), head_layer_axis()};
  all.push_back(switch_axis("final_norm", &ModelConfig::final_norm));
  all.push_back(switch_axis("embedding_norm", &ModelConfig::embedding_norm));
  all.push_back({"attention_scale",
                 {with("usual", &ModelConfig::attention_scale, 0),
                  with("given", &ModelConfig::attention_scale, 0.6f)}});
  all.push_back({"attention_soft_cap",
                 {with("none", &ModelConfig::attention_soft_cap, 0),
                  with("given", &ModelConfig::attention_soft_cap, 4)}});
  all.push_back(
      enum_axis("attention_bias", &ModelConfig::attention_bias,
                {AttentionBias::none, AttentionBias::qkv, AttentionBias::out, AttentionBias::all}));
  Axis activation{"activation", {}};
  for (const kernels::ActivationInfo& info : kernels::kActivations) {
    if (info.activation == Activation::none) continue;
    activation.values.push_back(
        with(std::string(info.name), &ModelConfig::activation, info.activation));
  }
  all.push_back(activation);
  all.push_back(enum_axis("ffn_kind", &ModelConfig::ffn_kind, {FfnKind::plain, FfnKind::gated}));
  all.push_back(switch_axis("ffn_bias", &ModelConfig::ffn_bias));
  all.push_back({"decoder_ffn",
                 {with("same", &ModelConfig::decoder_ffn, 0),
                  {"other", [](ModelConfig& c) { c.decoder_ffn = 20; }, is_seq2seq}}});
  all.push_back(enum_axis("embedding_scale", &ModelConfig::embedding_scale,
                          {EmbeddingScale::none, EmbeddingScale::sqrt_width}));
  all.push_back(
      {"token_types",
       {with("none", &ModelConfig::token_types, 0), with("two", &ModelConfig::token_types, 2)}});
  all.push_back(switch_axis("pad_frozen", &ModelConfig::pad_frozen));
  return all;
}

ModelConfig config_of(const Choice& choice) {
  ModelConfig config = smallest();
  for (size_t a = 0; a < choice.size(); ++a) axes()[a].values[choice[a]].apply(config);
  return config;
}

// Pairs of values as one number each.
class PairSet {
 public:
  PairSet() {
    for (const Axis& axis : axes()) first_.push_back(points_), points_ += axis.values.size();
    flags_.assign(points_ * points_, 0);
  }
  char& at(const Point& a, const Point& b) {
    return flags_[(first_[a.first] + a.second) * points_ + first_[b.first] + b.second];
  }

 private:
  std::vector<size_t> first_;
  size_t points_ = 0;
  std::vector<char> flags_;
};

// Calls body(a, b) for all pairs of values of two axes, the earlier axis first.
template <class Body>
void for_each_pair(const Body& body) {
  for (size_t a = 0; a < axes().size(); ++a) {
    for (size_t b = a + 1; b < axes().size(); ++b) {
      for (size_t v = 0; v < axes()[a].values.size(); ++v) {
        for (size_t w = 0; w < axes()[b].values.size(); ++w) body(Point{a, v}, Point{b, w});
      }
    }
  }
}

// Greedy: each config starts from a pair that is still open and takes, axis by axis, the value
// that covers most open pairs with those already chosen.
class Cover {
 public:
  Cover() {
    for_each_pair([&](const Point& a, const Point& b) { open_.at(a, b) = possible(a, b); });
  }

  std::vector<Choice> choices() {
    std::vector<Choice> all;
    for_each_pair([&](const Point& a, const Point& b) {
      if (open_.at(a, b)) all.push_back(next(a, b));
    });
    return all;
  }

 private:
  static constexpr size_t kOpen = static_cast<size_t>(-1);

  int gain(const Choice& choice, const Point& point) {
    int pairs = 0;
    for (size_t a = 0; a < choice.size(); ++a) {
      if (choice[a] == kOpen || a == point.first) continue;
      const Point other{a, choice[a]};
      pairs += a < point.first ? open_.at(other, point) : open_.at(point, other);
    }
    return pairs;
  }

  void fill(Choice& choice, size_t axis, size_t task) {
    size_t best = kOpen;
    int best_gain = -1;
    const size_t count = axes()[axis].values.size();
    const size_t first = random_.below(count);  // breaks ties at random
    for (size_t i = 0; i < count; ++i) {
      const size_t value = (first + i) % count;
      if (!fits(task, {axis, value})) continue;
      const int found = gain(choice, {axis, value});
      if (found > best_gain) best = value, best_gain = found;
    }
    choice[axis] = best;
  }

  Choice complete(size_t task, const Point& a, const Point& b) {
    Choice choice(axes().size(), kOpen);
    choice[0] = task, choice[a.first] = a.second, choice[b.first] = b.second;
    std::vector<size_t> order;
    for (size_t axis = 0; axis < choice.size(); ++axis) {
      if (choice[axis] == kOpen) order.push_back(axis);
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    for (const size_t axis : order) fill(choice, axis, task);
    return choice;
  }

  int closed_by(const Choice& choice) {
    int pairs = 0;
    for (size_t a = 0; a < choice.size(); ++a) pairs += gain(choice, {a, choice[a]});
    return pairs / 2;
  }

  Choice next(const Point& a, const Point& b) {
    Choice best;
    int most = -1;
    constexpr int kTries = 4;
    for (size_t task = 0; task < axes()[0].values.size(); ++task) {
      if ((a.first == 0 && a.second != task) || !fits(task, a) || !fits(task, b)) continue;
      for (int i = 0; i < kTries; ++i) {
        Choice choice = complete(task, a, b);
        const int closed = closed_by(choice);
        if (closed > most) best = std::move(choice), most = closed;
      }
    }
    for (size_t i = 0; i < best.size(); ++i) {
      for (size_t j = i + 1; j < best.size(); ++j) open_.at({i, best[i]}, {j, best[j]}) = 0;
    }
    return best;
  }

  PairSet open_;
  Random random_{RandomKey{.seed = 1}};
};

std::vector<MatrixCase> make_cases() {
  std::vector<MatrixCase> cases;
  for (Choice& choice : Cover().choices()) {
    MatrixCase one{choice, config_of(choice), ""};
    for (size_t a = 0; a < choice.size(); ++a) {
      one.title += (a ? ", " : "") + axes()[a].name + "=" + axes()[a].values[choice[a]].name;
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace

const std::vector<Axis>& axes() {
  static const std::vector<Axis> all = make_axes();
  return all;
}

bool fits(size_t task, const Point& point) {
  static const std::vector<std::vector<std::vector<char>>> table = [] {
    std::vector<std::vector<std::vector<char>>> all;
    for (const AxisValue& task_value : axes()[0].values) {
      auto& by_axis = all.emplace_back();
      for (size_t a = 0; a < axes().size(); ++a) {
        auto& row = by_axis.emplace_back();
        for (const AxisValue& value : axes()[a].values) {
          ModelConfig c = smallest();
          task_value.apply(c);
          const bool acts = value.acts(c);
          value.apply(c);
          row.push_back(acts && validate(c).empty());
        }
      }
    }
    return all;
  }();
  return point.first == 0 ? point.second == task : table[task][point.first][point.second];
}

bool possible(const Point& a, const Point& b) {
  for (size_t task = 0; task < axes()[0].values.size(); ++task) {
    if (fits(task, a) && fits(task, b)) return true;
  }
  return false;
}

const std::vector<MatrixCase>& covering_set() {
  static const std::vector<MatrixCase> cases = make_cases();
  return cases;
}

}  // namespace heed::matrix
