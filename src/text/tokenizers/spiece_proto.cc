#include "text/tokenizers/spiece_proto.h"

#include <array>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "heed/error.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

// More than any model has (mT5: 250 000): an untrusted file must not make the library's tables grow
// without limit.
constexpr size_t kMaxPieces = 4'000'000;
constexpr size_t kMaxPieceBytes = 1 << 16;
constexpr float kMaxScore = 1e9F;

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;      // a varint's
    float real = 0;          // of four bytes
    std::string_view bytes;  // of a string or a message
    enum { varint, eight_bytes, text, four_bytes } kind = varint;
  };

  bool done() const { return bytes_.empty(); }

  Field next() {
    Field field;
    const uint64_t key = varint();
    field.number = key >> 3;
    if (field.number == 0) fail("a field has the number 0");
    switch (key & 7) {
      case 0:
        field.kind = Field::varint;
        field.value = varint();
        break;
      case 1:
        field.kind = Field::eight_bytes;
        take(8);
        break;
      case 2:
        field.kind = Field::text;
        field.bytes = take(varint());
        break;
      case 5: {
        field.kind = Field::four_bytes;
        std::memcpy(&field.real, take(4).data(), 4);
        break;
      }
      default:
        fail("a field has an unknown wire type");
    }
    return field;
  }

  std::string_view message(const Field& field) const {
    if (field.kind != Field::text) fail("a field has the wrong type");
    return field.bytes;
  }
  uint64_t number(const Field& field) const {
    if (field.kind != Field::varint) fail("a field has the wrong type");
    return field.value;
  }
  float real(const Field& field) const {
    if (field.kind != Field::four_bytes) fail("a field has the wrong type");
    return field.real;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::corrupt_file, name_ + " is not a SentencePiece model: " + what,
                "download the file again");
  }

 private:
  std::string_view take(uint64_t length) {
    if (length > bytes_.size()) fail("it is truncated");
    const std::string_view taken = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number must not exceed 64 bits");
  }

  std::string_view bytes_;
  const std::string& name_;
};

// The rules are a Darts double array and the NUL-terminated replacements it points to. The library
// walks the array without bounds checks: from unit p, byte c leads to unit p ^ offset ^ c if that has
// the label c. So every reachable unit must be inside, for all 256 bytes.
class CharsMap {
 public:
  CharsMap(std::string_view map, const Reader& reader) : reader_(reader) {
    uint32_t trie_bytes = 0;
    if (map.size() < sizeof(trie_bytes)) reader_.fail("its normalization rules are truncated");
    std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
    map.remove_prefix(sizeof(trie_bytes));
    if (trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0 || trie_bytes >= map.size()) {
      reader_.fail("its normalization rules have no table");
    }
    units_.resize(trie_bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), map.data(), trie_bytes);
    replacements_ = map.substr(trie_bytes);
    if (replacements_.back() != '\0' || !is_utf8(replacements_)) {
      reader_.fail("the replacements of its normalization rules must be UTF-8");
    }
  }

  void check() {
    std::vector<bool> seen(units_.size());
    std::vector<size_t> open = {0};
    seen[0] = true;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      const size_t base = at ^ offset(units_[at]);
      if ((base | 0xff) >= units_.size())
        reader_.fail("its normalization rules point outside the table");
      if (at != 0 && has_value(units_[at])) check_value(units_[base]);
      for (size_t c = 0; c < 256; ++c) {
        const size_t child = base ^ c;
        if (label(units_[child]) != c || seen[child]) continue;
        seen[child] = true;
        open.push_back(child);
      }
    }
  }

 private:
  // The layout of a unit in darts-clone.
  static uint32_t label(uint32_t unit) { return unit & 0x800000ffU; }
  static bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static size_t offset(uint32_t unit) {
    return static_cast<size_t>(unit >> 10) << ((unit & 0x200U) >> 6);
  }

  void check_value(uint32_t unit) const {
    const uint32_t value = unit & 0x7fffffffU;
    if (value >= replacements_.size() ||
        (static_cast<unsigned char>(replacements_[value]) & 0xc0) == 0x80) {
      reader_.fail("a normalization rule has no replacement");
    }
  }

  const Reader& reader_;
  std::vector<uint32_t> units_;
  std::string_view replacements_;
};

