// Trains byte-level BPE (GPT-2) and WordPiece (BERT).
//
// The trained tokenizer's own normalizer and pre-tokenizer split the text into words; pair_merges.h
// learns from the word counts.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "base/thread_pool.h"
#include "heed/error.h"
#include "text/tokenizer_json/json_tokenizer.h"
#include "text/tokenizer_json/normalizers.h"
#include "text/tokenizer_json/pre_tokenizers.h"
#include "text/tokenizer_json/split_patterns.h"
#include "text/tokenizer_json/tokenizer_parts.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/training/pair_merges.h"
#include "text/training/tokenizer_training.h"
#include "text/training/training_lines.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;
using WordCounts = std::unordered_map<std::string, int64_t>;

constexpr size_t kBatchBytes = 16 << 20;

// Counts words(line, counts) over all lines on several threads. Integer sums, so the result does not
// depend on how the lines are distributed.
template <class Words>
std::map<std::string, int64_t> count_words(TrainingLines& lines, int threads, const Words& words) {
  ThreadPool pool(threads);
  std::map<std::string, int64_t> total;
  WordCounts sum;
  std::vector<std::string> batch;
  for (bool more = true; more;) {
    batch.clear();
    std::string line;
    for (size_t bytes = 0; bytes < kBatchBytes && (more = lines.next(line));) {
      bytes += line.size() + sizeof(std::string);
      batch.push_back(std::move(line));
    }
    const auto shares = static_cast<int64_t>(pool.threads());
    std::vector<WordCounts> counts(static_cast<size_t>(shares));
    pool.parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
      const auto cut = [&](int64_t share) {
        return batch.size() * static_cast<size_t>(share) / static_cast<size_t>(shares);
      };
      for (int64_t share = begin; share < end; ++share) {
        for (size_t i = cut(share); i < cut(share + 1); ++i) {
          words(batch[i], counts[static_cast<size_t>(share)]);
        }
      }
    });
    for (const WordCounts& some : counts) {
      for (const auto& [word, count] : some) sum[word] += count;
    }
  }
  lines.check_not_empty();
  for (auto& [word, count] : sum) total.emplace(word, count);
  return total;
}

std::vector<std::string> names_of_specials(const std::vector<std::string>& own,
                                           const TokenizerTraining& training) {
  std::vector<std::string> names = own;
  for (const std::string& token : training.special_tokens) {
    if (std::find(names.begin(), names.end(), token) == names.end()) names.push_back(token);
  }
  return names;
}

void check_room(const TokenizerTraining& training, size_t needed) {
  if (training.vocabulary >= to_signed(needed)) return;
  throw Error(ErrorCode::invalid_argument,
              "a vocabulary of " + std::to_string(training.vocabulary) +
                  " is too small for the characters of this text and the special tokens, which "
                  "need " +
                  std::to_string(needed),
              "use a larger vocabulary");
}

void check_reached(const TokenizerTraining& training, size_t reached) {
  if (to_signed(reached) >= training.vocabulary) return;
  throw Error(ErrorCode::invalid_argument,
              "a vocabulary of " + std::to_string(training.vocabulary) +
                  " is too large for this text, which allows at most " + std::to_string(reached),
              "use a vocabulary of at most " + std::to_string(reached) + ", or more text");
}

PairMergesOptions merges_options(const TokenizerTraining& training, const std::string& prefix) {
  PairMergesOptions options;
  options.symbols = training.vocabulary;
  options.continuing_prefix = prefix;
  if (training.progress) {
    options.progress = [&training](double done) { training.progress("learning merges", done); };
  }
  return options;
}

Json special_token_list(const std::vector<std::string>& names, size_t specials) {
  Json list = Json::array();
  for (size_t id = 0; id < specials; ++id) {
    list.push_back({{"id", id},
                    {"content", names[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

Json vocabulary_of(const std::vector<std::string>& names) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < names.size(); ++id) vocabulary[names[id]] = id;
  return vocabulary;
}

TokenizerPtr make_trained(const Json& document, const Json& config, std::vector<NamedFile> files) {
  files.push_back({"tokenizer.json", document.dump(2) + "\n"});
  files.push_back({"tokenizer_config.json", config.dump(2) + "\n"});
  const TokenizerFolder folder = TokenizerFolder::with_config(config);
  return make_json_tokenizer(
      document, {.place = "the trained tokenizer", .files = std::move(files), .folder = &folder});
}

std::string lowered(std::string_view text) {
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    append_lower(lower, c.value);
    at += c.bytes;
  }
  return lower;
}

// What differs between the byte-level BPE families.
struct ByteLevelFamily {
  std::vector<std::string> own;  // special tokens, with the first ids
  Json config;                   // the family's part of tokenizer_config.json
  Json post_processor;           // null: no special tokens around a text
};

Json byte_bpe_json(const std::vector<std::string>& names, size_t specials, const Json& merges,
                   const Json& post_processor, bool lowercase) {
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", special_token_list(names, specials)},
          {"normalizer", lowercase ? Json{{"type", "Lowercase"}} : Json(nullptr)},
          {"pre_tokenizer", byte_level},
          {"post_processor", post_processor.is_null() ? byte_level : post_processor},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"vocab", vocabulary_of(names)},
            {"merges", merges}}}};
}

