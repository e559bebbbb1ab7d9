#include "train/report/training_log.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>

#include "base/text/json_text.h"
#include "base/text/number_text.h"
#include "heed/error.h"
#include "model/hugging_face/json_values.h"

namespace heed {
namespace {

constexpr const char* kLogFile = "/log.jsonl";
constexpr const char* kEventFolder = "/events";

// The folder of event files, with those that are in the run's folder itself.
std::string event_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string events = folder + kEventFolder;
  std::error_code failed;  // training does not stop for a file of figures
  fs::create_directories(events, failed);
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      old.push_back(entry.path());
    }
  }
  for (const fs::path& path : old) fs::rename(path, fs::path(events) / path.filename(), failed);
  return events;
}

// 0.194328 instead of 0.19432799999999997, and counts without decimals.
Json short_number(double value) {
  constexpr double kMostExact = 1e15;
  if (std::abs(value) < kMostExact && value == std::floor(value)) {
    return static_cast<int64_t>(value);
  }
  return std::strtod(significant(value, std::numeric_limits<float>::max_digits10).c_str(), nullptr);
}

}  // namespace

std::optional<double> LogRecord::value(std::string_view name) const {
  for (const auto& [key, number] : values) {
    if (key == name) return number;
  }
  return std::nullopt;
}

std::string to_json_line(const LogRecord& record) {
  Json json = {{"kind", record.kind}, {"step", record.step}};
  // Means and speeds of an interval. Scores stay exact: a finished training reports them again.
  const bool is_short = record.kind == "train";
  for (const auto& [key, value] : record.values) {
    json[key] = is_short ? short_number(value) : Json(value);
  }
  if (!record.samples.empty()) json["samples"] = record.samples;
  if (!record.text.empty()) json["text"] = record.text;
  return json_text(json);
}

std::optional<LogRecord> record_from_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  LogRecord record;
  for (const auto& [key, value] : json.items()) {
    if (key == "kind" && value.is_string()) {
      record.kind = value.get<std::string>();
    } else if (key == "step" && value.is_number_integer()) {
      record.step = value.get<int64_t>();
    } else if (key == "text" && value.is_string()) {
      record.text = value.get<std::string>();
    } else if (key == "samples" && value.is_array()) {
      for (const Json& sample : value) {
        if (sample.is_string()) record.samples.push_back(sample.get<std::string>());
      }
    } else if (value.is_number()) {
      record.values.emplace_back(key, value.get<double>());
    }
  }
  return record.kind.empty() ? std::nullopt : std::optional(record);
}

std::vector<LogRecord> read_history(const std::string& folder, int64_t last_step) {
  std::vector<LogRecord> history;
  std::map<std::pair<std::string, int64_t>, size_t> places;
  std::string line;
  for (std::ifstream file(folder + kLogFile); std::getline(file, line);) {
    const std::optional<LogRecord> record = record_from_line(line);
    if (!record || record->step > last_step) continue;
    // A later record of the same kind and step replaces the earlier one.
    const auto [place, fresh] =
        places.emplace(std::pair(record->kind, record->step), history.size());
    if (fresh) {
      history.push_back(*record);
    } else {
      history[place->second] = *record;
    }
  }
  return history;
}

TrainingLog::TrainingLog(const std::string& folder, int64_t resumed_step)
    : path_(folder + kLogFile),
      history_(read_history(folder, resumed_step)),
      events_(event_folder(folder), resumed_step > 0 ? resumed_step + 1 : 0) {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() == 0) return;
  file.seekg(-1, std::ios::end);
  if (file.get() != '\n') std::ofstream(path_, std::ios::app) << "\n";
}

void TrainingLog::add(const LogRecord& record) {
  std::ofstream file(path_, std::ios::app);
  file << to_json_line(record) << "\n";
  file.flush();
  if (!file) {
    const int error = errno;
    if (!std::filesystem::is_directory(std::filesystem::path(path_).parent_path())) {
      throw Error(ErrorCode::invalid_argument, path_ + ": the folder was removed during training",
                  "run the same command again to start from the beginning; no checkpoint is left");
    }
    throw Error(ErrorCode::invalid_argument, path_ + ": " + std::generic_category().message(error),
                "free some space, or make the folder writable; the last checkpoint is intact");
  }
  for (const auto& [key, value] : record.values) {
    events_.scalar(record.kind + "/" + key, record.step, value);
  }
  history_.push_back(record);
}

}  // namespace heed
