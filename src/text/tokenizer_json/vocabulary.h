// A vocabulary: tokens to ids and back.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/containers/string_map.h"
#include "text/tokenizer_json/json_node.h"

namespace heed {

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  // From {"token": id, …}. Throws corrupt_file for ids out of range or duplicate ids.
  static Vocabulary read(const JsonNode& node);

  // Ids need not be contiguous. The token must be new, and the id unused.
  void add(std::string_view piece, int32_t id);
  void finish();  // after the last add(), before the first find()

  int32_t find(std::string_view piece) const { return ids_.find(piece); }  // -1: not found
  // Ids are 0 … size() - 1; some may be unused.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }
  bool has(int32_t id) const {
    return id >= 0 && id < size() && places_[static_cast<size_t>(id)].used;
  }
  std::string_view piece(int32_t id) const {
    const Place& place = places_[static_cast<size_t>(id)];
    return {bytes_.data() + place.begin, place.bytes};
  }

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t bytes : 31 = 0;
    uint32_t used : 1 = 0;
  };

  // A vector, not a string: ids_ points into it, and a moved vector keeps its buffer.
  std::vector<char> bytes_;
  std::vector<Place> places_;
  StringMap ids_;
};

// The ids of the byte fallback tokens <0x00> … <0xFF>; -1 where there is none.
using ByteIds = std::array<int32_t, 256>;
ByteIds find_byte_ids(const Vocabulary& vocabulary);
ByteIds no_byte_ids();

// Above any vocabulary: a larger id means a damaged file.
inline constexpr int64_t kMaxId = (int64_t{1} << 24) - 1;

}  // namespace heed
