#include "heed/attend.h"

#include <algorithm>

#include "heed/engine.h"
#include "heed/error.h"
#include "infer/task_runner.h"

namespace heed {
namespace {

// A piece as people read it: "Ġcat" and "▁cat" are " cat" to a tokenizer.
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

// What the decoder reads: its start, and the target without its end.
std::vector<int32_t> decoder_ids(const Model& model, const TaskInput& input, int threads) {
  const ModelConfig& config = model.network().config();
  std::vector<int32_t> ids;
  if (!input.second && input.second_ids.empty()) {
    Request request{.text = input.text, .may_truncate = true};
    if (!input.ids.empty()) request.ids = input.ids;
    ids = Engine(model, {.threads = threads}).submit(std::move(request)).get().best().ids;
  } else {
    if (config.decoder_start_id >= 0) ids.push_back(config.decoder_start_id);
    const std::vector<int32_t> target =
        input.second ? model.tokenizer().encode_ids(*input.second, {.side = TextSide::target})
                     : input.second_ids;
    ids.insert(ids.end(), target.begin(), target.end());
  }
  if (ids.size() > 1 && ids.back() == config.eos_id) ids.pop_back();
  return ids;
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

const char* name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::encoder:
      return "encoder";
    case AttentionKind::decoder:
      return "decoder";
    case AttentionKind::cross:
      return "cross";
  }
  return "";
}

AttentionView attend(const Model& model, const TaskInput& input, const TaskOptions& options) {
  TaskRunner runner(model, options);
  const bool two = model.has_source();
  const auto most = static_cast<size_t>(runner.max_tokens());
  TaskInput source = input;
  if (two) source.second.reset();
  const ReadInput read = runner.read(source, runner.max_tokens());
  TaskSequence sequence = runner.sequence(read.encoding);
  AttentionView view;
  view.truncated = read.truncated;
  if (sequence.ids.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are no tokens to look at",
                "give a text that is not empty");
  }
  if (two) {
    sequence.target = decoder_ids(model, input, options.threads);
    if (sequence.target.size() > most) sequence.target.resize(most), view.truncated = true;
    view.source = tokens_of(model, sequence.ids, TextSide::source);
    view.target = tokens_of(model, sequence.target, TextSide::target);
  } else {
    const bool encodes = runner.config().family == Family::encoder_only;
    (encodes ? view.source : view.target) = tokens_of(model, sequence.ids, TextSide::source);
  }
  view.tokens = static_cast<int64_t>(sequence.tokens());

  runner.run(std::span(&sequence, 1), {}, [&](Ctx& ctx, const TaskBatch& batch) {
    const Transformer& t = runner.transformer();
    const Batch rows = batch.source.batch();
    AttentionMaps encoder, decoder;
    if (runner.config().family == Family::decoder_only) {
      t.decode(ctx, rows, &decoder);
    } else {
      const std::optional<GlobalTokens> global = default_global_tokens(runner.config(), rows);
      const Var memory = t.encode(ctx, {rows, global ? &*global : nullptr}, &encoder);
      if (two) t.decode(ctx, batch.target.batch(), memory, rows, &decoder);
    }
    if (ctx.measuring()) return;
    keep(encoder, view, view.layers);
    keep(decoder, view, view.layers);
  });
  std::ranges::stable_sort(view.layers, {}, &AttentionLayer::kind);
  return view;
}

}  // namespace heed
