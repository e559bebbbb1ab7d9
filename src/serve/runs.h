// Training runs and sweeps below a folder, read from log.jsonl and table.json.
//
//   RunsFolder runs("runs");
//   for (const RunEntry& run : runs.list()) …       // "multi30k", "table3", "table3/base"
//   Json log = *runs.read("multi30k");
//
// Only runs that list() returns are read, so a name cannot leave the folder.
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

  // Latest first, without unreadable folders.
  std::vector<RunEntry> list() const;

  // {"name", "kind": "training", "version", "updated_at", "is_finished", "records": […]}, where the
  // records are log.jsonl's, each step once, subsampled to a few thousand; or
  // {…, "kind": "sweep", "table": table.json}. If known_version is current, only
  // {"name", "version", "unchanged": true}. Empty: no such run.
  std::optional<Json> read(const std::string& name, const std::string& known_version = {}) const;

 private:
  const std::string folder_;
};

}  // namespace heed::serve
