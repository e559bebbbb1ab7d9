// Base64 of RFC 4648, with padding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace heed {

std::string encode_base64(std::span<const std::byte> bytes);
// Padding may be missing. None for text with any other character in it.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace heed
