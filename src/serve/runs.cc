#include "serve/runs.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/text/json_depth.h"

namespace heed::serve {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 4;             // sweeps, their rows, and folders to sort them into
constexpr size_t kMostRuns = 1000;        // listed
constexpr size_t kMostFolders = 20'000;   // visited
constexpr int64_t kMostBytes = 64 << 20;  // of a log; the rest is ignored
// Longer runs are subsampled; a chart has fewer points than this.
constexpr size_t kMostTrainRecords = 2000;

struct FileState {
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;

  std::string version() const {
    return std::to_string(bytes) + "-" + std::to_string(seconds) + "." +
           std::to_string(nanoseconds);
  }
};

std::optional<FileState> state_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileState{info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// Null for invalid JSON, or JSON too deep to serialize.
Json parse_readable(const std::string& text) {
  if (is_too_deep_json(text)) return nullptr;
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json() : json;
}

struct Log {
  // The last record of each step (steps repeat after a resume); train records are subsampled.
  Json records = Json::array();
  // Whether the last record is "end". A resumed run may end at the same step as before, so the
  // position of the end record does not tell.
  bool has_ended = false;
};

Log read_log(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<Json> records;
  std::map<std::pair<std::string, int64_t>, size_t> places;
  size_t trained = 0;
  int64_t bytes = 0;
  Log log;
  for (std::string line; bytes < kMostBytes && std::getline(stream, line);) {
    bytes += static_cast<int64_t>(line.size()) + 1;
    Json record = parse_readable(line);
    // The last line may be incomplete if the run was killed.
    if (!record.is_object() || !record.contains("kind") || !record["kind"].is_string() ||
        !record.contains("step") || !record["step"].is_number_integer()) {
      continue;
    }
    const std::pair key(record["kind"].get<std::string>(), record["step"].get<int64_t>());
    log.has_ended = key.first == "end";
    const auto [place, is_new] = places.emplace(key, records.size());
    if (is_new) {
      trained += key.first == "train";
      records.push_back(std::move(record));
    } else {
      records[place->second] = std::move(record);
    }
  }
  const size_t stride = trained / kMostTrainRecords + 1;
  size_t index = 0;
  for (Json& record : records) {
    const bool is_train = record["kind"] == "train";
    if (is_train && ++index % stride != 0 && index != trained) continue;
    log.records.push_back(std::move(record));
  }
  return log;
}

}  // namespace

std::vector<RunEntry> RunsFolder::list() const {
  std::vector<RunEntry> runs;
  size_t seen = 0;
  std::error_code error;
  // Symbolic links are not followed: they may leave the folder or form cycles.
  fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied,
                                      error);
  const auto add = [&](const fs::path& folder, const char* file, bool is_sweep) {
    const auto state = state_of(folder / file);
    if (!state) return false;
    runs.push_back({.name = fs::relative(folder, folder_, error).generic_string(),
                    .is_sweep = is_sweep,
                    .updated_at = state->seconds});
    return true;
  };
  // The folder itself may be a run.
  add(folder_, "table.json", true);
  add(folder_, "log.jsonl", false);
  for (; !error && at != fs::end(at) && runs.size() < kMostRuns && seen < kMostFolders;
       at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored) || at->is_symlink(ignored)) continue;
    ++seen;
    if (at.depth() >= kMostDepth - 1) at.disable_recursion_pending();
    add(at->path(), "table.json", true);
    // A run has no runs inside.
    if (add(at->path(), "log.jsonl", false)) at.disable_recursion_pending();
  }
  std::ranges::stable_sort(runs, std::greater{}, &RunEntry::updated_at);
  return runs;
}

std::optional<Json> RunsFolder::read(const std::string& name,
                                     const std::string& known_version) const {
  const std::vector<RunEntry> runs = list();
  const auto run = std::ranges::find(runs, name, &RunEntry::name);
  if (run == runs.end()) return std::nullopt;
  const fs::path file =
      fs::path(folder_) / run->name / (run->is_sweep ? "table.json" : "log.jsonl");
  const auto state = state_of(file);
  if (!state) return std::nullopt;
  const std::string version = state->version();
  if (version == known_version) {
    return Json{{"name", name}, {"version", version}, {"unchanged", true}};
  }
  Json json{{"name", name},
            {"kind", run->is_sweep ? "sweep" : "training"},
            {"version", version},
            {"updated_at", state->seconds}};
  if (run->is_sweep) {
    Json table;
    if (state->bytes <= kMostBytes) {
      std::ifstream stream(file);
      table = parse_readable({std::istreambuf_iterator<char>(stream), {}});
    }
    json["table"] = table.is_object() ? std::move(table) : Json();
    return json;
  }
  Log log = read_log(file);
  json["is_finished"] = log.has_ended;
  json["records"] = std::move(log.records);
  return json;
}

}  // namespace heed::serve
