// Conversion of Python values: texts, one or many inputs, and options by keyword.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/text/suggest.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::python {

namespace py = pybind11;

// Output of a model may not be UTF-8; invalid bytes become U+FFFD.
inline py::str to_str(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (!decoded) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

inline std::vector<py::str> to_strs(const std::vector<std::string>& texts) {
  std::vector<py::str> strs;
  for (const std::string& text : texts) strs.push_back(to_str(text));
  return strs;
}

inline py::type_error wrong_type(py::handle value, const std::string& name, const char* expected) {
  return py::type_error(name + ": expected " + expected + ", found " +
                        py::repr(value).cast<std::string>());
}

template <class T>
T value_of(py::handle value, const std::string& name, const char* expected) {
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    throw wrong_type(value, name, expected);
  }
}

inline py::iterable items_of(py::handle value, const std::string& name, const char* expected) {
  if (!py::isinstance<py::iterable>(value)) throw wrong_type(value, name, expected);
  return py::reinterpret_borrow<py::iterable>(value);
}

inline std::string text_of(py::handle value, const std::string& name) {
  return value_of<std::string>(value, name, "a str");
}

// A str or an iterable of str.
struct Texts {
  std::vector<std::string> values;
  bool is_list = true;

  Texts(py::handle given, const std::string& name) {
    if (py::isinstance<py::str>(given)) {
      is_list = false;
      values.push_back(text_of(given, name));
    } else {
      for (const py::handle item : items_of(given, name, "a str or a list of str")) {
        values.push_back(text_of(item, name));
      }
    }
  }
};

// The same, with pairs as tuples of two str.
struct Inputs {
  std::vector<TaskInput> values;
  bool is_list = true;

  explicit Inputs(py::handle given) {
    is_list = !py::isinstance<py::str>(given) && !py::isinstance<py::tuple>(given);
    if (!is_list) {
      add(given);
      return;
    }
    for (const py::handle item :
         items_of(given, "texts", "a str, a pair of str, or a list of these")) {
      add(item);
    }
  }

 private:
  void add(py::handle item) {
    TaskInput& input = values.emplace_back();
    if (!py::isinstance<py::tuple>(item)) {
      input.text = value_of<std::string>(item, "texts", "a str or a pair of str");
      return;
    }
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    if (pair.size() != 2) throw py::type_error("texts: a pair has two str");
    input.text = text_of(pair[0], "texts"), input.second = text_of(pair[1], "texts");
  }
};

// One result for one input, a list for a list.
template <class Result>
py::object one_or_list(std::vector<Result> results, bool is_list) {
  return is_list ? py::cast(std::move(results)) : py::cast(std::move(results.front()));
}

// The keyword arguments of a call.
//
//   Keywords keywords(given);
//   keywords.read(options);
//   keywords.check("translate");     // TypeError for an unknown option
class Keywords {
 public:
  explicit Keywords(const py::kwargs& given) : given_(given) {}

  // None is as good as not given: it is the default in the signatures.
  bool has(const char* name) const { return given_.contains(name) && !given_[name].is_none(); }

  // The options of a describe() list.
  template <class Options>
  void read(Options& options) {
    for_each_option(options,
                    [this](const OptionInfo& info, auto& field) { read(info.name, field); });
  }
  void read(SearchOverrides& search) {
    for_each_option(search.values, [&](const OptionInfo& info, auto& field) {
      read(info.name, field);
      if (has(info.name)) search.set(info.name);
    });
    read("greedy", search.greedy);
  }
  template <class Field>
  void read(const char* name, Field& field) {
    known_.emplace_back(name);
    if (has(name)) set(field, given_[name], name);
  }

  void check(const std::string& function) const {
    for (const auto& [key, value] : given_) {
      const auto name = key.cast<std::string>();
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      const std::optional<std::string> meant = nearest(name, known_);
      std::string all;
      for (const std::string& option : known_) all += (all.empty() ? "" : ", ") + option;
      throw py::type_error(function + "() has no option '" + name + "'; " +
                           (meant ? "did you mean '" + *meant + "'?" : "it takes " + all));
    }
  }

 private:
  static void set(std::vector<std::string>& field, py::handle value, const char* name) {
    for (std::string& text : Texts(value, name).values) field.push_back(std::move(text));
  }
  static void set(std::string& field, py::handle value, const char* name) {
    field = text_of(value, name);
  }
  static void set(LogitBias& field, py::handle value, const char* name) {
    field = value_of<LogitBias>(value, name, "a dict of token ids and numbers");
  }
  static void set(py::dict& field, py::handle value, const char* name) {
    field = value_of<py::dict>(value, name, "a dict");
  }
  static void set(py::object& field, py::handle value, const char*) {
    field = py::reinterpret_borrow<py::object>(value);
  }
  static void set(std::filesystem::path& field, py::handle value, const char* name) {
    field = value_of<std::filesystem::path>(value, name, "a path");
  }
  template <class Field>
  static void set(std::optional<Field>& field, py::handle value, const char* name) {
    set(field.emplace(), value, name);
  }
  static void set(bool& field, py::handle value, const char* name) {
    field = value_of<bool>(value, name, "a bool");
  }
  template <class Field>
  static void set(Field& field, py::handle value, const char* name) {
    if constexpr (std::is_enum_v<Field>) {
      field = choice<Field>(value, name);
    } else {
      field = value_of<Field>(value, name,
                              std::is_floating_point_v<Field> ? "a number" : "an int in its range");
    }
  }

  template <class Enum>
  static Enum choice(py::handle value, const char* name) {
    // early_stopping=True is "yes".
    const std::string given = py::isinstance<py::bool_>(value) ? (value.cast<bool>() ? "yes" : "no")
                                                               : text_of(value, name);
    if (const auto found = from_name<Enum>(given)) return *found;
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " must be " + choices_of<Enum>() + ", got '" + given + "'",
                "give one of these names");
  }

  const py::kwargs& given_;
  std::vector<std::string> known_;
};

}  // namespace heed::python
