#include "text/tokenizer_json/vocabulary.h"

#include "base/check.h"

namespace heed {

Vocabulary Vocabulary::read(const JsonNode& node) {
  if (!node.value().is_object()) node.must_be("an object of tokens and ids");
  Vocabulary vocabulary;
  for (const auto& [piece, value] : node.value().items()) {
    // A JsonNode for each of a hundred thousand tokens would dominate the loading time.
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{kMaxId};
    if (!fits) node.at(piece.c_str()).integer(0, kMaxId);
    const auto id = value.get<int32_t>();
    if (vocabulary.has(id)) {
      node.corrupt(in_single_quotes(vocabulary.piece(id)) + " and " + in_single_quotes(piece) +
                   " have the same id " + std::to_string(id));
    }
    vocabulary.add(piece, id);
  }
  vocabulary.finish();
  return vocabulary;
}

void Vocabulary::add(std::string_view piece, int32_t id) {
  HEED_CHECK(id >= 0 && id <= kMaxId && !has(id), "an id must be unique and in range");
  if (id >= size()) places_.resize(static_cast<size_t>(id) + 1);
  Place& place = places_[static_cast<size_t>(id)];
  place.begin = static_cast<uint32_t>(bytes_.size());
  place.bytes = static_cast<uint32_t>(piece.size()) & 0x7FFFFFFF;
  place.used = 1;
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
}

void Vocabulary::finish() {
  ids_ = {};
  ids_.reserve(places_.size());
  for (int32_t id = 0; id < size(); ++id) {
    if (has(id)) ids_.insert(piece(id), id);
  }
}

ByteIds find_byte_ids(const Vocabulary& vocabulary) {
  ByteIds ids{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const std::string piece = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    ids[byte] = vocabulary.find(piece);
  }
  return ids;
}

ByteIds no_byte_ids() {
  ByteIds ids{};
  ids.fill(-1);
  return ids;
}

}  // namespace heed
