#include "data/records/example.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "data/batches/batch.h"
#include "data/records/columns.h"
#include "heed/error.h"

namespace heed {

namespace {

std::optional<float> as_score(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  float score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(score)) {
    return std::nullopt;
  }
  return score;
}

// The ids [begin, end) of one text of an encoding, without the template's tokens.
struct TextIds {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

// Of the first text and, for a pair, the second.
std::vector<TextIds> texts_of(const Encoding& encoding) {
  std::vector<TextIds> texts;
  bool inside = false;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const bool special = encoding.is_special[i] != 0;
    const bool new_type = inside && encoding.types[i] != encoding.types[i - 1];
    if (!special && (!inside || new_type)) texts.push_back({i, i});
    inside = !special;
    if (inside) texts.back().end = i + 1;
  }
  return texts;
}

}  // namespace

bool needs_sentences(const ObjectiveOptions& objective) {
  return objective.kind == Objective::denoising ||
         (objective.kind == Objective::masked_lm &&
          objective.masked_input != MaskedInput::documents);
}

ExampleEncoder::ExampleEncoder(const Tokenizer& tokenizer, const CorpusOptions& corpus,
                               const ObjectiveOptions& objective, const FilterOptions& filters)
    : tokenizer_(tokenizer),
      corpus_(corpus),
      objective_(objective),
      filters_(filters),
      ids_(resolve_role_ids(objective, tokenizer)) {
  if (corpus.target_prefix.empty()) return;
  target_prefix_ = tokenizer.find(corpus.target_prefix);
  if (!target_prefix_) {
    throw Error(ErrorCode::invalid_argument,
                "target_prefix must be in the vocabulary, got \"" + corpus.target_prefix + "\"",
                "it must be one token, such as M2M100's __de__");
  }
}

EncodedExample ExampleEncoder::encode(const Record& record) const {
  EncodedExample example;
  example.skip = record.skip;
  example.why = record.why;
  if (example.skip) return example;
  switch (objective_.kind) {
    case Objective::translation:
    case Objective::parsing:
      encode_pair(record, example);
      break;
    case Objective::causal_lm:
    case Objective::masked_lm:
    case Objective::span_corruption:
    case Objective::denoising:
      encode_document(record, example);
      break;
    case Objective::classification:
    case Objective::regression:
      encode_labelled(record, example);
      break;
    case Objective::tagging:
      encode_tagged(record, example);
      break;
  }
  if (!example.skip) check_lengths(example);
  return example;
}

void ExampleEncoder::encode_pair(const Record& record, EncodedExample& example) const {
  example.first = tokenizer_.encode_ids(corpus_.source_prefix + record.first,
                                        {.special_tokens = true, .side = TextSide::source});
  example.second =
      tokenizer_.encode_ids(record.second, {.special_tokens = true, .side = TextSide::target});
  if (target_prefix_) example.second.insert(example.second.begin(), *target_prefix_);
  // Without an end token in training, generation would never stop.
  if (example.second.empty() || example.second.back() != ids_.end) {
    example.second.push_back(ids_.end);
  }
}

void ExampleEncoder::encode_document(const Record& record, EncodedExample& example) const {
  const EncodeOptions plain{.special_tokens = false};
  const std::string text = corpus_.source_prefix + record.first;
  if (!needs_sentences(objective_)) {
    example.first = tokenizer_.encode_ids(text, plain);
  } else {
    const size_t shift = corpus_.source_prefix.size();
    for (size_t s = 0; s <= record.sentences.size(); ++s) {
      const size_t begin = s == 0 ? 0 : record.sentences[s - 1] + shift;
      const size_t end = s < record.sentences.size() ? record.sentences[s] + shift : text.size();
      const auto ids =
          tokenizer_.encode_ids(std::string_view(text).substr(begin, end - begin), plain);
      if (ids.empty()) continue;
      if (!example.first.empty()) {
        example.second.push_back(static_cast<int32_t>(example.first.size()));
      }
      example.first.insert(example.first.end(), ids.begin(), ids.end());
    }
  }
  if (objective_.kind != Objective::causal_lm) return;
  // A token that both begins and ends (GPT-2's) is stored once between documents.
  if (ids_.begin >= 0 && ids_.begin != ids_.end) {
    example.first.insert(example.first.begin(), ids_.begin);
  }
  if (ids_.end >= 0 && record.ends_document) example.first.push_back(ids_.end);
}

