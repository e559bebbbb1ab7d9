// Pieces and their ids, both ways.
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
  // From {"piece": id, …}. Throws corrupt_file: ids out of range, one id for two pieces.
  static Vocabulary read(const JsonNode& node);

  // Ids may be left out. The piece must be new, and the id free.
  void add(std::string_view piece, int32_t id);
  void finish();  // after the last add(), before the first find()

  int32_t find(std::string_view piece) const { return ids_.find(piece); }  // -1: not there
  // Ids are 0 … size() - 1; those that nobody has are free.
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

  // A vector and no string: its bytes stay where they are when the vocabulary moves, and ids_
  // borrows them.
  std::vector<char> bytes_;
  std::vector<Place> places_;
  StringMap ids_;
};

// The ids of the pieces <0x00> … <0xFF>, with which SentencePiece spells what it does not know;
// -1 where there is none.
using ByteIds = std::array<int32_t, 256>;
ByteIds find_byte_ids(const Vocabulary& vocabulary);
ByteIds no_byte_ids();

// No vocabulary comes near this; a file that says so is damaged.
inline constexpr int64_t kMaxId = (int64_t{1} << 24) - 1;

}  // namespace heed