// Initial symbols of WordPiece: characters at the start of a word, and continuations.
struct Alphabet {
  std::map<std::string, int32_t> first, later;  // later: with "##"
};

constexpr const char* kContinuing = "##";

template <class Function>
void each_character(const std::string& word, Function function) {
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = decode_utf8(word, at);
    function(word.substr(at, c.bytes), at == 0);
    at += c.bytes;
  }
}

// The characters that cover 99.95 % of the text, SentencePiece's default coverage; rarer ones would
// waste vocabulary.
std::map<std::string, int64_t> frequent_characters(const std::map<std::string, int64_t>& words) {
  constexpr double kCoverage = 0.9995;
  std::map<std::string, int64_t> counts;
  int64_t total = 0;
  for (const auto& [word, count] : words) {
    each_character(word, [&, n = count](const std::string& c, bool) {
      counts[c] += n;
      total += n;
    });
  }
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [c, count] : counts) order.emplace_back(-count, c);
  std::sort(order.begin(), order.end());
  std::map<std::string, int64_t> frequent;
  int64_t covered = 0;
  for (const auto& [count, c] : order) {
    if (static_cast<double>(covered) >= kCoverage * static_cast<double>(total)) break;
    covered -= count;
    frequent.emplace(c, -count);
  }
  return frequent;
}

Json bert_json(const std::vector<std::string>& names, size_t specials, const Json& normalizer) {
  const auto sequence = [](const char* id, int type) {
    return Json{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const auto special = [](const char* id, int type) {
    return Json{{"SpecialToken", {{"id", id}, {"type_id", type}}}};
  };
  const auto token = [&names](const char* name) {
    const auto id = std::find(names.begin(), names.end(), name) - names.begin();
    return Json{{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", special_token_list(names, specials)},
          {"normalizer", normalizer},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)}},
            {"pair",
             {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0), sequence("B", 1),
              special("[SEP]", 1)}},
            {"special_tokens", {{"[CLS]", token("[CLS]")}, {"[SEP]", token("[SEP]")}}}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", kContinuing}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", kContinuing},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary_of(names)}}}};
}

TokenizerPtr train_byte_level(const TokenizerTraining& training, TokenizerTrainingReport& report,
                              const ByteLevelFamily& family) {
  std::vector<std::string> names = names_of_specials(family.own, training);
  const size_t specials = names.size();
  // The alphabet in code point order, as in Hugging Face's trainer.
  std::vector<std::pair<char32_t, size_t>> order;
  for (size_t byte = 0; byte < 256; ++byte) {
    order.emplace_back(decode_utf8(byte_alphabet()[byte], 0).value, byte);
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> id_of_byte(256);
  for (const auto& [character, byte] : order) {
    id_of_byte[byte] = static_cast<int32_t>(names.size());
    names.push_back(byte_alphabet()[byte]);
  }
  check_room(training, names.size());

  TrainingLines lines(training, TrainingLines::Invalid::kept, report);
  const auto count_line = [&training](const std::string& line, WordCounts& counts) {
    const std::string text = (training.lowercase ? lowered(line) : line) + '\n';
    for (size_t at = 0; at < text.size();) {
      const size_t end = gpt2_piece_end(text, at);
      ++counts[text.substr(at, end - at)];
      at = end;
    }
  };
  std::vector<TrainingWord> words;
  for (const auto& [word, count] : count_words(lines, training.threads, count_line)) {
    TrainingWord& training_word = words.emplace_back();
    training_word.count = count;
    for (const char byte : word) {
      training_word.symbols.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
    }
  }
  const std::vector<PairMerge> merges =
      learn_merges(std::move(words), names, merges_options(training, ""));
  check_reached(training, names.size());

  Json merge_list = Json::array();
  std::string merges_text = "#version: 0.2\n";
  for (const PairMerge& merge : merges) {
    const std::string line =
        names[static_cast<size_t>(merge.left)] + " " + names[static_cast<size_t>(merge.right)];
    merge_list.push_back(line);
    merges_text += line + "\n";
  }
  Json config = family.config;
  config.update({{"add_prefix_space", false},
                 {"clean_up_tokenization_spaces", false},
                 {"model_max_length", kNoMaxLength}});
  if (!training.special_tokens.empty()) {
    config["additional_special_tokens"] = training.special_tokens;
  }
  return make_trained(
      byte_bpe_json(names, specials, merge_list, family.post_processor, training.lowercase), config,
      {{"vocab.json", vocabulary_of(names).dump() + "\n"}, {"merges.txt", std::move(merges_text)}});
}

}  // namespace

