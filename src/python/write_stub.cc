// write_stub TEMPLATE OUTPUT: replaces each line "@SearchOptions@" of the type stub by the options of
// that struct, from its describe() list.
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

template <class Field>
std::string type_of(const Field&) {
  if constexpr (std::is_same_v<Field, bool>) {
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

template <class Options>
std::string members_of() {
  Options options;
  std::string text;
  for_each_option(options, [&](const OptionInfo& info, auto& field) {
    text += "    " + std::string(info.name) + ": " + type_of(field) + "  # " + info.help + "\n";
  });
  return text;
}

// What translation has besides generation's options.
std::string translate_members() {
  std::string all = members_of<TranslateOptions>();
  const std::string shared = members_of<Request>();
  return all.substr(all.find(shared) + shared.size());
}

int write(const char* from, const char* to) {
  const std::map<std::string, std::string> members{
      {"@EngineOptions@", members_of<EngineOptions>()},
      {"@SearchOptions@", members_of<SearchOptions>() + members_of<Request>()},
      {"@TranslateOptions@", translate_members()},
      {"@EmbedOptions@", members_of<EmbedOptions>()},
      {"@ScoreOptions@", members_of<ScoreOptions>()}};
  std::ifstream in(from);
  std::ofstream out(to);
  for (std::string line; std::getline(in, line);) {
    const auto found = members.find(line);
    out << (found == members.end() ? line + "\n" : found->second);
  }
  out.flush();
  if (in.eof() && out) return 0;
  std::fprintf(stderr, "error: %s cannot be read, or %s cannot be written\n", from, to);
  return 1;
}

}  // namespace
}  // namespace heed::python

int main(int argc, char** argv) {
  if (argc == 3) return heed::python::write(argv[1], argv[2]);
  std::fprintf(stderr, "usage: write_stub TEMPLATE OUTPUT\n");
  return 2;
}
