// Reads the tokenizer files of a model folder: tokenizer.json directly, older files by building the
// equivalent tokenizer.json, so that there is one implementation of encode().
#include <filesystem>
#include <string_view>
#include <utility>

#include "heed/error.h"
#include "text/tokenizer_json/json_tokenizer.h"
#include "text/tokenizer_json/split_patterns.h"
#include "text/tokenizer_json/vocabulary.h"
#include "text/tokenizers/tokenizer_folder.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

using Json = nlohmann::json;

[[noreturn]] void corrupt(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::corrupt_file, path + ": " + problem,
              "the file is damaged or was made by another tool; download it again");
}

// The files that save() writes: these, and the settings of the folder.
std::vector<NamedFile> with_settings(std::vector<NamedFile> files, const TokenizerFolder& folder) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (folder.has(name)) files.push_back({name, read_file(folder.path(name))});
  }
  return files;
}

// Calls line(text, number from 1) for each line, without its line break.
template <class Line>
void each_line(std::string_view text, const std::string& path, const Line& line) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view one = text.substr(0, end);
    if (one.ends_with('\r')) one.remove_suffix(1);
    if (!is_utf8(one)) corrupt(path, "line " + std::to_string(number) + " is not UTF-8");
    line(one, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Json special_token(const std::string& content, int32_t id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// The special tokens that the folder names, or the defaults, if the vocabulary has them.
Json special_tokens(const Json& vocabulary, const TokenizerFolder& folder,
                    const std::vector<std::pair<const char*, const char*>>& otherwise) {
  Json tokens = Json::array();
  std::vector<std::string> seen;
  const auto add = [&](const std::string& content, std::optional<int32_t> id) {
    if (std::ranges::find(seen, content) != seen.end()) return;
    const auto found = vocabulary.find(content);
    if (found != vocabulary.end() && found->is_number_unsigned() &&
        std::in_range<int32_t>(found->get<uint64_t>())) {
      id = found->get<int32_t>();
    }
    if (!id) return;
    tokens.push_back(special_token(content, *id));
    seen.push_back(content);
  };
  for (const auto& [key, name] : otherwise) add(folder.token(key).value_or(name), std::nullopt);
  for (const TokenizerFolder::AddedToken& token : folder.added_tokens()) {
    add(token.text, token.id);
    if (seen.empty() || seen.back() != token.text) continue;
    tokens.back()["lstrip"] = token.strip_left;
    tokens.back()["rstrip"] = token.strip_right;
    tokens.back()["special"] = token.special;
  }
  return tokens;
}

// begin A end, and begin A end [end] B end: BERT's and RoBERTa's.
Json processor(const char* type, const Json& vocabulary, const std::string& begin,
               const std::string& end) {
  const auto begin_id = vocabulary.find(begin), end_id = vocabulary.find(end);
  if (begin_id == vocabulary.end() || end_id == vocabulary.end()) return nullptr;
  return {{"type", type}, {"cls", {begin, *begin_id}}, {"sep", {end, *end_id}}};
}

Json read_merges(const std::string& text, const std::string& path) {
  Json merges = Json::array();
  each_line(text, path, [&](std::string_view line, size_t number) {
    if (line.empty() || line.starts_with("#version")) return;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) {
      corrupt(path, "line " + std::to_string(number) +
                        ": must be two tokens separated by a space, got '" + std::string(line) +
                        "'");
    }
    merges.push_back(line);
  });
  return merges;
}

}  // namespace

TokenizerPtr load_json_tokenizer(const std::string& path, const TokenizerFolder& folder) {
  std::string text = read_file(path);
  const Json document = parse_json(text, path);
  return make_json_tokenizer(document,
                             {.place = path,
                              .files = with_settings({{"tokenizer.json", std::move(text)}}, folder),
                              .folder = &folder});
}