TokenizerPtr train_byte_bpe(const TokenizerTraining& training, TokenizerTrainingReport& report) {
  const std::string end_of_text = "<|endoftext|>";
  return train_byte_level(training, report,
                          {.own = {end_of_text},
                           .config = {{"tokenizer_class", "GPT2Tokenizer"},
                                      {"bos_token", end_of_text},
                                      {"eos_token", end_of_text},
                                      {"unk_token", end_of_text}},
                           .post_processor = nullptr});
}

TokenizerPtr train_roberta(const TokenizerTraining& training, TokenizerTrainingReport& report) {
  return train_byte_level(training, report,
                          {.own = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"},
                           .config = {{"tokenizer_class", "RobertaTokenizer"},
                                      {"bos_token", "<s>"},
                                      {"cls_token", "<s>"},
                                      {"pad_token", "<pad>"},
                                      {"eos_token", "</s>"},
                                      {"sep_token", "</s>"},
                                      {"unk_token", "<unk>"},
                                      {"mask_token", "<mask>"}},
                           .post_processor = {{"type", "RobertaProcessing"},
                                              {"cls", {"<s>", 0}},
                                              {"sep", {"</s>", 2}},
                                              {"trim_offsets", true},
                                              {"add_prefix_space", false}}});
}

TokenizerPtr train_wordpiece(const TokenizerTraining& training, TokenizerTrainingReport& report) {
  std::vector<std::string> names =
      names_of_specials({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, training);
  const size_t specials = names.size();
  const Json normalizer_json = {{"type", "BertNormalizer"},
                                {"clean_text", true},
                                {"handle_chinese_chars", true},
                                {"strip_accents", nullptr},
                                {"lowercase", training.lowercase}};
  const nlohmann::json normalizer_settings = normalizer_json;
  const nlohmann::json splitter_settings = {{"type", "BertPreTokenizer"}};
  const auto normalizer = read_normalizer(JsonNode(normalizer_settings, "normalizer"));
  const auto splitter = read_pre_tokenizer(JsonNode(splitter_settings, "pre_tokenizer"));

  TrainingLines lines(training, TrainingLines::Invalid::repaired, report);
  const auto count_line = [&](const std::string& line, WordCounts& counts) {
    SplitText split;
    split.text = AlignedText(line, 0, false);
    normalizer->apply(split.text);
    if (split.text.text.empty()) return;
    split.pieces = {{0, static_cast<uint32_t>(split.text.text.size()), -1}};
    splitter->split(split);
    for (const TextPiece& piece : split.pieces) {
      ++counts[split.text.text.substr(piece.begin, piece.end - piece.begin)];
    }
  };
  const std::map<std::string, int64_t> counted = count_words(lines, training.threads, count_line);
  const std::map<std::string, int64_t> frequent = frequent_characters(counted);

  Alphabet alphabet;
  std::vector<std::pair<const std::string*, int64_t>> usable;
  for (const auto& [word, count] : counted) {
    bool known = true;
    each_character(word, [&](const std::string& c, bool) { known = known && frequent.count(c); });
    if (!known) continue;
    usable.emplace_back(&word, count);
    each_character(word, [&](const std::string& c, bool first) {
      if (first) {
        alphabet.first.emplace(c, 0);
      } else {
        alphabet.later.emplace(kContinuing + c, 0);
      }
    });
  }
  for (auto* part : {&alphabet.first, &alphabet.later}) {
    for (auto& [name, id] : *part) {
      id = static_cast<int32_t>(names.size());
      names.push_back(name);
    }
  }
  check_room(training, names.size());
  std::vector<TrainingWord> words;
  for (const auto& [word, count] : usable) {
    TrainingWord& training_word = words.emplace_back();
    training_word.count = count;
    each_character(*word, [&](const std::string& c, bool first) {
      training_word.symbols.push_back(first ? alphabet.first.at(c)
                                            : alphabet.later.at(kContinuing + c));
    });
  }
  learn_merges(std::move(words), names, merges_options(training, kContinuing));
  check_reached(training, names.size());

  std::string vocabulary_text;
  for (const std::string& name : names) vocabulary_text += name + "\n";
  Json config = {{"tokenizer_class", "BertTokenizer"},
                 {"do_lower_case", training.lowercase},
                 {"pad_token", "[PAD]"},
                 {"unk_token", "[UNK]"},
                 {"cls_token", "[CLS]"},
                 {"sep_token", "[SEP]"},
                 {"mask_token", "[MASK]"},
                 {"model_max_length", kNoMaxLength}};
  if (!training.special_tokens.empty()) {
    config["additional_special_tokens"] = training.special_tokens;
  }
  return make_trained(bert_json(names, specials, normalizer_json), config,
                      {{"vocab.txt", std::move(vocabulary_text)}});
}

}  // namespace heed
