// Options of heed/c_api.h to those of the library and back, by the describe() lists of the library.
//
// An option that C's struct lacks does not compile; members that no list has are found by
// c_api_test.c.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/c_api.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::bindings {

// ---- C's values to the library's ---------------------------------------------------------------

inline std::vector<std::string> to_texts(const char* const* items, size_t count, const char* what) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    if (!items || !items[i]) {
      throw Error(ErrorCode::invalid_argument,
                  std::string(what) + ": text " + std::to_string(i + 1) + " of " +
                      std::to_string(count) + " must not be NULL",
                  "an empty text is \"\"");
    }
    texts.emplace_back(items[i]);
  }
  return texts;
}

// In C an enum may hold any int; reading such a value as a C++ enum is undefined.
template <class Enum>
int int_of(const Enum& value) {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

struct Read {
  // Lists are appended to those of the model's files.
  void operator()(const OptionInfo& info, std::vector<std::string>& to,
                  const heed_texts& from) const {
    for (std::string& text : to_texts(from.items, from.count, info.name)) {
      to.push_back(std::move(text));
    }
  }
  void operator()(const OptionInfo& info, LogitBias& to, const heed_logit_biases& from) const {
    if (from.count > 0 && !from.items) {
      throw Error(ErrorCode::invalid_argument, std::string(info.name) + ": items must not be NULL",
                  "without biases, count is 0");
    }
    for (size_t i = 0; i < from.count; ++i) to[from.items[i].id] = from.items[i].bias;
  }
  void operator()(const OptionInfo&, std::string& to, const char* from) const {
    to = from ? from : "";
  }
  void operator()(const OptionInfo&, bool& to, int from) const { to = from != 0; }
  template <class Value, class From>
  void operator()(const OptionInfo& info, Value& to, const From& from) const {
    if constexpr (std::is_enum_v<Value>) {
      const int choice = int_of(from);
      if (static_cast<size_t>(choice) >= kEnumNames<Value>.size()) {
        throw Error(ErrorCode::invalid_argument,
                    std::string(info.name) + " must be one of its enumerators, got " +
                        std::to_string(choice),
                    "heed/c_api.h lists them");
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
  void operator()(const OptionInfo&, std::vector<std::string>&, heed_texts& to) const { to = {}; }
  void operator()(const OptionInfo&, LogitBias&, heed_logit_biases& to) const { to = {}; }
  void operator()(const OptionInfo&, std::string&, const char*& to) const { to = nullptr; }
  template <class Value, class To>
  void operator()(const OptionInfo&, Value& from, To& to) const {
    to = static_cast<To>(from);
  }
};

}  // namespace heed::bindings
