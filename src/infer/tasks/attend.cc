#include "heed/attend.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "heed/engine.h"
#include "heed/error.h"
#include "infer/engine/request_plan.h"
#include "infer/tasks/task_runner.h"

namespace heed {
namespace {

// A piece as plain text: "Ġcat" and "▁cat" are " cat".
std::string readable(const Tokenizer& tokenizer, int32_t id, TextSide side) {
  if (id < 0 || id >= tokenizer.vocabulary_size()) return std::to_string(id);
  const std::string text =
      tokenizer.decode(std::span(&id, 1), {.skip_special_tokens = false, .side = side});
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return tokenizer.piece(id);  // a space by itself, or nothing
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<AttentionToken> tokens_of(const Model& model, const std::vector<int32_t>& ids,
                                      TextSide side) {
  std::vector<AttentionToken> tokens;
  for (const int32_t id : ids) {
    tokens.push_back(
        {id, model.has_tokenizer() ? readable(model.tokenizer(), id, side) : std::to_string(id)});
  }
  return tokens;
}

// The number of maps of each kind, one for each layer and head, which limits the tokens for a
// number of weights.
struct MapCounts {
  double encoder = 0, decoder = 0, cross = 0;

  explicit MapCounts(const ModelConfig& config) {
    const auto maps = [&](Side side) {
      const StackConfig stack = config.stack(side);
      return 1.0 * stack.layers * stack.heads;
    };
    if (config.has_encoder()) encoder = maps(Side::encoder);
    if (config.has_decoder()) decoder = maps(Side::decoder);
    if (config.has_both()) cross = decoder;
  }

  // Tokens of the source, or of the only text, with a target of the same length.
  int64_t source_tokens(double weights) const {
    return whole(std::sqrt(weights / std::max(encoder + decoder + cross, 1.0)));
  }
  // Tokens of the target with such a source: decoder t² + cross s t + encoder s² = weights.
  int64_t target_tokens(double weights, int64_t source) const {
    const auto s = static_cast<double>(source);
    const double half = cross * s / 2, rest = std::max(weights - encoder * s * s, 0.0);
    return whole((std::sqrt(half * half + decoder * rest) - half) / std::max(decoder, 1.0));
  }

 private:
  static int64_t whole(double tokens) {
    return std::max<int64_t>(1, static_cast<int64_t>(tokens + 1e-9));
  }
};

// The decoder's input, and whether the end token follows.
struct Target {
  std::vector<int32_t> ids;
  bool ends = true;
};

// The model's own translation, of at most `most` tokens; the last one is not an input of the
// decoder.
Target written(const Model& model, const std::vector<int32_t>& source, int64_t most,
               const TaskOptions& options, const AttendLimits& limits) {
  constexpr std::chrono::milliseconds kGlance{20};
  Request request{.ids = source, .truncate = Truncation::right};
  const SearchPlan own = plan_request(model, request).search;
  if (own.max_new_tokens > most) {
    SearchOptions search = model.search_options();
    search.max_new_tokens = most;
    search.min_new_tokens = std::min(own.min_new_tokens, most), search.min_length = 0;
    search.forced_last_id = -1;  // it would hide that the answer was cut
    request.search = std::move(search);
  }
  Engine engine(model, {.threads = options.threads});
  const Handle handle = engine.submit(request);
  // The destructor of the engine cancels the request.
  while (!handle.wait_for(kGlance)) throw_if_cancelled(limits.is_cancelled);
  const Result result = handle.get();
  return {.ids = result.best().ids, .ends = result.best().finish != FinishReason::length};
}

// The given target.
Target given(const Model& model, const TaskInput& input) {
  const ModelConfig& config = model.network().config();
  Target target;
  if (config.decoder_start_id >= 0) target.ids.push_back(config.decoder_start_id);
  const std::vector<int32_t> ids =
      input.second ? model.tokenizer().encode_ids(*input.second, {.side = TextSide::target})
                   : input.second_ids;
  target.ids.insert(target.ids.end(), ids.begin(), ids.end());
  return target;
}

void keep(const AttentionMaps& maps, const AttentionView& view,
          std::vector<AttentionLayer>& layers) {
  for (const AttentionMap& map : maps) {
    AttentionLayer layer;
    layer.kind = map.name.ends_with(".cross")      ? AttentionKind::cross
                 : map.name.starts_with("decoder") ? AttentionKind::decoder
                                                   : AttentionKind::encoder;
    layer.layer = std::stoi(map.name.substr(map.name.find('.') + 1));
    layer.queries = std::ssize(view.queries(layer.kind));
    layer.keys = std::ssize(view.keys(layer.kind));
    layer.heads = static_cast<int>(map.probabilities.size() / (layer.queries * layer.keys));
    layer.probabilities.assign(map.probabilities.data,
                               map.probabilities.data + map.probabilities.size());
    layers.push_back(std::move(layer));
  }
}

}  // namespace

AttentionView attend(const Model& model, const TaskInput& input, const TaskOptions& options,
                     const AttendLimits& limits) {
  TaskRunner runner(model, options);
  const bool two = model.has_source();
  const MapCounts maps(runner.config());
  const auto weights = static_cast<double>(limits.max_weights);
  int64_t most = runner.max_tokens();
  if (weights > 0) most = std::min(most, maps.source_tokens(weights));
  TaskInput source = input;
  if (two) source.second.reset();
  throw_if_cancelled(limits.is_cancelled);
  const ReadInput read = runner.read(source, most);
  TaskSequence sequence = runner.sequence(read.encoding);
  AttentionView view;
  view.truncated = read.truncated;
  if (sequence.ids.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are no tokens to look at",
                "give a text that is not empty");
  }
  if (two) {
    most = runner.max_tokens();
    if (weights > 0) {
      most = std::min(most, maps.target_tokens(weights, std::ssize(sequence.ids)));
    }
    const bool has_target = input.second || !input.second_ids.empty();
    Target target =
        has_target ? given(model, input) : written(model, sequence.ids, most, options, limits);
    if (target.ids.size() > 1 && target.ids.back() == runner.config().eos_id) target.ids.pop_back();
    if (std::ssize(target.ids) > most) {
      target.ids.resize(static_cast<size_t>(most));
      target.ends = false, view.truncated = true;
    }
    sequence.target = std::move(target.ids), view.target_ends = target.ends;
    view.source = tokens_of(model, sequence.ids, TextSide::source);
    view.target = tokens_of(model, sequence.target, TextSide::target);
  } else {
    const bool encodes = runner.config().family == Family::encoder_only;
    (encodes ? view.source : view.target) = tokens_of(model, sequence.ids, TextSide::source);
  }
  view.tokens = static_cast<int64_t>(sequence.tokens());

  runner.run(std::span(&sequence, 1), limits.is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    AttentionMaps encoder, decoder;
    runner.transformer().hidden(ctx, {.source = batch.source.batch(),
                                      .target = batch.target.batch(),
                                      .encoder_maps = &encoder,
                                      .decoder_maps = &decoder});
    if (ctx.measuring()) return;
    keep(encoder, view, view.layers);
    keep(decoder, view, view.layers);
  });
  std::ranges::stable_sort(view.layers, {}, &AttentionLayer::kind);
  return view;
}

}  // namespace heed