void ExampleEncoder::encode_labelled(const Record& record, EncodedExample& example) const {
  const std::string text = corpus_.source_prefix + record.first;
  Encoding encoding =
      record.has_second ? tokenizer_.encode_pair(text, record.second) : tokenizer_.encode(text);
  example.truncated = truncate(encoding);
  const auto second_text = std::find(encoding.types.begin(), encoding.types.end(), 1);
  example.second = {static_cast<int32_t>(second_text - encoding.types.begin()), 0};
  example.first = std::move(encoding.ids);
  if (objective_.kind == Objective::classification) {
    if (record.label.empty()) {
      example.skip = Skip::malformed;
      example.why = "the label is empty";
    } else {
      example.labels = {record.label};
    }
    return;
  }
  if (const auto score = as_score(record.label)) {
    example.second[1] = std::bit_cast<int32_t>(*score);
  } else {
    example.skip = Skip::malformed;
    example.why = "the label must be a number for regression, got '" + excerpt(record.label) + "'";
  }
}

void ExampleEncoder::encode_tagged(const Record& record, EncodedExample& example) const {
  // Joined by spaces, so that training and `heed tag` encode the same text.
  std::string text;
  std::vector<int64_t> ends;  // of the words, in bytes
  for (const std::string& word : record.words) {
    if (!text.empty()) text += ' ';
    text += word;
    ends.push_back(static_cast<int64_t>(text.size()));
  }
  Encoding encoding = tokenizer_.encode(text);
  example.truncated = truncate(encoding);
  std::vector<uint8_t> seen(record.words.size());
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    example.second.push_back(kIgnoreLabel);
    TextSpan span = encoding.offsets[i];
    // Some tokenizers include the preceding space in a word's token: skip it.
    while (span.begin < span.end && text[static_cast<size_t>(span.begin)] == ' ') ++span.begin;
    if (encoding.is_special[i] != 0 || span.begin >= span.end) continue;
    const auto word =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), span.begin) - ends.begin());
    if (word >= seen.size() || seen[word]) continue;
    seen[word] = 1;
    example.second.back() = static_cast<int32_t>(example.labels.size());
    example.labels.push_back(record.tags[word]);
  }
  example.first = std::move(encoding.ids);
}

bool ExampleEncoder::truncate(Encoding& encoding) const {
  int64_t surplus = std::ssize(encoding.ids) - filters_.max_tokens;
  if (surplus <= 0) return false;
  std::vector<TextIds> texts = texts_of(encoding);
  for (; surplus > 0; --surplus) {
    const auto longest =
        std::max_element(texts.begin(), texts.end(),
                         [](const TextIds& a, const TextIds& b) { return a.size() < b.size(); });
    if (longest == texts.end() || longest->size() == 0) break;
    --longest->end;
  }
  // The truncated texts and all special tokens.
  Encoding kept;
  size_t text = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    while (text < texts.size() && i >= texts[text].end &&
           (text + 1 < texts.size() && i >= texts[text + 1].begin)) {
      ++text;
    }
    const bool in_text = text < texts.size() && i >= texts[text].begin && i < texts[text].end;
    if (!in_text && encoding.is_special[i] == 0) continue;
    kept.ids.push_back(encoding.ids[i]);
    kept.offsets.push_back(encoding.offsets[i]);
    kept.types.push_back(encoding.types[i]);
    kept.is_special.push_back(encoding.is_special[i]);
  }
  encoding = std::move(kept);
  return true;
}

void ExampleEncoder::check_lengths(EncodedExample& example) const {
  const bool pair =
      objective_.kind == Objective::translation || objective_.kind == Objective::parsing;
  const auto first = std::ssize(example.first);
  const auto second = pair ? std::ssize(example.second) : first;
  const bool divided =
      objective_.kind == Objective::causal_lm || objective_.kind == Objective::masked_lm ||
      objective_.kind == Objective::span_corruption || objective_.kind == Objective::denoising;
  if (std::min(first, second) < std::max<int64_t>(1, filters_.min_tokens)) {
    example.skip = Skip::too_short;
  } else if (!divided && std::max(first, second) > filters_.max_tokens) {
    example.skip = Skip::too_long;
  } else if (pair && filters_.max_ratio > 0 &&
             static_cast<double>(std::max(first, second)) >
                 filters_.max_ratio * static_cast<double>(std::min(first, second))) {
    example.skip = Skip::ratio;
  }
}

}  // namespace heed
