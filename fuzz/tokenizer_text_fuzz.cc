// Any bytes as text, through small tokenizers of every type: encode() and encode_ids() agree, spans are
// inside the text, decode() accepts the ids, and byte-level tokenizers round-trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_json/json_tokenizer.h"
#include "text/tokenizer_json/split_patterns.h"
#include "text/unicode/byte_alphabet.h"

namespace {

using Json = nlohmann::json;

Json byte_level_model() {
  Json vocabulary;
  for (unsigned byte = 0; byte < 256; ++byte) vocabulary[heed::byte_alphabet()[byte]] = byte;
  Json merges = Json::array();
  const auto merge = [&](const char* left, const char* right) {
    vocabulary[std::string(left) + right] = vocabulary.size();
    merges.push_back({left, right});
  };
  merge("h", "e");
  merge("t", "he");
  merge("Ġ", "the");
  merge("Ã", "©");
  merge("a", "a");
  merge("aa", "aa");
  return {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}};
}

Json split(std::string_view pattern) {
  const Json cut = {{"type", "Split"},
                    {"pattern", {{"Regex", std::string(pattern)}}},
                    {"behavior", "Isolated"},
                    {"invert", false}};
  return {{"type", "Sequence"},
          {"pretokenizers",
           {cut, {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

struct Case {
  heed::TokenizerPtr tokenizer;
  bool gives_back = false;
};

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Json& document, bool gives_back) {
    cases.push_back({heed::make_json_tokenizer(document, {}), gives_back});
  };
  for (const std::string_view pattern :
       {heed::kGpt2Pattern, heed::kLlama3Pattern, heed::kQwen2Pattern,
        std::string_view(R"( ?[^(\s|[.,!?])]+)")}) {
    add({{"model", byte_level_model()},
         {"pre_tokenizer", split(pattern)},
         {"decoder", {{"type", "ByteLevel"}}}},
        true);
  }
  const Json wordpiece = {{"type", "WordPiece"},
                          {"vocab", {{"[UNK]", 0}, {"a", 1}, {"##b", 2}, {"the", 3}, {"e", 4}}}};
  add({{"model", wordpiece},
       {"normalizer", {{"type", "BertNormalizer"}}},
       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
       {"decoder", {{"type", "WordPiece"}}},
       {"added_tokens",
        {{{"id", 9}, {"content", "[X]"}, {"lstrip", true}, {"rstrip", true}, {"special", true}},
         {{"id", 10}, {"content", "Ab"}, {"single_word", true}}}}},
      false);
  const Json unigram = Json::parse(R"({"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0], ["▁", -2], ["a", -3], ["▁a", -1], ["é", -4]]})");
  for (const char* form :
       {"NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "Strip"}) {
    add({{"model", unigram},
         {"normalizer", {{"type", form}}},
         {"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "first"}}},
         {"decoder", {{"type", "Metaspace"}}}},
        false);
  }
  return cases;
}

void check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Case> kCases = make_cases();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Case& one : kCases) {
    const heed::Encoding encoding = one.tokenizer->encode(text);
    check(encoding.ids == one.tokenizer->encode_ids(text));
    check(encoding.offsets.size() == encoding.ids.size());
    for (const heed::TextSpan& span : encoding.offsets) {
      check(span.begin >= 0 && span.begin <= span.end && span.end <= static_cast<int64_t>(size));
    }
    const std::string decoded = one.tokenizer->decode(encoding.ids);
    check(!one.gives_back || decoded == text);
  }
  return 0;
}