SpieceProto::Piece read_piece(std::string_view bytes, const std::string& name) {
  SpieceProto::Piece piece;
  Reader reader(bytes, name);
  while (!reader.done()) {
    const Reader::Field field = reader.next();
    if (field.number == 1) piece.text = reader.message(field);
    if (field.number == 2) piece.score = reader.real(field);
    if (field.number == 3) {
      const uint64_t type = reader.number(field);
      if (type < 1 || type > 6) reader.fail("a piece has an unknown type");
      piece.type = static_cast<PieceType>(type);
    }
  }
  if (piece.text.empty()) reader.fail("a piece must not be empty");
  if (piece.text.size() > kMaxPieceBytes) reader.fail("a piece is too long");
  if (piece.text.find('\0') != std::string_view::npos)
    reader.fail("a piece must not have a NUL byte");
  if (!is_utf8(piece.text)) reader.fail("a piece must be UTF-8");
  if (!(std::abs(piece.score) <= kMaxScore)) reader.fail("a piece's score must be a finite number");
  return piece;
}

void read_trainer_spec(std::string_view bytes, const std::string& name, SpieceProto& proto) {
  constexpr uint64_t kModelType = 3, kByteFallback = 35;
  Reader reader(bytes, name);
  while (!reader.done()) {
    const Reader::Field field = reader.next();
    if (field.number == kModelType) {
      const uint64_t type = reader.number(field);
      if (type < 1 || type > 4) reader.fail("the model type is unknown");
    }
    if (field.number == kByteFallback) proto.byte_fallback = reader.number(field) != 0;
  }
}

void check_normalizer_spec(std::string_view bytes, const std::string& name) {
  constexpr uint64_t kCharsMap = 2;
  Reader reader(bytes, name);
  while (!reader.done()) {
    const Reader::Field field = reader.next();
    if (field.number != kCharsMap) continue;
    const std::string_view map = reader.message(field);
    if (!map.empty()) CharsMap(map, reader).check();
  }
}

// "<0x0A>": its byte, or -1.
int byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int byte = 0;
  for (const char c : piece.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'A' || c > 'F')) return -1;
    byte = byte * 16 + (digit ? c - '0' : c - 'A' + 10);
  }
  return byte;
}

void check_pieces(const SpieceProto& proto, const Reader& reader) {
  if (proto.pieces.empty()) reader.fail("it has no pieces");
  if (proto.pieces.size() > kMaxPieces) reader.fail("it has too many pieces");
  std::unordered_set<std::string_view> seen;
  std::array<bool, 256> bytes{};
  int unknown = 0, with_bytes = 0, usable = 0;
  for (const SpieceProto::Piece& piece : proto.pieces) {
    if (!seen.insert(piece.text).second) reader.fail("pieces must be unique");
    unknown += piece.type == PieceType::unknown;
    usable += piece.type == PieceType::normal || piece.type == PieceType::user_defined;
    if (piece.type == PieceType::byte) {
      const int byte = byte_of(piece.text);
      if (byte < 0) reader.fail("a byte piece must name a byte");
      bytes[static_cast<size_t>(byte)] = true;
      ++with_bytes;
    }
  }
  if (unknown != 1) reader.fail("must have one unknown piece, got " + std::to_string(unknown));
  if (usable == 0) reader.fail("it has no pieces of text");
  if (proto.byte_fallback ? with_bytes != 256 : with_bytes != 0) {
    reader.fail("must have " + std::string(proto.byte_fallback ? "256" : "no") +
                " byte pieces, got " + std::to_string(with_bytes));
  }
}

}  // namespace

SpieceProto read_spiece_proto(std::string_view bytes, const std::string& name) {
  constexpr uint64_t kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3, kDenormalizerSpec = 5;
  SpieceProto proto;
  Reader reader(bytes, name);
  while (!reader.done()) {
    const Reader::Field field = reader.next();
    switch (field.number) {
      case kPieces:
        proto.pieces.push_back(read_piece(reader.message(field), name));
        break;
      case kTrainerSpec:
        read_trainer_spec(reader.message(field), name, proto);
        break;
      case kNormalizerSpec:
      case kDenormalizerSpec:
        check_normalizer_spec(reader.message(field), name);
        break;
      default:
        break;
    }
  }
  check_pieces(proto, reader);
  return proto;
}

std::string without_dummy_prefix(std::string bytes) {
  // Field 3 (normalizer_spec), a message of two bytes: field 3 (add_dummy_prefix) is 0.
  return bytes.append("\x1a\x02\x18\x00", 4);
}

}  // namespace heed
