// Any bytes as the output of a training run: the first byte selects the log.jsonl or table.json that
// the page shows, a checkpoint's state.json, the log.jsonl of a resumed run, or TensorBoard's events.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "serve/runs.h"
#include "train/report/event_file.h"
#include "train/report/training_log.h"
#include "train/run/checkpoint.h"

namespace {

using namespace heed;

void read_run(const char* file, std::string_view content) {
  static const fuzz::ScratchFolder folder;
  folder.empty();
  folder.write(file, content);
  const serve::RunsFolder runs(folder.path());
  const std::vector<serve::RunEntry> entries = runs.list();
  if (entries.size() != 1) std::abort();
  const auto run = runs.read(entries[0].name);
  if (run) run->dump();
}

void read_state(const std::string& json) {
  fuzz::expect_ordinary([&] {
    const TrainingState state = state_from_json(json, "input");
    if (!(state_from_json(to_json(state), "written") == state)) std::abort();
  });
}

// The log reader of a resumed run.
void resume_log(std::string_view content) {
  static const fuzz::ScratchFolder folder;
  folder.empty();
  folder.write("log.jsonl", content);
  constexpr int64_t kStep = 5;
  const TrainingLog log(folder.path(), kStep);
  for (const LogRecord& record : log.history()) {
    if (record.step > kStep || record.kind.empty()) std::abort();
    to_json_line(record);
  }
}

// A fuzzer does not guess checksums: the input is a list of events, each a length byte and content.
void read_events(std::string_view content) {
  static const fuzz::ScratchFolder folder;
  std::string file;
  const auto put = [&](std::string_view bytes) {
    const uint32_t checksum = masked_crc32c(bytes);
    file.append(bytes).append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  };
  while (!content.empty()) {
    const uint64_t length = static_cast<unsigned char>(content[0]);
    const std::string_view event = content.substr(1, length);
    content.remove_prefix(1 + event.size());
    put({reinterpret_cast<const char*>(&length), sizeof length});
    put(event);
  }
  const std::string path = folder.write("events", file);
  fuzz::expect_ordinary([&] { read_event_scalars(path); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (static_cast<uint8_t>(data[0] - '0') % 5) {
    case 0:
      read_run("log.jsonl", content);
      break;
    case 1:
      read_run("table.json", content);
      break;
    case 2:
      read_state(std::string(content));
      break;
    case 3:
      resume_log(content);
      break;
    default:
      read_events(content);
  }
  return 0;
}
