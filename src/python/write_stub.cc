// write_stub TEMPLATE OUTPUT: completes the type stub with the options of the describe() lists.
//
//   @options EngineOptions@      becomes parameters: "threads: int = 0,"
//   @help EngineOptions@         becomes lines of a docstring: "threads: … (default 0)"
//
// Lines are indented for a method or a function, whichever the last "def" began.
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "heed/engine.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed::python {
namespace {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class Field>
std::string type_of() {
  if constexpr (IsOptional<Field>::value) {
    return type_of<typename Field::value_type>() + " | None";
  } else if constexpr (std::is_same_v<Field, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<Field>) {
    return "int";
  } else if constexpr (std::is_floating_point_v<Field>) {
    return "float";
  } else if constexpr (std::is_same_v<Field, std::string>) {
    return "str";
  } else if constexpr (std::is_same_v<Field, LogitBias>) {
    return "Mapping[int, float]";
  } else if constexpr (std::is_enum_v<Field>) {
    std::string choices;
    for (const auto& entry : kEnumNames<Field>) {
      choices += (choices.empty() ? "\"" : ", \"") + std::string(entry.name) + "\"";
    }
    return "Literal[" + choices + "]" + (from_name<Field>("yes") ? " | bool" : "");
  } else {
    static_assert(std::is_same_v<Field, std::vector<std::string>>);
    return "str | Iterable[str]";
  }
}

// As a Python literal.
template <class Field>
std::string literal(const Field& value) {
  if constexpr (IsOptional<Field>::value) {
    return value ? literal(*value) : "None";
  } else if constexpr (std::is_same_v<Field, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_arithmetic_v<Field>) {
    std::ostringstream text;
    text << value;
    return text.str();
  } else if constexpr (std::is_same_v<Field, std::string>) {
    return "\"" + value + "\"";  // defaults have no quotation marks
  } else if constexpr (std::is_same_v<Field, LogitBias>) {
    return "{}";
  } else if constexpr (std::is_enum_v<Field>) {
    return "\"" + std::string(name_of(value)) + "\"";
  } else {
    return "()";
  }
}

// The options of a call, as they appear in its signature and in its docstring.
struct Members {
  std::string parameters, help;

  // Options whose default is in the model's files are None; `help` then has the one without files.
  template <class Options>
  Members& add(Options options, bool from_model = false) {
    for_each_option(options, [&](const OptionInfo& info, auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      const std::string type = type_of<Field>();
      const bool none = from_model && !IsOptional<Field>::value;
      std::string about = info.help;
      if constexpr (std::is_enum_v<Field>) about += "; " + choices_of<Field>();
      add(info.name, none ? type + " | None" : type, none ? "None" : literal(field), about,
          is_unset(info, field) ? "" : literal(field));
    });
    return *this;
  }
  Members& add(const std::string& name, const std::string& type, const std::string& value,
               const std::string& about, const std::string& shown) {
    parameters += name + ": " + type + " = " + value + ",\n";
    help += name + ": " + about + (shown.empty() ? "" : " (default " + shown + ")") + "\n";
    return *this;
  }

 private:
  // A default outside the range means "not set".
  template <class Field>
  static bool is_unset(const OptionInfo& info, const Field& field) {
    if constexpr (std::is_arithmetic_v<Field>) {
      const auto number = static_cast<double>(field);
      return number < info.min || number > info.max;
    } else if constexpr (IsOptional<Field>::value) {
      return !field;
    } else if constexpr (std::is_enum_v<Field>) {
      return false;
    } else {
      return field.empty();
    }
  }
};

Members search_members(const SearchOptions& defaults) {
  Members members;
  members.add(defaults, true);
  return members.add("greedy", "bool", "False", "argmax at every step: neither a beam nor sampling",
                     "False");
}

std::string indented(const std::string& lines, size_t spaces) {
  std::istringstream in(lines);
  std::string text;
  for (std::string line; std::getline(in, line);) text += std::string(spaces, ' ') + line + "\n";
  return text;
}

int write(const char* from, const char* to) {
  const std::map<std::string, Members> members{
      {"EngineOptions", Members().add(EngineOptions())},
      {"GenerateOptions", search_members({}).add(Request())},
      {"TranslateOptions",
       search_members({.beam = kTranslationBeam, .length_penalty = kTranslationLengthPenalty})
           .add(TranslateOptions())},
      {"EmbedOptions", Members().add(EmbedOptions(), true)},
      {"ScoreOptions", Members().add(ScoreOptions())}};
  std::ifstream in(from);
  std::ofstream out(to);
  bool known = true, method = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("@")) {
      if (line.find("def ") != std::string::npos) method = line.starts_with("    ");
      out << line << "\n";
      continue;
    }
    const bool is_help = line.starts_with("@help ");
    const size_t begin = line.find(' ') + 1;
    const auto found = members.find(line.substr(begin, line.size() - begin - 1));
    if (found == members.end()) {
      known = false;
      break;
    }
    const size_t spaces = (method ? 8 : 4) + (is_help ? 4 : 0);
    out << indented(is_help ? found->second.help : found->second.parameters, spaces);
  }
  out.flush();
  if (known && in.eof() && out) return 0;
  std::fprintf(stderr,
               "error: %s has an unknown marker or cannot be read, or %s cannot be written\n", from,
               to);
  return 1;
}

}  // namespace
}  // namespace heed::python

int main(int argc, char** argv) {
  if (argc == 3) return heed::python::write(argv[1], argv[2]);
  std::fprintf(stderr, "usage: write_stub TEMPLATE OUTPUT\n");
  return 2;
}
