// Options of heed/c_api.h to those of the library and back, by the list in option_fields.h.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings/option_fields.h"
#include "heed/c_api.h"
#include "heed/error.h"

namespace heed::bindings {

// ---- C's values to the library's ---------------------------------------------------------------

inline std::vector<std::string> to_texts(const char* const* items, size_t count, const char* what) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    if (!items || !items[i]) {
      throw Error(ErrorCode::invalid_argument,
                  std::string(what) + ": text " + std::to_string(i + 1) + " of " +
                      std::to_string(count) + " is NULL",
                  "an empty text is \"\"");
    }
    texts.emplace_back(items[i]);
  }
  return texts;
}

// C lets an enumeration hold any int, and C++ does not even let one look at it.
template <class Enum>
int int_of(const Enum& value) {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

struct Read {
  // Texts go beside those that the model's own files ask for.
  void operator()(const char* name, std::vector<std::string>& to, const heed_texts& from) const {
    for (std::string& text : to_texts(from.items, from.count, name)) to.push_back(std::move(text));
  }
  void operator()(const char*, std::string& to, const char* from) const { to = from ? from : ""; }
  void operator()(const char*, bool& to, int from) const { to = from != 0; }
  template <class Value, class From>
  void operator()(const char* name, Value& to, const From& from) const {
    if constexpr (std::is_enum_v<Value>) {
      const int choice = int_of(from);
      if (static_cast<size_t>(choice) >= kChoices<Value>.size()) {
        throw Error(ErrorCode::invalid_argument,
                    std::string(name) + ": there is no choice " + std::to_string(choice),
                    "the choices are the enumerators in heed.h");
      }
      to = static_cast<Value>(choice);
    } else {
      static_assert(std::is_same_v<Value, From>);
      to = from;
    }
  }
};

// ---- and back ----------------------------------------------------------------------------------

struct Write {
  void operator()(const char*, std::vector<std::string>&, heed_texts& to) const { to = {}; }
  void operator()(const char*, std::string&, const char*& to) const { to = nullptr; }
  template <class Value, class To>
  void operator()(const char*, Value& from, To& to) const {
    to = static_cast<To>(from);
  }
};

}  // namespace heed::bindings
