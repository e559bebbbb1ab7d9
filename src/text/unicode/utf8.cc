#include "text/unicode/utf8.h"

#include <algorithm>
#include <cstring>

namespace heed {
namespace {

unsigned byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

bool is_continuation(unsigned byte) { return (byte & 0xC0) == 0x80; }

// A first byte, and what may follow it (Unicode, table 3-7: well-formed byte sequences).
struct Lead {
  size_t bytes = 0;  // of the sequence; 0: not a lead byte
  unsigned second_min = 0x80, second_max = 0xBF;
};

Lead lead_of(unsigned byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

// How many bytes from `at` continue the sequence of the first one, and whether it is complete.
struct Sequence {
  size_t bytes = 0;
  bool complete = false;
};

Sequence sequence_at(std::string_view text, size_t at) {
  const Lead lead = lead_of(byte_at(text, at));
  if (lead.bytes == 0) return {1, false};
  size_t bytes = 1;
  while (bytes < lead.bytes && at + bytes < text.size()) {
    const unsigned byte = byte_at(text, at + bytes);
    const bool fits =
        bytes == 1 ? byte >= lead.second_min && byte <= lead.second_max : is_continuation(byte);
    if (!fits) break;
    ++bytes;
  }
  return {bytes, bytes == lead.bytes};
}

}  // namespace

namespace utf8_detail {

CodePoint decode_beyond_ascii(std::string_view text, size_t at) {
  const Sequence sequence = sequence_at(text, at);
  if (!sequence.complete) return {kStrayByte + byte_at(text, at), 1};
  // The lead's payload: 5, 4 or 3 bits.
  char32_t value = byte_at(text, at) & (0x7FU >> sequence.bytes);
  for (size_t i = 1; i < sequence.bytes; ++i) value = value << 6 | (byte_at(text, at + i) & 0x3F);
  return {value, sequence.bytes};
}

void append_beyond_ascii(std::string& out, char32_t c) {
  const auto push = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (is_stray_byte(c)) {
    push(c - kStrayByte);
  } else if (c < 0x800) {
    push(0xC0 | c >> 6);
    push(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    push(0xE0 | c >> 12);
    push(0x80 | (c >> 6 & 0x3F));
    push(0x80 | (c & 0x3F));
  } else {
    push(0xF0 | c >> 18);
    push(0x80 | (c >> 12 & 0x3F));
    push(0x80 | (c >> 6 & 0x3F));
    push(0x80 | (c & 0x3F));
  }
}

}  // namespace utf8_detail

CodePoint decode_utf8_before(std::string_view text, size_t end) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(4, end); ++bytes) {
    if (is_continuation(byte_at(text, end - bytes))) continue;
    const CodePoint found = decode_utf8(text, end - bytes);
    if (found.bytes == bytes) return found;
    break;
  }
  return {kStrayByte + byte_at(text, end - 1), 1};
}

size_t well_formed_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time: most text is mostly that.
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.complete) return at;
    at += sequence.bytes;
  }
  return at;
}

size_t broken_bytes(std::string_view text, size_t at) { return sequence_at(text, at).bytes; }

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const size_t good = well_formed_prefix(text);
    repaired.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    append_utf8(repaired, kReplacementCharacter);
    text.remove_prefix(broken_bytes(text, 0));
  }
  return repaired;
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += decode_utf8(text, at).bytes) ++count;
  return count;
}

}  // namespace heed
