// Enumerators and their names, once: as spelt in C++, in config files, in flags and in messages.
//
//   template <>
//   inline constexpr std::array<EnumName<Family>, 2> kEnumNames<Family>{{
//       {Family::encoder_only, "encoder_only"},
//       {Family::decoder_only, "decoder_only"},
//   }};
//   name_of(Family::encoder_only) == "encoder_only";
//   from_name<Family>("decoder_only") == Family::decoder_only;
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

template <class Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

// Specialized next to each enum, in the order of the enumerators.
template <class Enum>
inline constexpr std::array<EnumName<Enum>, 0> kEnumNames{};

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  for (const auto& entry : kEnumNames<Enum>) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

template <class Enum>
constexpr std::optional<Enum> from_name(std::string_view name) {
  for (const auto& entry : kEnumNames<Enum>) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// "a, b or c", for messages.
template <class Enum>
std::string choices_of() {
  std::string text;
  const auto& names = kEnumNames<Enum>;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i].name;
  }
  return text;
}

}  // namespace heed