TokenizerPtr load_bert_vocabulary(const std::string& path, const TokenizerFolder& folder) {
  std::string text = read_file(path);
  Json vocabulary = Json::object();
  each_line(text, path, [&](std::string_view line, size_t number) {
    if (number > size_t{kMaxId})
      corrupt(path, "must have at most " + std::to_string(kMaxId) + " lines");
    if (!line.empty()) vocabulary[std::string(line)] = number - 1;
  });
  if (vocabulary.empty()) corrupt(path, "must have tokens");

  const bool lowercase = folder.flag("do_lower_case").value_or(true);
  const std::string begin = folder.token("cls_token").value_or("[CLS]");
  const std::string end = folder.token("sep_token").value_or("[SEP]");
  const Json document = {
      {"added_tokens", special_tokens(vocabulary, folder,
                                      {{"unk_token", "[UNK]"},
                                       {"sep_token", "[SEP]"},
                                       {"pad_token", "[PAD]"},
                                       {"cls_token", "[CLS]"},
                                       {"mask_token", "[MASK]"}})},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"lowercase", lowercase},
        {"strip_accents", folder.flag("strip_accents").value_or(lowercase)},
        {"handle_chinese_chars", folder.flag("tokenize_chinese_chars").value_or(true)},
        // Only the (slow) tokenizer that reads this file does this.
        {"drop_unassigned", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", processor("BertProcessing", vocabulary, begin, end)},
      {"decoder", {{"type", "WordPiece"}, {"cleanup", false}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", folder.token("unk_token").value_or("[UNK]")},
        {"vocab", vocabulary}}}};
  return make_json_tokenizer(document,
                             {.place = path,
                              .files = with_settings({{"vocab.txt", std::move(text)}}, folder),
                              .folder = &folder});
}

TokenizerPtr load_bpe_files(const TokenizerFolder& folder) {
  const std::string vocabulary_path = folder.path("vocab.json");
  const std::string merges_path = folder.path("merges.txt");
  for (const std::string& path : {vocabulary_path, merges_path}) {
    if (!std::filesystem::exists(path)) {
      throw Error(ErrorCode::not_found, path + " is missing",
                  "vocab.json and merges.txt must both be present");
    }
  }
  if (folder.tokenizer_class() == "CLIPTokenizer") {
    throw Error(ErrorCode::unsupported, vocabulary_path + ": CLIP's tokenizer is not supported",
                "convert it to a tokenizer.json");
  }
  std::string vocabulary_text = read_file(vocabulary_path);
  std::string merges_text = read_file(merges_path);
  const Json vocabulary = parse_json(vocabulary_text, vocabulary_path);
  if (!vocabulary.is_object()) corrupt(vocabulary_path, "must be an object of tokens and ids");

  const bool is_qwen = folder.tokenizer_class() == "Qwen2Tokenizer";
  const bool is_gpt2 = folder.tokenizer_class() == "GPT2Tokenizer";
  const std::string begin = folder.token("cls_token").value_or("<s>");
  const std::string end = folder.token("sep_token").value_or("</s>");
  Json specials = special_tokens(vocabulary, folder,
                                 {{"bos_token", "<s>"},
                                  {"eos_token", "</s>"},
                                  {"pad_token", "<pad>"},
                                  {"unk_token", "<unk>"},
                                  {"mask_token", "<mask>"},
                                  {"cls_token", "<s>"},
                                  {"sep_token", "</s>"},
                                  {"", "<|endoftext|>"}});
  for (Json& token : specials) {
    // RoBERTa's mask strips the space before it, so that the prediction is a whole word.
    if (token["content"] == folder.token("mask_token").value_or("<mask>")) token["lstrip"] = true;
  }
  const bool prefix_space = folder.flag("add_prefix_space").value_or(false);
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"use_regex", !is_qwen}};
  const Json qwen_split = {{"type", "Split"},
                           {"pattern", {{"Regex", std::string(kQwen2Pattern)}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const Json qwen_pre_tokenizer = {{"type", "Sequence"},
                                   {"pretokenizers", {qwen_split, byte_level}}};
  const Json document = {
      {"added_tokens", specials},
      {"normalizer", is_qwen ? Json{{"type", "NFC"}} : Json(nullptr)},
      {"pre_tokenizer", is_qwen ? qwen_pre_tokenizer : byte_level},
      {"post_processor",
       is_gpt2 || is_qwen ? Json(nullptr) : processor("RobertaProcessing", vocabulary, begin, end)},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocabulary},
        {"merges", read_merges(merges_text, merges_path)}}}};
  return make_json_tokenizer(document,
                             {.place = vocabulary_path,
                              .files = with_settings({{"vocab.json", std::move(vocabulary_text)},
                                                      {"merges.txt", std::move(merges_text)}},
                                                     folder),
                              .folder = &folder});
}

}  // namespace heed
