// Embeddings of texts.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/plain_file_name.h"
#include "heed/error.h"
#include "infer/tasks/task_runner.h"
#include "model/files/safetensors.h"
#include "text/tokenizers/tokenizer_folder.h"

namespace heed {
namespace {

using Json = nlohmann::json;

Pooling pooling_of(EmbedPooling pooling) {
  switch (pooling) {
    case EmbedPooling::mean:
      return Pooling::mean;
    case EmbedPooling::first:
      return Pooling::first;
    case EmbedPooling::last:
      return Pooling::last;
  }
  return Pooling::mean;
}

// A text split into chunks of at most `max_tokens`, each with the model's template.
std::vector<Encoding> chunks_of(const Encoding& whole, int64_t max_tokens) {
  std::vector<size_t> text;
  for (size_t i = 0; i < whole.ids.size(); ++i) {
    if (!whole.is_special[i]) text.push_back(i);
  }
  const size_t specials = whole.ids.size() - text.size();
  const auto most = static_cast<size_t>(max_tokens);
  if (text.empty() || specials >= most) return {};
  std::vector<Encoding> chunks;
  for (size_t begin = 0; begin < text.size(); begin += most - specials) {
    const size_t first = text[begin];
    const size_t last = text[std::min(begin + most - specials, text.size()) - 1];
    Encoding& chunk = chunks.emplace_back();
    for (size_t i = 0; i < whole.ids.size(); ++i) {
      if (!whole.is_special[i] && (i < first || i > last)) continue;
      chunk.ids.push_back(whole.ids[i]);
      chunk.types.push_back(whole.types[i]);
    }
  }
  return chunks;
}

void normalize(std::vector<float>& vector) {
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * x;
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& x : vector) x = static_cast<float>(x * scale);
}

Json read_object(const std::string& path) {
  Json json = read_json(path);
  if (!json.is_object()) throw Error(ErrorCode::corrupt_file, path + ": expected a JSON object");
  return json;
}

// Exactly one pooling_mode_… of the file must be set.
EmbedPooling read_pooling(const std::string& path) {
  constexpr std::pair<std::string_view, EmbedPooling> kModes[] = {
      {"pooling_mode_mean_tokens", EmbedPooling::mean},
      {"pooling_mode_cls_token", EmbedPooling::first},
      {"pooling_mode_lasttoken", EmbedPooling::last}};
  std::optional<EmbedPooling> pooling;
  const Json settings = read_object(path);
  for (const auto& [key, value] : settings.items()) {
    if (!key.starts_with("pooling_mode_") || value != true) continue;
    const auto known = std::ranges::find(kModes, key, [](const auto& mode) { return mode.first; });
    if (pooling || known == std::end(kModes)) {
      throw Error(ErrorCode::unsupported,
                  path + ": " + key + (pooling ? " beside another pooling" : ""),
                  "Heed pools by mean, first or last token alone; choose one with --pooling");
    }
    pooling = known->second;
  }
  return pooling.value_or(EmbedPooling::mean);
}

}  // namespace

EmbedOptions embed_options(const std::string& folder) {
  namespace fs = std::filesystem;
  EmbedOptions options;
  const std::string settings = folder + "/sentence_bert_config.json";
  if (fs::exists(settings)) {
    const Json length = read_object(settings).value("max_seq_length", Json());
    if (length.is_number_integer() && length.get<int64_t>() > 0) options.max_tokens = length;
  }
  const std::string path = folder + "/modules.json";
  if (!fs::exists(path)) return options;
  const Json modules = read_json(path);
  if (!modules.is_array()) throw Error(ErrorCode::corrupt_file, path + ": expected a JSON list");
  options.normalize = false;
  for (const Json& module : modules) {
    const auto text = [&](const char* key) {
      return module.is_object() && module.contains(key) && module[key].is_string()
                 ? module[key].get<std::string>()
                 : std::string();
    };
    const std::string type = text("type"), kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling") {
      const std::string part = text("path");
      if (!part.empty() && !is_plain_file_name(part)) {
        throw Error(ErrorCode::corrupt_file,
                    path + ": the pooling is said to be outside of the model's folder");
      }
      options.pooling = read_pooling((fs::path(folder) / part / "config.json").string());
    } else if (kind == "Normalize") {
      options.normalize = true;
    } else if (kind != "Transformer") {
      throw Error(ErrorCode::unsupported, path + ": module " + (type.empty() ? "?" : type),
                  "Heed knows Transformer, Pooling and Normalize; --pooling passes over this file");
    }
  }
  return options;
}

