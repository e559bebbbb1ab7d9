#include "bench/text_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "text/tokenizer_json/json_tokenizer.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace heed::bench {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostWords = 20000;

// The words of the text, most frequent first: runs of letters, lower-cased on demand.
std::vector<std::string> frequent_words(const std::vector<std::string>& lines, bool lowercase) {
  std::map<std::string, int64_t> counts;
  for (const std::string& line : lines) {
    std::string word;
    for (size_t at = 0; at < line.size();) {
      const CodePoint c = decode_utf8(line, at);
      at += c.bytes;
      if (is_letter(c.value)) {
        lowercase ? append_lower(word, c.value) : append_utf8(word, c.value);
      } else if (!word.empty()) {
        ++counts[word];
        word.clear();
      }
    }
    if (!word.empty()) ++counts[word];
  }
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [word, count] : counts) sorted.emplace_back(-count, word);
  std::ranges::sort(sorted);
  std::vector<std::string> words;
  for (auto& [count, word] : sorted) {
    if (words.size() < kMostWords) words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::vector<std::string> made_up_lines(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::string_view kConsonants = "bcdfghklmnprstvw", kVowels = "aeiou";
  std::vector<std::string> words(30000);
  for (std::string& word : words) {
    const size_t syllables = 1 + random() % 4;
    for (size_t i = 0; i < syllables; ++i) {
      word += kConsonants[random() % kConsonants.size()];
      word += kVowels[random() % kVowels.size()];
      if (random() % 3 == 0) word += kConsonants[random() % kConsonants.size()];
    }
  }
  std::vector<std::string> lines(20000);
  for (std::string& line : lines) {
    const size_t length = 5 + random() % 25;
    for (size_t i = 0; i < length; ++i) {
      // Zipf's law, nearly: the rank is uniform on a logarithmic scale.
      const double share = static_cast<double>(random() % 1000000) / 1e6;
      const auto rank = static_cast<size_t>(std::pow(static_cast<double>(words.size()), share)) - 1;
      if (!line.empty()) line += random() % 12 == 0 ? ", " : " ";
      line += words[std::min(rank, words.size() - 1)];
    }
    line += ".";
  }
  return lines;
}

TokenizerPtr bpe_of(const std::vector<std::string>& lines) {
  Json vocabulary = Json::object(), merges = Json::array();
  for (unsigned byte = 0; byte < 256; ++byte) vocabulary[byte_alphabet()[byte]] = byte;
  for (const std::string& word : frequent_words(lines, false)) {
    // The word with the space before it, built from left to right.
    std::string piece = byte_alphabet()[' '];
    for (const char byte : word) {
      const std::string& next = byte_alphabet()[static_cast<unsigned char>(byte)];
      const std::string longer = piece + next;
      if (!vocabulary.contains(longer)) {
        vocabulary[longer] = vocabulary.size();
        merges.push_back({piece, next});
      }
      piece = longer;
    }
  }
  return make_json_tokenizer(
      {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}},
       {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
       {"decoder", {{"type", "ByteLevel"}}}},
      {.place = "byte-level BPE"});
}

TokenizerPtr wordpiece_of(const std::vector<std::string>& lines) {
  Json vocabulary = {{"[UNK]", 0}};
  const auto add = [&vocabulary](const std::string& piece) {
    if (!vocabulary.contains(piece)) vocabulary[piece] = vocabulary.size();
  };
  for (char c = '!'; c <= '~'; ++c) {
    const std::string piece(1, c);
    add(piece);
    add("##" + piece);
  }
  for (const std::string& word : frequent_words(lines, true)) add(word);
  return make_json_tokenizer({{"model", {{"type", "WordPiece"}, {"vocab", vocabulary}}},
                              {"normalizer", {{"type", "BertNormalizer"}}},
                              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                              {"decoder", {{"type", "WordPiece"}}}},
                             {.place = "WordPiece"});
}

}  // namespace heed::bench
