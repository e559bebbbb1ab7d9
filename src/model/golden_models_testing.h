// The tiny models of tests/golden/models. Tests iterate over the folder, so that a new architecture
// is tested by adding its golden folder alone.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace heed {

inline std::string golden_model_folder(const std::string& name) {
  return std::string(HEED_TEST_DATA) + "/golden/models/" + name;
}

// Sorted names of those whose golden.json has this key; empty: of all.
inline std::vector<std::string> golden_models(const std::string& key = "") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_model_folder(""))) {
    std::ifstream file(entry.path() / "golden.json");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const bool found = key.empty() ? !text.empty() : text.find('"' + key + '"') != text.npos;
    if (found) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A model's name as part of a test's name.
inline std::string test_name(std::string model) {
  std::replace_if(
      model.begin(), model.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return model;
}

}  // namespace heed