Embedder::Embedder(Model model, const TaskOptions& options)
    : runner_(std::make_shared<TaskRunner>(std::move(model), options)) {}

int64_t Embedder::width() const { return runner_->config().width; }

std::vector<Embedded> Embedder::embed(const std::vector<TaskInput>& inputs,
                                      const EmbedOptions& options,
                                      const std::function<bool()>& is_cancelled) const {
  const int64_t most = runner_->max_tokens(options.max_tokens);
  const bool in_chunks = options.long_text == LongText::chunks;
  // Chunks are split later: nothing is truncated here.
  std::vector<ReadInput> read =
      runner_->read(inputs, in_chunks ? std::numeric_limits<int64_t>::max() : most);
  std::vector<Embedded> results(inputs.size());
  std::vector<TaskSequence> sequences;
  std::vector<size_t> owners;  // the input of each sequence
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Encoding> parts;
    if (std::ssize(read[i].encoding.ids) > most) parts = chunks_of(read[i].encoding, most);
    if (parts.empty()) {
      read[i].truncated = truncate(read[i].encoding, most) || read[i].truncated;
      parts.push_back(std::move(read[i].encoding));
    }
    results[i].truncated = read[i].truncated;
    results[i].chunks = std::ssize(parts);
    results[i].vector.resize(static_cast<size_t>(width()));
    for (const Encoding& part : parts) {
      results[i].tokens += std::ssize(part.ids);
      sequences.push_back(runner_->sequence(part));
      owners.push_back(i);
    }
  }

  std::vector<std::vector<float>> vectors(sequences.size());
  runner_->run(sequences, is_cancelled, [&](Ctx& ctx, const TaskBatch& batch) {
    const Var rows =
        pool(ctx, runner_->hidden(ctx, batch), batch.source.offsets, pooling_of(options.pooling));
    if (ctx.measuring()) return;
    for (size_t s = 0; s < batch.members.size(); ++s) {
      const float* row = rows.value.row(static_cast<int64_t>(s));
      vectors[batch.members[s]].assign(row, row + rows.cols());
    }
  });
  // In the order of the chunks, independent of the batches.
  for (size_t v = 0; v < vectors.size(); ++v) {
    Embedded& result = results[owners[v]];
    if (vectors[v].empty()) continue;
    if (result.chunks == 1) {
      result.vector = std::move(vectors[v]);
      continue;
    }
    const float share =
        static_cast<float>(sequences[v].ids.size()) / static_cast<float>(result.tokens);
    for (size_t c = 0; c < vectors[v].size(); ++c) result.vector[c] += share * vectors[v][c];
  }
  if (options.normalize) {
    for (Embedded& result : results) normalize(result.vector);
  }
  return results;
}

double cosine_similarity(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) {
    throw Error(ErrorCode::invalid_argument,
                "vectors of " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                    " numbers cannot be compared",
                "take both from the same model");
  }
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

void write_embeddings(const std::string& path, const std::vector<std::vector<float>>& vectors) {
  const size_t width = vectors.empty() ? 0 : vectors.front().size();
  std::vector<float> all;
  all.reserve(vectors.size() * width);
  for (const std::vector<float>& vector : vectors) {
    HEED_CHECK(vector.size() == width, "embeddings of different widths");
    all.insert(all.end(), vector.begin(), vector.end());
  }
  const TensorView tensor{"embeddings",
                          DType::f32,
                          {std::ssize(vectors), static_cast<int64_t>(width)},
                          std::as_bytes(std::span(all))};
  write_safetensors(path, std::span(&tensor, 1));
}

}  // namespace heed
