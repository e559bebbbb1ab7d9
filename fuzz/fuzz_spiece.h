// Small hand-written SentencePiece models.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace heed::fuzz {

inline std::string field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) text += static_cast<char>(size | 0x80);
  text += static_cast<char>(size);
  return text += bytes;
}

inline std::string piece(const std::string& text, int type, float score) {
  std::string fields = field(1, text);
  fields += '\x15';
  fields.append(reinterpret_cast<const char*>(&score), sizeof(score));
  fields += '\x18';
  fields += static_cast<char>(type);
  return field(1, fields);
}

// A rule that replaces "a" by "bb": a double array of 512 units.
inline std::string normalizer_spec() {
  std::vector<uint32_t> units(512);
  constexpr uint32_t kOffset = 256;
  units['a'] = 'a' | 1U << 8 | kOffset << 10;
  units['a' ^ kOffset] = 1U << 31;
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string map(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  map.append(reinterpret_cast<const char*>(units.data()), bytes);
  map.append("bb\0", 3);
  return field(3, field(2, map));
}

// model_type: 1 unigram, 2 bpe, 3 word, 4 char.
inline std::string spiece_model(int model_type, bool rules) {
  std::string model = piece("<unk>", 2, 0) + piece("<s>", 3, 0) + piece("<user>", 4, 0);
  float score = -1;
  for (const char* text : {"\xe2\x96\x81", "b", "c", "\xc3\xa9",
                           "\xe2\x96\x81"
                           "b",
                           "bc", "bb"}) {
    model += piece(text, 1, score--);
  }
  std::string trainer(1, '\x18');
  trainer += static_cast<char>(model_type);
  model += field(2, trainer);
  if (rules) model += normalizer_spec();
  return model;
}

}  // namespace heed::fuzz
