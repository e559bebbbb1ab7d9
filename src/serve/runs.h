// Trainings and sweeps in a folder, as their own files tell of them, while they run and afterwards.
//
//   RunsFolder runs("runs");
//   for (const RunEntry& run : runs.list()) …       // "multi30k", "table3", "table3/base"
//   Json log = *runs.read("multi30k");
//
// Only what list() names is ever read, so a name cannot lead out of the folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "serve/routes/fields.h"

namespace heed::serve {

struct RunEntry {
  std::string name;  // its path under the folder
  bool is_sweep = false;
  int64_t updated_at = 0;  // seconds since 1970
};

class RunsFolder {
 public:
  explicit RunsFolder(std::string folder) : folder_(std::move(folder)) {}

  // The latest first. Folders that cannot be read are left out.
  std::vector<RunEntry> list() const;

  // {"name", "kind": "training", "version", "updated_at", "is_finished", "records": […]}, where the
  // records are log.jsonl's, each step once and at most some thousand of them; or
  // {…, "kind": "sweep", "table": table.json}. With the version that the caller has already, only
  // {"name", "version", "unchanged": true}. Nothing: there is no such run.
  std::optional<Json> read(const std::string& name, const std::string& known_version = {}) const;

 private:
  const std::string folder_;
};

}  // namespace heed::serve
